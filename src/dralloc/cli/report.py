"""``dralloc report``: both answers as one HTML page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import typer

import dralloc
from dralloc.choices import Backend, Goal, JobOptions
from dralloc.cli.answers import read
from dralloc.cli.console import Session, features_from, guarded
from dralloc.cli.options import (
    BackendOption,
    Caps,
    Fair,
    FeatureSwitches,
    GangLabel,
    GoalOption,
    Jobs,
    KubernetesVersion,
    Nodes,
    Paths,
    Pruning,
    Quiet,
    Seed,
    Strict,
    StrictCel,
    TimeLimit,
    Workers,
)
from dralloc.errors import DrallocError

if TYPE_CHECKING:
    from dralloc.solvers.cpsat import Progress

__all__ = ["report"]


Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")]
Timings = Annotated[
    bool,
    typer.Option("--timings/--no-timings", help="Show seconds; without them, equal answers give equal pages."),
]


def report(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    node: Nodes = None,
    output: Output = Path("report.html"),
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    workers: Workers = 1,
    jobs: Jobs = 1,
    backend: BackendOption = Backend.LOKY,
    goal: GoalOption = Goal.NONE,
    kubernetes: KubernetesVersion = None,
    feature: FeatureSwitches = None,
    gang: GangLabel = "",
    cap: Caps = None,
    fair: Fair = "",
    strict: Strict = False,
    strict_cel: StrictCel = False,
    pruning: Pruning = True,
    timings: Timings = True,
    quiet: Quiet = False,
) -> None:
    """Write both answers as one HTML page with pictures. It needs nothing else to be read."""
    from dralloc.save import write_text

    with guarded():
        page = _page()
        if not output.parent.is_dir():
            raise DrallocError(f"{output}: cannot be written: there is no directory {output.parent}")
        session = Session(quiet=quiet)
        options = JobOptions(
            time_limit=time_limit,
            seed=seed,
            workers=workers,
            goal=goal,
            strict_cel=strict_cel,
            jobs=jobs,
            backend=backend,
        )
        features = features_from(feature, kubernetes)
        cluster = read(session, paths, strict=strict)
        records: list[Progress] = []
        with session.busy(f"comparing on {len(cluster.claims)} claims"):
            result = dralloc.compare(
                cluster,
                nodes=node or (),
                features=features,
                strict=strict,
                gang=gang,
                caps=cap or (),
                fair=fair,
                pruning=pruning,
                progress=_both(records.append, session.progress),
                **options,
            )
        session.notices(result.optimal.compiled.findings)
        said = {
            **options,
            "nodes": node,
            "kubernetes": kubernetes,
            "features": feature,
            "gang": gang,
            "caps": cap,
            "fair": fair,
            "strict": strict,
        }
        remarks = [str(one) for one in (*cluster.findings, *result.optimal.compiled.findings)]
        with session.busy("drawing"):
            about = page.Circumstances(" ".join(map(str, paths)), dict(_said(said)), records, remarks, timings)
            text = page.render(result, about)
        write_text(text, output)
        if not quiet:
            typer.echo(f"{output}: {result.headline}", err=True)


def _page() -> ModuleType:
    """The package that writes the page; it needs what not everybody has installed."""
    try:
        import dralloc.page.render as page
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise DrallocError("report needs matplotlib: pip install 'dralloc[plot]'") from None
    return page


def _both(first: Callable[[Progress], None], second: Callable[[Progress], None]) -> Callable[[Progress], None]:
    def report_to_both(progress: Progress) -> None:
        first(progress)
        second(progress)

    return report_to_both


def _said(options: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What was chosen, in words; without what was left at nothing."""
    for name, value in options.items():
        if value is not None and value is not False and value != "":
            text = "yes" if value is True else ", ".join(value) if isinstance(value, list) else str(value)
            yield name.replace("_", " "), text
