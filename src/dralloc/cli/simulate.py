"""``dralloc simulate``: arrivals, departures and a policy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.option_sets import SIMULATE
from dralloc.cli.options import STDOUT, Paths, by_name, require_file
from dralloc.cli.rows import Rows
from dralloc.objects.choices import MAX_SEED, Choices, Durations
from dralloc.objects.errors import DrallocError

if TYPE_CHECKING:
    from dralloc.lab.simulate import Arrivals
    from dralloc.objects.cluster import Cluster

__all__ = ["simulate_command"]


@dataclass(frozen=True)
class Drawn:
    """Arrivals by chance, as options."""

    mix: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEMPLATE=SHARE",
            help="Draw arrivals of this template; may be given several times.",
        ),
    ] = None
    per_hour: Annotated[
        float,
        typer.Option(
            min=0.001, metavar="N", help="How many pods arrive in an hour."
        ),
    ] = 10.0
    hours: Annotated[
        float,
        typer.Option(
            min=0.001, metavar="H", help="For how many hours pods arrive."
        ),
    ] = 24.0
    mean_hours: Annotated[
        float,
        typer.Option(
            min=0.001, metavar="H", help="How many hours they run on average."
        ),
    ] = 1.0
    durations: Annotated[
        Durations, typer.Option(help="How their durations are distributed.")
    ] = Durations.EXPONENTIAL
    swing: Annotated[
        float,
        typer.Option(
            min=0,
            max=1,
            metavar="X",
            help="By which share arrivals rise at noon and fall at midnight.",
        ),
    ] = 0.0


def simulate_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Arrivals as CSV: time, duration, template, ...",
        ),
    ] = None,
    recorded: Annotated[
        bool,
        typer.Option(
            "--recorded",
            help="Take the pods of the files as arrivals, at their creation times.",
        ),
    ] = False,
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="first-fit, scheduler, optimal or a policy; another name lists them all.",
        ),
    ] = "first-fit",
    seeds: Annotated[
        int,
        typer.Option(
            min=1, max=MAX_SEED, metavar="N", help="How many seeds: 0, 1, ..."
        ),
    ] = 1,
    every: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="S",
            help="Decide every S seconds.",
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Decide when N pods have arrived since the last decision.",
        ),
    ] = None,
    patience: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="S",
            help="Refuse pods that have waited for this many seconds.",
        ),
    ] = None,
    warm_up: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="S",
            help="Leave this many seconds at the beginning out of the figures.",
        ),
    ] = 0.0,
    until: Annotated[
        float | None,
        typer.Option(min=0, metavar="S", help="End after this many seconds."),
    ] = None,
    preemption: Annotated[
        bool,
        typer.Option(
            "--preemption",
            help="Let pods evict others of lower priority.",
        ),
    ] = False,
    moves_every: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            metavar="S",
            help="Every S seconds, move running claims where that makes room for a waiting pod.",
        ),
    ] = None,
    moves: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="K",
            help="How many claims to move at most each time.",
        ),
    ] = 5,
    state: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Keep finished seeds in this directory, and go on from them.",
        ),
    ] = None,
    regret: Annotated[
        bool,
        typer.Option(
            "--regret",
            help="Compare decisions with optima, and the run with a clairvoyant bound.",
        ),
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            metavar="FILE",
            help="Write what happened to each arrival as CSV; - prints it.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write a page with pictures over time as HTML."
        ),
    ] = None,
    *,
    drawn: Drawn,
    choices: Annotated[Choices, SIMULATE],
    session: Answers,
) -> None:
    """Simulate pods that arrive, run and leave, under a policy."""
    from dralloc.objects.save import require_writable, write_text

    # A run takes hours: what cannot be written is refused before it.
    require_file("--report", report)
    if to == STDOUT:
        session.require_own_form("--to -")
    if report is not None:
        from dralloc.show.page import page_renderer

        page_renderer()
    for file in (report, None if to == STDOUT else to):
        if file is not None:
            require_writable(file)
    cluster, arrivals = _arrivals(
        session.read(paths, choices), trace, drawn, recorded=recorded
    )
    with session.counting("simulating") as progress:
        simulated = dralloc.simulate(
            cluster,
            arrivals,
            policy,
            seeds=seeds,
            every=every,
            batch=batch,
            patience=patience,
            warm_up=warm_up,
            until=until,
            preemption=preemption,
            moves_every=moves_every,
            moves=moves,
            state=state,
            regret=regret,
            progress=partial(progress, "simulating"),
            choices=choices,
        )
    if report is not None:
        dralloc.report(simulated, report)
    if to == STDOUT:
        typer.echo(simulated.arrivals().to_csv(index=False), nl=False)
        return
    if to is not None:
        write_text(simulated.arrivals().to_csv(index=False), to)
    frames = {
        "figures": simulated.figures(),
        "arrivals": simulated.arrivals(),
    }
    session.answer(Rows(simulated.parts, frames))


def _arrivals(
    cluster: Cluster, trace: Path | None, drawn: Drawn, *, recorded: bool
) -> tuple[Cluster, Arrivals]:
    """Return the cluster, with the arrivals of the file, those that are drawn, or the cluster's own pods.

    Raises
    ------
    DrallocError
        There is none of them, or more than one; or a share has another form, or is given twice.
    """
    from dralloc.lab.simulate import PoissonArrivals
    from dralloc.lab.traces import recorded_pods

    if (trace is not None) + (drawn.mix is not None) + recorded != 1:
        raise DrallocError(
            "who arrives: give one of --trace, --mix and --recorded"
        )
    if recorded:
        record = recorded_pods(cluster)
        return record.cluster, record.arrivals
    if trace is not None:
        return cluster, trace
    return cluster, PoissonArrivals(
        by_name("--mix", map(_share, drawn.mix or ())),
        per_hour=drawn.per_hour,
        hours=drawn.hours,
        mean_hours=drawn.mean_hours,
        durations=drawn.durations,
        swing=drawn.swing,
    )


def _share(text: str) -> tuple[str, float]:
    name, equals, share = text.rpartition("=")
    try:
        return (name, float(share)) if equals else (text, 1.0)
    except ValueError:
        raise DrallocError(
            f"--mix {text}: expected TEMPLATE=SHARE, with a number for a share"
        ) from None
