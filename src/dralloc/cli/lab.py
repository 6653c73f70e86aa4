"""Commands beside the questions: studies and simulations; then validation, and conformance with upstream."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import typer

import dralloc
from dralloc.cli.console import Answers, Checks, Exit, Printing, Session
from dralloc.cli.options import (
    GATES,
    SIMULATE,
    STDOUT,
    STUDY,
    Form,
    Paths,
    Pruning,
)
from dralloc.objects.choices import MAX_SEED, AllocatorName, Choices, Durations
from dralloc.objects.errors import DrallocError, Level
from dralloc.objects.report import Line, Part, Table, counted

if TYPE_CHECKING:
    from pandas import DataFrame

    from dralloc.lab.simulate import Arrivals
    from dralloc.lint.conformance.cases import CaseOutcome, Json
    from dralloc.objects.cluster import Cluster

__all__ = [
    "conformance_command",
    "example_command",
    "simulate_command",
    "study_command",
    "validate_command",
]

# ----------------------------------------------------------------------------
# The commands that try out many answers: ``dralloc simulate`` and ``dralloc study``.


@dataclass(frozen=True)
class Rows:
    """Rows of frames in every form.

    ``tables`` makes what people read; machines get the frames, by name.
    """

    tables: Callable[[], list[Part]]
    frames: Mapping[str, DataFrame]

    def parts(self) -> list[Part]:
        """Return it as tables and lines."""
        return self.tables()

    def names(self) -> Iterable[str]:
        """Return the values of the first column of words."""
        first = next(iter(self.frames.values()))
        words = list(first.select_dtypes(exclude="number"))
        return dict.fromkeys(map(str, first[words[0]])) if words else ()

    def to_dict(self) -> dict[str, Any]:
        """Return the rows as plain data; what is not a number is null."""
        return {
            name: json.loads(frame.to_json(orient="records"))
            for name, frame in self.frames.items()
        }


# ----------------------------------------------------------------------------
# ``dralloc simulate``: arrivals, departures and a policy.


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
    from dralloc.objects.save import write_text

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
        There is none of them, or more than one; or a share has another form.
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

Target = Annotated[
    Path | None,
    typer.Option(
        "--to",
        metavar="FILE",
        help="Where to write the rows as CSV. Finished rows are kept in FILE.jsonl, from which an "
        "interrupted study goes on. - is standard output, and keeps nothing.",
        show_default=False,
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
            help="What to compare: scheduler, optimal, and policies; another name lists them all.",
        ),
    ] = ",".join(_MODES),
    demand: Annotated[
        str,
        typer.Option(
            metavar="X,Y",
            help="By which factors to multiply pods and claims, e.g. 0.9,1.0,1.1.",
        ),
    ] = "1.0",
    to: Target = None,
    *,
    choices: Annotated[Choices, STUDY],
    session: Checks,
) -> None:
    """Compare modes over many seeds and levels of demand, as a table."""
    from dralloc.objects.save import write_text

    file = None if to == STDOUT else to
    with session.counting("study") as progress:
        table = dralloc.study(
            paths,
            seeds=seeds,
            modes=_split(modes, str),
            demand=_split(demand, float),
            store=file.with_name(f"{file.name}.jsonl") if file else None,
            limits=session.limits,
            progress=partial(progress, "study"),
            choices=choices,
        )
    if to == STDOUT:
        typer.echo(table.to_csv(index=False), nl=False)
        return
    if file:
        write_text(table.to_csv(index=False), file)
        session.tell(f"{file}: {counted(len(table), 'answer')}")
        return
    session.answer(Rows(lambda: _tables(table), {"answers": table}))


def _tables(rows: DataFrame) -> list[Part]:
    """Return what was placed by seed, demand and mode; for those who want to see more, with all figures."""
    details = ("seconds.", "utilisation.")
    columns = [name for name in rows if not str(name).startswith(details)]
    return [
        replace(_table(rows[columns]), title="Placed"),
        replace(_table(rows), title="All figures", wide=True),
    ]


def _table(frame: DataFrame) -> Table:
    """Return rows as a table, with numbers as short as they can be told apart."""
    from pandas.api.types import is_numeric_dtype

    columns = [
        f">{name}" if is_numeric_dtype(kind) else str(name)
        for name, kind in frame.dtypes.items()
    ]
    rows = [
        list(map(_cell, row))
        for row in frame.itertuples(index=False, name=None)
    ]
    return Table("", columns, rows)


def _cell(value: Any) -> str:
    from pandas import isna

    if isna(value):
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _split(text: str, kind: Callable[[str], T]) -> Sequence[T]:
    try:
        return [kind(part.strip()) for part in text.split(",")]
    except ValueError:
        raise DrallocError(
            f"{text}: expected numbers with commas between them"
        ) from None


# ----------------------------------------------------------------------------
# The commands that hold things against rules and records: ``dralloc validate`` and
# ``dralloc conformance``.

# ----------------------------------------------------------------------------
# ``dralloc validate``: what the API server would refuse, and what it accepts and will
# hurt.


def validate_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    sarif: Annotated[
        bool,
        typer.Option(
            "--sarif", help="Print SARIF 2.1.0, for code hosts and CI."
        ),
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Warnings count as failures, too.")
    ] = False,
    level: Annotated[
        Level, typer.Option(help="Hide what is less severe than this.")
    ] = Level.INFO,
    *,
    choices: Annotated[Choices, GATES],
    session: Checks,
) -> None:
    """Check objects as the API server does, and for problems that it cannot see."""
    from dralloc.lint.validate import (
        RULES,
        Validation,
        as_sarif,
        validate_reading,
    )
    from dralloc.objects.load import read

    with session.busy("checking"):
        reading = read(*paths, limits=session.limits)
        validation = validate_reading(
            reading, choices.features, choices.kubernetes
        )
    session.warn(reading.left_out)
    shown = Validation(
        violation for violation in validation if violation.level.reaches(level)
    )
    if sarif:
        session.print_json(as_sarif(shown, RULES))
    elif session.form is Form.TABLE:
        session.print_lines(shown.lines())
        if not session.no_headers:
            session.show([Line(validation.headline, "bold")])
    else:
        session.answer(shown)
    failing = Level.WARNING if strict else Level.ERROR
    if any(violation.level.reaches(failing) for violation in validation):
        raise typer.Exit(Exit.FAILED)


# ----------------------------------------------------------------------------
# ``dralloc conformance``: recorded answers, asked again.

_SHOWN = 50


class CaseKind(StrEnum):
    """What the cases record."""

    ALLOCATE = "allocate"
    CEL = "cel"
    SCHEDULER = "scheduler"


_FIELDS: Final = {CaseKind.CEL: "expression", CaseKind.SCHEDULER: "attempts"}
"""Fields by which cases are told apart."""


def conformance_command(  # noqa: PLR0913 - one parameter per option
    cases: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="Files with recorded cases or runs of kube-scheduler, one JSON object per line, also .gz; or "
            "directories with such files, at any depth.",
        ),
    ],
    kind: Annotated[
        CaseKind | None, typer.Option(help="Run only cases of this kind.")
    ] = None,
    only: Annotated[
        str,
        typer.Option(metavar="NAME", help="Run only the case of this name."),
    ] = "",
    mode: Annotated[
        AllocatorName,
        typer.Option(help="Which mode answers about the allocator."),
    ] = "first-fit",
    pruning: Pruning = True,
    *,
    session: Printing,
) -> None:
    """Run recorded cases of upstream and report which answers are the same."""
    outcomes = []
    with session.busy("running cases"):
        for name, case in _named(cases):
            if only not in ("", name) or kind not in (None, _kind(case)):
                continue
            outcome = _run({"name": name, **case}, mode, pruning=pruning)
            outcomes.append(outcome)
            if session.form is Form.JSON:
                typer.echo(json.dumps(outcome.to_dict()))
    if not outcomes:
        raise DrallocError(
            f"no case is named {only!r}" if only else _no_cases(cases, kind)
        )
    if session.form is not Form.JSON:
        session.answer(Outcomes(outcomes))
    if not all(outcome.passed for outcome in outcomes):
        raise typer.Exit(Exit.FAILED)


def _no_cases(paths: Sequence[Path], kind: CaseKind | None) -> str:
    """Return what is missing, and where it was looked for."""
    looked_at = ", ".join(map(str, paths))
    cases = f"cases of kind {kind}" if kind else "recorded cases"
    return f"no {cases} in {looked_at}; directories are searched for *.jsonl, *.jsonl.gz and *.json.gz"


@dataclass(frozen=True)
class Outcomes:
    """What recorded cases came to, in every form but JSON, of which each case has a line."""

    outcomes: list[CaseOutcome]

    def parts(self) -> list[Part]:
        """Return how many pass, and how the first of the others differ."""
        return _parts(self.outcomes)

    def names(self) -> Iterable[str]:
        """Return the cases that do not pass."""
        failed = (case for case in self.outcomes if not case.passed)
        return (case.name for case in failed)

    def to_dict(self) -> dict[str, Any]:
        """Return all of them as plain data."""
        return {"outcomes": [case.to_dict() for case in self.outcomes]}


def _named(paths: list[Path]) -> Iterator[tuple[str, Json]]:
    from dralloc.lint.conformance.cases import read_lines

    for path in paths:
        files = (
            sorted((*path.rglob("*.jsonl*"), *path.rglob("*.json.gz")))
            if path.is_dir()
            else [path]
        )
        for file in files:
            name = (
                file.relative_to(path).as_posix()
                if path.is_dir()
                else file.name
            )
            for case_number, case in enumerate(read_lines(file), 1):
                location = (
                    name
                    if _kind(case) is CaseKind.SCHEDULER
                    else f"{name.removesuffix(file.suffix)}:{case_number}"
                )
                yield str(case.get("id") or case.get("name") or location), case


def _kind(case: Json) -> CaseKind:
    return next(
        (kind for kind, field in _FIELDS.items() if field in case),
        CaseKind.ALLOCATE,
    )


def _run(case: Json, mode: AllocatorName, *, pruning: bool) -> CaseOutcome:
    from dralloc.lint.conformance import run_scheduler
    from dralloc.lint.conformance.cases import (
        read_allocation_case,
        run_cel,
        run_first_fit,
        run_optimal,
    )

    kind = _kind(case)
    try:
        if kind is not CaseKind.ALLOCATE:
            return (
                run_cel(case) if kind is CaseKind.CEL else run_scheduler(case)
            )
        read = read_allocation_case(case)
    except (AttributeError, KeyError, TypeError) as error:
        problem = (
            f"lacks {error}"
            if isinstance(error, KeyError)
            else f"has not the form of such a case ({error})"
        )
        raise DrallocError(
            f"case {case['name']} of kind {kind}: {problem}"
        ) from error
    return (
        run_optimal(read)
        if mode == "optimal"
        else run_first_fit(read, pruning=pruning)
    )


def _parts(outcomes: list[CaseOutcome]) -> list[Part]:
    total = Counter(outcome.profile for outcome in outcomes)
    passed = Counter(outcome.profile for outcome in outcomes if outcome.passed)
    failed = [outcome for outcome in outcomes if not outcome.passed]
    rows = [
        (
            profile,
            str(passed[profile]),
            str(count),
            f"{100 * passed[profile] / count:.1f}%",
        )
        for profile, count in total.items()
    ]
    parts: list[Part] = [
        Line(f"{sum(passed.values())} of {len(outcomes)} cases pass", "bold"),
        Table("Profiles", ("profile", ">pass", ">of", ">share"), rows),
        Table(
            "First differences",
            ("case", "difference"),
            [(outcome.name, outcome.difference) for outcome in failed[:_SHOWN]],
        ),
    ]
    if len(failed) > _SHOWN:
        parts.append(Line(f"and {len(failed) - _SHOWN} more; --json lists all"))
    return parts


# ----------------------------------------------------------------------------
# ``dralloc example``: clusters to try things with, as the documentation names them.

_PACKAGE: Final = Path(__file__).parents[1]
_CHECKOUT: Final = _PACKAGE.parents[1] / "models"
_EXAMPLES: Final = (
    "fair-share",
    "first-available",
    "gang",
    "gpu-nic",
    "h100-mig",
    "rails",
)


def example_command(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Where to write them; created if it does not exist.",
        ),
    ],
    *,
    session: Session,
) -> None:
    """Write the clusters of the documentation to a directory, to try commands with."""
    from dralloc.objects.save import write_text

    packed = _PACKAGE / "examples"
    source = packed if packed.is_dir() else _CHECKOUT
    rows = []
    for name in _EXAMPLES:
        files = [
            path
            for path in sorted((source / name).glob("*.yaml"))
            if path.name != "expected.yaml"
        ]
        target = directory / name
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DrallocError(
                f"{target}: cannot be made: {error.strerror or error}"
            ) from None
        for path in files:
            write_text(path.read_text(), target / path.name)
        rows.append((str(target), ", ".join(path.name for path in files)))
    session.show([Table("Written", ("directory", "files"), rows)])
    session.tell(f"try: dralloc compare {directory / 'h100-mig'}")
