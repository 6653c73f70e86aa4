"""The sections of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version

from dralloc.comparison import Comparison
from dralloc.page import pictures, tables
from dralloc.page.html import Html, element, joined
from dralloc.page.parts import facts, folding, note, section, table
from dralloc.plan import Plan
from dralloc.plot.ranks import has_alternatives
from dralloc.report import percent
from dralloc.solvers.cpsat import Progress

__all__ = ["Circumstances", "sections"]


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the page says about how the answers were found.

    Parameters
    ----------
    source
        What was read, e.g. paths; part of the page's title.
    options
        Choices by name.
    progress
        What was reported while the optimum was searched for.
    remarks
        What is remarkable about the input.
    timed
        Whether to show seconds. Without them, equal answers give equal pages.
    """

    source: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    progress: Sequence[Progress] = ()
    remarks: Sequence[str] = ()
    timed: bool = True


def sections(comparison: Comparison, about: Circumstances) -> Iterator[tuple[str, str, Html]]:
    """Every section with its id and title, without those that have nothing to show."""
    contents = {
        ("answers", "Both answers"): _answers(comparison),
        ("gains", "What only the optimum places"): _gains(comparison),
        ("maps", "Where everything is"): _maps(comparison),
        ("use", "Utilisation"): _use(comparison),
        ("namespaces", "Namespaces"): _namespaces(comparison),
        ("choices", "Alternatives"): _choices(comparison),
        ("unplaced", "Not placed"): _unplaced(comparison),
        ("proof", "What is proven"): _proof(comparison, about),
        ("run", "How it was found"): _run(comparison, about),
    }
    for (name, title), parts in contents.items():
        content = list(parts)
        if content:
            yield name, title, section(name, title, *content)


def _answers(comparison: Comparison) -> Iterator[Html]:
    tiles = (
        _tile("First fit", "first-fit", comparison.first_fit),
        _tile("Optimum", "optimum", comparison.optimal),
    )
    yield element("div", *tiles, class_="tiles")
    yield table(replace(tables.titled(comparison, "Both answers"), title="Both answers in figures"), "answers-table")


def _tile(name: str, style: str, plan: Plan) -> Html:
    total, placed = len(plan.demands), plan.metrics.placed
    share = percent(placed / total) if total else ""
    return element(
        "div",
        element("p", name, class_="name"),
        element("p", element("strong", f"{placed} of {total}"), " demands placed"),
        element("p", ", ".join(filter(None, (share, plan.verdict))), class_="aside"),
        class_=f"tile {style}",
    )


def _gains(comparison: Comparison) -> Iterator[Html]:
    if not comparison.optimal.demands:
        return
    if not comparison.only_optimal:
        yield note("Nothing: first fit places everything that the optimum places.")
    yield pictures.gains_picture(comparison)
    for title, name in (("Only the optimum places", "gains-table"), ("Only first fit places", "losses-table")):
        found = tables.titled(comparison, title)
        if found.rows:
            yield table(found, name)


def _maps(comparison: Comparison) -> Iterator[Html]:
    first, best = comparison.first_fit, comparison.optimal
    if not best.compiled.problem.devices:
        return
    yield note(
        "Each box is a device, or a counter set that partitions are cut from. Partitions and shares are drawn to "
        "scale, partitions where the counters that they consume put them. What was allocated before is grey and "
        "hatched; a star and a bold outline mark what the other answer does not place."
    )
    both = (first, best, "map-first-fit", "first fit"), (best, first, "map-optimum", "the optimum")
    for plan, beside, name, answer in both:
        yield element("h3", answer.removeprefix("the ").capitalize())
        yield pictures.map_picture(plan, beside, name, f"Devices under {answer}")
        listed = tables.placements(plan, f"Placements of {answer}")
        yield folding(f"Every placement of {answer} as a table", table(listed, f"{name}-table"))


def _use(comparison: Comparison) -> Iterator[Html]:
    listed = tables.titled(comparison, "Utilisation")
    if listed.rows:
        yield pictures.utilisation_picture(comparison)
        yield folding("Utilisation as a table", table(listed, "use-table"))


def _namespaces(comparison: Comparison) -> Iterator[Html]:
    listed = tables.titled(comparison, "Namespaces")
    if listed.rows:
        yield table(replace(listed, title="What namespaces use"), "namespaces-table")
        yield from (note(f"First fit exceeds a cap: {text}.") for text in comparison.exceeded())


def _choices(comparison: Comparison) -> Iterator[Html]:
    if has_alternatives(comparison.optimal):
        yield pictures.ranks_picture(comparison)


def _unplaced(comparison: Comparison) -> Iterator[Html]:
    listed = tables.unplaced(comparison)
    yield table(listed, "unplaced-table") if listed.rows else note("Both answers place everything.")


def _proof(comparison: Comparison, about: Circumstances) -> Iterator[Html]:
    best = comparison.optimal
    yield note(f"First fit proves nothing. The optimum is {best.status.value}: {best.verdict}.")
    if best.tiers:
        yield table(tables.tiers(best), "tiers-table")
    drawn = list(pictures.progress_pictures(best, about.progress)) if about.timed else []
    if drawn:
        yield folding("Best and bound over time", element("div", *drawn, class_="pair"))


def _run(comparison: Comparison, about: Circumstances) -> Iterator[Html]:
    source = {"input": about.source} if about.source else {}
    yield facts({**source, **about.options, "version": f"dralloc {version('dralloc')}"})
    if about.timed:
        yield table(tables.timings(comparison.timings), "timings-table")
    warnings = [*about.remarks, *comparison.optimal.solution.warnings]
    if warnings:
        yield folding(f"Remarks ({len(warnings)})", element("ul", joined(element("li", text) for text in warnings)))
