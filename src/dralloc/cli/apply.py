"""``dralloc apply``: an answer into the cluster that it is about."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dralloc.cli.console import Exit, Printing
from dralloc.cli.live_options import Live, question_of
from dralloc.cli.option_sets import SCHEDULER
from dralloc.cli.options import Form
from dralloc.objects.choices import Choices, Mode
from dralloc.objects.errors import ApplyError

if TYPE_CHECKING:
    from dralloc.live.apply import ApplyOutcome, ApplyRun, JournalFile, Question
    from dralloc.live.apply.fence_status import FenceStatus
    from dralloc.live.snapshot.client import ApiServer
    from dralloc.show.plan import Plan

__all__ = ["apply_command"]


class DryRun(StrEnum):
    """How much of it is done."""

    CLIENT = "client"
    SERVER = "server"
    NONE = "none"


_TRIALS: Final = (DryRun.CLIENT, DryRun.SERVER)


def apply_command(  # noqa: PLR0913 - one parameter per option
    mode: Annotated[
        Mode, typer.Option(help="Which mode makes the plan.")
    ] = Mode.OPTIMAL,
    dry_run: Annotated[
        DryRun | None,
        typer.Option(
            help="client: only plan; server: ask the server what it would do (the default); none: write."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Write without asking first.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Continue a run that was interrupted, and lift its fence.",
        ),
    ] = False,
    rollback: Annotated[
        bool,
        typer.Option(
            "--rollback",
            help="Undo what a run wrote, unless it is reserved already, and lift its fence.",
        ),
    ] = False,
    status: Annotated[
        bool,
        typer.Option(
            "--status",
            help="Only show what is fenced, by whom and since when, and what is unfinished.",
        ),
    ] = False,
    lift: Annotated[
        str,
        typer.Option(
            metavar="RUN",
            help="Only lift the fence of this run, or of all runs; this needs no journal.",
        ),
    ] = "",
    journal: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Where to note each step before it is taken; by default below the home directory.",
        ),
    ] = None,
    *,
    live: Live,
    choices: Annotated[Choices, SCHEDULER],
    session: Printing,
) -> None:
    """Place the pending claims of a live cluster, and write the plan there."""
    from dralloc.live.apply import JournalFile
    from dralloc.live.apply.journal import default_path

    dry = dry_run or (
        DryRun.NONE if yes or resume or rollback else DryRun.SERVER
    )
    if sum(map(bool, (resume, rollback, status, lift))) > 1:
        raise ApplyError(
            "--resume, --rollback, --status and --lift: one of them at a time"
        )
    if (resume or rollback or lift) and dry_run in _TRIALS:
        raise ApplyError(
            f"--dry-run={dry_run}: --resume, --rollback and --lift write what they do, and cannot be tried"
        )
    with (
        live.server() as server,
        session.counting("reading") as progress,
        closing(JournalFile(journal or default_path(server.wire.host))) as file,
    ):
        session.warn(server.warnings)
        if status or lift:
            fence_status = _status(server, file, lift)
            session.answer(fence_status, failed=fence_status.failed)
            return
        run = _run(
            server,
            file,
            live,
            question_of(mode, choices),
            dry,
            again=resume or rollback,
        )
        run.progress = progress
        if resume or rollback:
            outcome = run.resume() if resume else run.rollback()
        else:
            outcome = _planned(run, session, dry, yes=yes)
    session.answer(outcome, failed=outcome.failed)


def _status(server: ApiServer, file: JournalFile, lift: str) -> FenceStatus:
    """Return what is fenced, once the fences of a run are lifted."""
    from dralloc.live.apply.fence import lift_all
    from dralloc.live.apply.fence_status import status_of
    from dralloc.live.snapshot import LiveObjects, served

    objects = LiveObjects(server.wire, served(server))
    if lift:
        lift_all(objects, lambda run: lift in (run, "all"))
    return status_of(objects, file, str(file.path))


def _run(  # noqa: PLR0913 - what the command was told
    server: ApiServer,
    file: JournalFile,
    live: Live,
    question: Question,
    dry: DryRun,
    *,
    again: bool,
) -> ApplyRun:
    from dralloc.live.apply import ApplyRun, WriteJournal
    from dralloc.live.apply.choice import fence_for
    from dralloc.live.apply.fence import fence_of
    from dralloc.live.apply.run_names import may_write, new_run
    from dralloc.live.snapshot import LiveObjects, served, take_snapshot

    if again or (dry is DryRun.NONE and file.unfinished):
        file.hold()  # nobody goes on with a run that is still at work
    if again and not file.unfinished:
        raise ApplyError(f"{file.path}: no run is to be resumed or rolled back")
    if not again and dry is DryRun.NONE and file.unfinished:
        raise ApplyError(
            f"{file.path}: run {file.run} was ended before its end: --resume or --rollback"
        )
    objects = LiveObjects(
        server.wire, served(server), dry=dry is not DryRun.NONE
    )
    name = new_run("", live.timeout)
    return ApplyRun(
        objects=objects,
        source=lambda: take_snapshot(server, untrimmed=True),
        question=question,
        selection=live.selection(),
        settle=0 if objects.dry else live.settle,
        probe=live.probe_of(objects),
        watch=live.watch,
        fence=fence_of(file, objects, name)
        if again
        else fence_for(live.fence_of(objects), objects, name).fence,
        name=name,
        journal=WriteJournal() if objects.dry else file,
        may_go_on=lambda: may_write(name),
    )


def _holes(run: ApplyRun, plan: Plan) -> Iterator[str]:
    """Yield what the fence does not keep away."""
    from dralloc.live.apply import TaintRuleFence
    from dralloc.live.apply.fence import unfenced

    for key in (
        unfenced(plan.compiled.cluster)
        if isinstance(run.fence, TaintRuleFence)
        else ()
    ):
        yield f"claim {key} tolerates every taint, also that of the fence: --fence node-taints keeps its pods away"


def _planned(
    run: ApplyRun, session: Printing, dry: DryRun, *, yes: bool
) -> ApplyOutcome:
    """Plan, show the plan, and write it, or ask the server what it would do."""
    from dralloc.live.apply import ApplyOutcome
    from dralloc.live.apply.outcome import planned_parts

    plan, units, asides = run.plan()
    session.warn([*plan.findings, *_holes(run, plan)])
    if session.form in (Form.TABLE, Form.WIDE):
        session.show_tables(planned_parts(plan, units, asides))
    if dry is DryRun.CLIENT:
        return ApplyOutcome(
            plan=plan,
            units=tuple(units),
            asides=tuple(asides),
            dry=True,
            is_asked=False,
        )
    if (
        dry is DryRun.NONE
        and not yes
        and not typer.confirm("Write this?", err=True)
    ):
        raise typer.Exit(Exit.DONE)
    return run.write(units)
