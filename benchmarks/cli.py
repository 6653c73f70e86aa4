"""The command line: a command for each thing to measure, `list` and `export`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from benchmarks import workloads
from benchmarks.export import export
from benchmarks.limits import LIMITED, Limited, measure_limits, sizes
from benchmarks.measure import Measurement, measure, middle
from benchmarks.openb.command import openb_command
from benchmarks.paired import measure_pairs
from benchmarks.reading import Format, measure_reading
from benchmarks.registry import WORKLOADS, Workload
from benchmarks.scheduling import measure_scheduler
from dralloc.cli.console import Commands, Session
from dralloc.objects.choices import Backend, Choices, Mode
from dralloc.objects.report import Line, Part, Table

if TYPE_CHECKING:
    from benchmarks.continual import Continued
    from benchmarks.explaining import Explained

__all__ = ["app"]

assert workloads.__all__

app = typer.Typer(
    name="python -m benchmarks",
    help="Measures dralloc on named workloads, phase by phase.",
    cls=Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

Without = Annotated[
    list[str] | None,
    typer.Option(
        help="An ingredient of the workload to leave out, if it has any; may be repeated."
    ),
]

app.command("openb")(openb_command)


@app.command("list")
def list_command() -> None:
    """Show the workloads."""
    for workload in WORKLOADS.values():
        typer.echo(
            f"{workload.name:24} {workload.size:>5} {workload.unit:15} {workload.summary}"
        )


@app.command("run")
def run_command(  # noqa: PLR0913 - one parameter per option
    name: Annotated[str, typer.Argument(help="A workload, see list.")],
    size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Nodes, or what else counts; by default the usual size."
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of the generator, and of the search for the optimum."
        ),
    ] = 0,
    repeat: Annotated[
        int, typer.Option(min=1, help="How many runs to take the median of.")
    ] = 1,
    time_limit: Annotated[
        float, typer.Option(min=0.001, help="Seconds for the optimum.")
    ] = 60,
    workers: Annotated[
        int, typer.Option(min=1, help="Threads of the search for the optimum.")
    ] = 1,
    jobs: Annotated[
        int,
        typer.Option(
            min=1, help="Processes, or threads on one large component."
        ),
    ] = 1,
    backend: Annotated[
        Backend, typer.Option(help="Where other processes are.")
    ] = Backend.LOKY,
    optimal: Annotated[
        bool,
        typer.Option(
            "--optimal/--no-optimal", help="Whether to look for the optimum."
        ),
    ] = True,
    without: Without = None,
    directory: Annotated[
        Path | None,
        typer.Option(
            "--export",
            metavar="DIR",
            help="Write the generated objects here, as JSON.",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.")
    ] = False,
) -> None:
    """Generate a workload, place it in both modes, and report seconds by phase."""
    workload = _workload(name, without)
    made = Choices(
        time_limit=time_limit,
        seed=seed,
        workers=workers,
        jobs=jobs,
        backend=backend,
    )
    count, choices = (
        workload.size if size is None else size,
        made if optimal else None,
    )
    measurement = middle(
        measure(workload, count, seed, directory=directory, choices=choices)
        for _ in range(repeat)
    )
    if as_json:
        typer.echo(json.dumps(measurement.to_dict()))
    else:
        Session(quiet=True).show(_parts(measurement))


@app.command("export")
def export_command(
    name: Annotated[str, typer.Argument(help="A workload, see list.")],
    directory: Annotated[
        Path, typer.Argument(help="Where to write the objects.")
    ],
    size: Annotated[
        int | None,
        typer.Option(
            min=1, help="Nodes, or what else counts; by default the usual size."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the generator.")] = 0,
    without: Without = None,
) -> None:
    """Only write the generated objects."""
    workload = _workload(name, without)
    count = export(
        workload.objects(workload.size if size is None else size, seed),
        directory,
    )
    typer.echo(
        ", ".join(f"{kind_count} {kind}" for kind, kind_count in count.items())
    )


@app.command("simulate")
def simulate_command(  # noqa: PLR0913 - one parameter per option
    policy: Annotated[
        str, typer.Option(help="Who places those who arrive.")
    ] = "first-fit",
    nodes: Annotated[
        int, typer.Option(min=1, help="Nodes with eight H100s each.")
    ] = 1000,
    events: Annotated[
        int, typer.Option(min=2, help="Arrivals and departures.")
    ] = 100_000,
    batch: Annotated[
        int | None,
        typer.Option(min=1, help="Decide whenever so many have come."),
    ] = None,
    load: Annotated[
        float,
        typer.Option(
            min=0.01, help="What is asked for, as a part of all memory slices."
        ),
    ] = 0.9,
    seed: Annotated[int, typer.Option(help="Seed of the arrivals.")] = 0,
    time_limit: Annotated[
        float | None,
        typer.Option(min=0.001, help="Seconds for each optimum."),
    ] = None,
) -> None:
    """Let MIG profiles arrive and leave, and print how long that takes as one JSON object."""
    from benchmarks.simulating import measure_simulation

    choices = Choices(seed=seed, time_limit=time_limit)
    measured = measure_simulation(policy, nodes, events, batch, load, choices)
    typer.echo(json.dumps(measured.to_dict()))


@app.command("explain")
def explain_command(
    size: Annotated[
        int, typer.Option(min=1, help="Nodes of workload explain.")
    ] = WORKLOADS["explain"].size,
    seed: Annotated[int, typer.Option(help="Seed of the generator.")] = 0,
    mode: Annotated[
        Mode, typer.Option(help="Whose answer to explain.")
    ] = Mode.FIRST_FIT,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.")
    ] = False,
) -> None:
    """Explain the pending pod of workload explain, and report seconds by phase."""
    from benchmarks.explaining import measure_explain

    figures = measure_explain(size, seed, mode)
    if as_json:
        typer.echo(json.dumps(figures.to_dict()))
    else:
        Session(quiet=True).show(_explained(figures))


@app.command("headroom")
def headroom_command(
    size: Annotated[
        int, typer.Option(min=1, help="Nodes of workload headroom.")
    ] = WORKLOADS["headroom"].size,
    seed: Annotated[int, typer.Option(help="Seed of the generator.")] = 0,
    profile: Annotated[
        list[str] | None, typer.Option(help="A MIG profile; up to three.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.")
    ] = False,
) -> None:
    """Ask how many more of a MIG profile fit, and report seconds by phase."""
    from benchmarks.headroom import measure_headroom

    figures = measure_headroom(size, seed, profile or ["1g.10gb"])
    if as_json:
        typer.echo(json.dumps(figures.to_dict()))
        return
    title = Line(f"headroom, size {figures.size}, seed {figures.seed}", "bold")
    memory = Line(f"\npeak memory {figures.peak_rss_mib:,.0f} MiB", "dim")
    Session(quiet=True).show(
        [title, _seconds(figures.phases), *figures.parts(), memory]
    )


@app.command("limits")
def limits_command(  # noqa: PLR0913 - one parameter per option
    name: Annotated[
        list[str] | None,
        typer.Argument(
            help="Workloads, see list; by default one of each kind."
        ),
    ] = None,
    size: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            help="Nodes, of which a rack has 18; by default about 500 and 5,000.",
        ),
    ] = None,
    limit: Annotated[
        list[float] | None,
        typer.Option(
            min=0.001, help="Seconds for the optimum; by default 1, 5 and 20."
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(
            help="Seed of the generator, and of the search for the optimum."
        ),
    ] = 0,
    without: Without = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line.")
    ] = False,
) -> None:
    """Search for the optimum of workloads under time limits, and report whether these hold."""
    searches: list[Limited] = []
    for workload in [
        _workload(workload_name, without) for workload_name in name or LIMITED
    ]:
        for count in sizes(workload, size or ()):
            for row in measure_limits(
                workload, count, limit or (1, 5, 20), seed
            ):
                searches.append(row)
                if as_json:
                    typer.echo(json.dumps(row.to_dict()))
    if not as_json:
        Session(quiet=True).show([_limited(searches)])


@app.command("continual")
def continual_command(  # noqa: PLR0913 - one parameter per option
    name: Annotated[
        str, typer.Argument(help="A workload whose pods wait, see list.")
    ] = "mixed",
    size: Annotated[
        int, typer.Option(min=1, help="Nodes, or what else counts.")
    ] = 1000,
    seed: Annotated[
        int, typer.Option(help="Seed of the generator, and of the search.")
    ] = 0,
    changed: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.5,
            help="The part of those that wait who go, and as many others come.",
        ),
    ] = 0.01,
    time_limit: Annotated[
        float, typer.Option(min=0.001, help="Seconds for each search.")
    ] = 90,
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 1,
    without: Without = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.")
    ] = False,
) -> None:
    """Go on from an answer after a small change, and report it beside a search from nothing."""
    from benchmarks.continual import measure_continual

    choices = Choices(seed=seed, time_limit=time_limit, jobs=jobs)
    measured = measure_continual(
        _workload(name, without), size, changed, choices
    )
    if as_json:
        typer.echo(json.dumps(measured.to_dict()))
    else:
        Session(quiet=True).show(_continued(measured))


@app.command("compare")
def compare_command(
    other: Annotated[
        Path,
        typer.Argument(
            metavar="CHECKOUT",
            file_okay=False,
            exists=True,
            help="Another checkout of the repository, for instance a git worktree.",
        ),
    ],
    command: Annotated[
        list[str],
        typer.Option(
            help='What to run in both, e.g. "run racks --size 20"; may be repeated.'
        ),
    ],
    pairs: Annotated[int, typer.Option(min=1, help="How often.")] = 5,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line.")
    ] = False,
) -> None:
    """Run benchmarks in turns in another checkout and here, and report the ratio of processor seconds."""
    rows = []
    for arguments in command:
        runs = measure_pairs(other.resolve(), arguments, pairs)
        rows.append(
            (
                runs.command,
                f"{runs.before:.2f}",
                f"{runs.now:.2f}",
                f"{runs.ratio:.3f}",
            )
        )
        if as_json:
            typer.echo(json.dumps(runs.to_dict()))
    if not as_json:
        columns = ("command", f">{other.name}", ">here", ">ratio")
        Session(quiet=True).show([Table("Processor seconds", columns, rows)])


@app.command("reading")
def reading_command(
    name: Annotated[
        str, typer.Argument(help="A workload, see list.")
    ] = "cluster-mig-mixed",
    size: Annotated[
        int, typer.Option(min=1, help="Nodes, or what else counts.")
    ] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the generator.")] = 0,
    format: Annotated[
        Format, typer.Option(help="Format of the file.")
    ] = Format.JSON,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.")
    ] = False,
) -> None:
    """Load and compile a workload, and report processor seconds beside those of parsing the same text."""
    figures = measure_reading(_workload(name), size, seed, format)
    if as_json:
        typer.echo(json.dumps(figures.to_dict()))
        return
    title = Line(
        f"{figures.workload}, size {figures.size}, {figures.mib:,.0f} MiB of {figures.format}",
        "bold",
    )
    rows = [
        (
            phase,
            f"{seconds:.2f}",
            *(
                f"{seconds / parsing:.2f}" if parsing else ""
                for parsing in figures.parsing.values()
            ),
        )
        for phase, seconds in figures.phases.items()
    ]
    columns = (
        "phase",
        ">s",
        *(f">times {parser}" for parser in figures.parsing),
    )
    memory = Line(f"\npeak memory {figures.peak_rss_mib:,.0f} MiB", "dim")
    Session(quiet=True).show(
        [title, Table("Processor seconds", columns, rows), memory]
    )


@app.command("scheduler")
def scheduler_command(  # noqa: PLR0913 - one parameter per option
    name: Annotated[
        str, typer.Argument(help="A workload, see list.")
    ] = "fill-8",
    size: Annotated[
        int, typer.Option(min=1, help="Nodes, or what else counts.")
    ] = 500,
    seed: Annotated[int, typer.Option(help="Seed of the generator.")] = 0,
    repeat: Annotated[
        int, typer.Option(min=1, help="How many runs to take the median of.")
    ] = 1,
    limits: Annotated[
        bool,
        typer.Option(
            "--limits/--no-limits", help="Whether nodes say what they have."
        ),
    ] = True,
    without: Without = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object.")
    ] = False,
) -> None:
    """Schedule the pods of a workload as kube-scheduler does, and report pods per second of a processor."""
    figures = measure_scheduler(
        _workload(name, without), size, seed, repeat, limits=limits
    )
    if as_json:
        typer.echo(json.dumps(figures.to_dict()))
    else:
        placed = (
            f"mode scheduler places {figures.placed:,} of {figures.pods:,} pods"
        )
        typer.echo(
            f"{name}, size {size}: {placed} in {figures.seconds:.2f} s, {figures.per_second:,.0f} per second"
        )


def _workload(name: str, without: Sequence[str] | None = None) -> Workload:
    if name not in WORKLOADS:
        raise typer.BadParameter(f"there is no workload {name!r}; see list")
    workload = WORKLOADS[name]
    if unknown := [
        ingredient
        for ingredient in without or ()
        if ingredient not in workload.ingredients
    ]:
        offered = ", ".join(workload.ingredients) or "none"
        raise typer.BadParameter(
            f"{name} has no ingredient {', '.join(unknown)}; it has {offered}"
        )
    return workload.without(without or ())


def _continued(measured: Continued) -> list[Part]:
    rows = [
        (
            start,
            f"{searched.seconds:.1f}",
            f"{searched.processor:.1f}",
            f"{searched.placed:,}",
            ", ".join(
                f"{name} {value:,} of {bound:,}"
                for name, (value, bound) in searched.tiers.items()
            ),
        )
        for start, searched in (
            ("from nothing", measured.from_nothing),
            ("from an answer", measured.from_answer),
        )
    ]
    title = Line(
        f"{measured.workload}, size {measured.size}: {measured.waiting:,} pods wait, "
        f"of which {measured.came:,} came; {measured.went:,} went",
        "bold",
    )
    columns = ("start", ">s", ">processor s", ">placed", "by tier")
    faster = Line(f"\n{measured.times_faster:.1f} times as fast", "dim")
    return [title, Table("Searches", columns, rows), faster]


def _limited(searches: Sequence[Limited]) -> Table:
    columns = (
        "workload",
        ">size",
        ">limit",
        ">s",
        ">processor",
        ">placed",
        ">first fit",
        "kept",
        "status",
    )
    rows = [
        (
            row.workload,
            str(row.size),
            f"{row.limit:g}",
            f"{row.seconds:.2f}",
            f"{row.processor:.2f}",
            str(row.placed),
            str(row.first_fit),
            "yes" if row.kept else "no",
            row.status,
        )
        for row in searches
    ]
    return Table(
        f"Limits kept in {sum(row.kept for row in searches)} of {len(searches)} searches",
        columns,
        rows,
    )


def _explained(figures: Explained) -> list[Part]:
    return [
        Line(
            f"explain, size {figures.size}, seed {figures.seed}, {figures.mode}",
            "bold",
        ),
        _seconds(figures.phases),
        Line(
            f"\n{figures.reasons} reasons, {figures.conflict} rules in conflict, {figures.suggestions} suggestions"
        ),
        Line(f"peak memory {figures.peak_rss_mib:,.0f} MiB", "dim"),
    ]


def _seconds(phases: Mapping[str, float]) -> Table:
    return Table(
        "Seconds",
        ("phase", ">s"),
        [(name, f"{seconds:.3f}") for name, seconds in phases.items()],
    )


def _parts(measurement: Measurement) -> list[Part]:
    first, best = measurement.first_fit, measurement.optimal
    parts: list[Part] = [
        Line(
            f"{measurement.workload}, size {measurement.size}, seed {measurement.seed}",
            "bold",
        ),
        _seconds(measurement.phases),
        Line(
            f"\nfirst fit places {first.placed} of {first.total}, {first.per_second:,.0f} per second"
        ),
    ]
    if best is not None:
        parts.append(
            Line(
                f"the optimum places {best.placed}: {best.status}, objective {best.objective} of {best.bound}"
            )
        )
    return [
        *parts,
        Line(f"peak memory {measurement.peak_rss_mib:,.0f} MiB", "dim"),
    ]
