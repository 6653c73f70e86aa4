"""The commands that try out many answers: ``dralloc simulate`` and ``dralloc study``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

import dralloc
from dralloc.cli.console import Asking, Reader
from dralloc.cli.options import SIMULATE, STDOUT, STUDY, Paths
from dralloc.objects.choices import MAX_SEED, Choices, Durations
from dralloc.objects.errors import DrallocError

if TYPE_CHECKING:
    from dralloc.lab.simulate import Arrivals

__all__ = ["simulate_command", "study_command"]

# ----------------------------------------------------------------------------
# ``dralloc simulate``: arrivals, departures and a policy.


@dataclass(frozen=True)
class Drawn:
    """Arrivals by chance, as options."""

    mix: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEMPLATE=SHARE",
            help="Draw arrivals of this; may be given several times.",
        ),
    ] = None
    per_hour: Annotated[
        float, typer.Option(min=0.001, metavar="N", help="How many arrive in an hour.")
    ] = 10.0
    hours: Annotated[
        float, typer.Option(min=0.001, metavar="H", help="For how long they arrive.")
    ] = 24.0
    mean_hours: Annotated[
        float,
        typer.Option(min=0.001, metavar="H", help="How long they run on average."),
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
            help="By which part more arrive at noon, and fewer at midnight.",
        ),
    ] = 0.0


def simulate_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Arrivals as CSV: time, duration, template, ..."
        ),
    ] = None,
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
            min=0.001, metavar="S", help="Decide at every multiple of so many seconds."
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Decide when so many have come since the last time.",
        ),
    ] = None,
    patience: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="S", help="Seconds after which who has no place is refused."
        ),
    ] = None,
    warm_up: Annotated[
        float,
        typer.Option(min=0, metavar="S", help="Seconds that figures do not count."),
    ] = 0.0,
    until: Annotated[
        float | None,
        typer.Option(min=0, metavar="S", help="Seconds after which it ends."),
    ] = None,
    regret: Annotated[
        bool,
        typer.Option(
            "--regret",
            help="Hold decisions against optima, and the run against a clairvoyant bound.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write what became of each arrival as CSV; - prints it.",
        ),
    ] = None,
    *,
    drawn: Drawn,
    choices: Annotated[Choices, SIMULATE],
    session: Asking,
) -> None:
    """Let pods arrive, run and leave, and see what a policy makes of it."""
    from dralloc.objects.save import write_text

    cluster = session.read(paths, choices)
    with session.counting("simulating") as progress:
        simulated = dralloc.simulate(
            cluster,
            _arrivals(trace, drawn),
            policy,
            seeds=seeds,
            every=every,
            batch=batch,
            patience=patience,
            warm_up=warm_up,
            until=until,
            regret=regret,
            progress=partial(progress, "simulating"),
            choices=choices,
        )
    if output is None:
        session.show(simulated.parts())
        return
    text = simulated.arrivals().to_csv(index=False)
    if output == STDOUT:
        typer.echo(text, nl=False)
        return
    write_text(text, output)
    session.show(simulated.parts())


def _arrivals(trace: Path | None, drawn: Drawn) -> Arrivals:
    """Return those of the file, or those that are drawn.

    Raises
    ------
    DrallocError
        There is neither, or both; or a share has another form.
    """
    from dralloc.lab.simulate import PoissonArrivals

    if (trace is None) == (drawn.mix is None):
        raise DrallocError("who arrives: give either --trace or --mix")
    if trace is not None:
        return trace
    return PoissonArrivals(
        dict(map(_share, drawn.mix or ())),
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


# ----------------------------------------------------------------------------
# ``dralloc study``: many seeds, demands and modes, as CSV.

T = TypeVar("T")

_MODES: Final = ("first-fit", "best-fit", "optimal")

Output = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to write the CSV; finished rows are kept in FILE.jsonl, and a study that was killed goes on. "
        "- is standard output, and nothing is kept.",
    ),
]


def study_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    seeds: Annotated[
        int,
        typer.Option(
            min=1, max=MAX_SEED, metavar="N", help="How many seeds: 0, 1, ..."
        ),
    ] = 1,
    modes: Annotated[
        str,
        typer.Option(
            metavar="A,B",
            help="What to compare: optimal, and policies; another name lists them all.",
        ),
    ] = ",".join(_MODES),
    demand: Annotated[
        str,
        typer.Option(
            metavar="X,Y",
            help="How many times as many pods and claims to place, e.g. 0.9,1.0,1.1.",
        ),
    ] = "1.0",
    output: Output = STDOUT,
    *,
    choices: Annotated[Choices, STUDY],
    session: Reader,
) -> None:
    """Answer for many seeds, demands and modes, and write a table."""
    from dralloc.objects.save import write_text

    to_file = output != STDOUT
    with session.counting("study") as progress:
        table = dralloc.study(
            paths,
            seeds=seeds,
            modes=_split(modes, str),
            demand=_split(demand, float),
            store=output.with_name(f"{output.name}.jsonl") if to_file else None,
            limits=session.limits,
            progress=partial(progress, "study"),
            choices=choices,
        )
    text = table.to_csv(index=False)
    if to_file:
        write_text(text, output)
    else:
        typer.echo(text, nl=False)


def _split(text: str, kind: Callable[[str], T]) -> Sequence[T]:
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError:
        raise DrallocError(
            f"{text}: expected numbers with commas between them"
        ) from None
