"""The commands, each a short list of steps: read, answer, show."""

from __future__ import annotations

import gc
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

import dralloc
from dralloc.choices import Backend, Goal, JobOptions, Mode
from dralloc.cli.answers import read, show_answer
from dralloc.cli.conformance import conformance
from dralloc.cli.console import Session, features_from, guarded
from dralloc.cli.explain import explain_command
from dralloc.cli.options import (
    AsJson,
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
from dralloc.cli.plan import plan
from dralloc.cli.report import report
from dralloc.cli.snapshot import redact, snapshot
from dralloc.cli.stranded import stranded_command
from dralloc.cli.study import study_command
from dralloc.cli.validate import validate

if TYPE_CHECKING:
    from dralloc.plan import Plan

__all__ = ["app", "main"]

app = typer.Typer(
    name="dralloc",
    help="Allocates devices to Kubernetes ResourceClaims, many at once, and proves how good the answer is.\n\n"
    "Exit codes: 0 done, 1 failures found, 2 unusable input or command line, 3 internal error.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(conformance)
app.command("explain")(explain_command)
app.command()(redact)
app.command()(report)
app.command()(snapshot)
app.command("stranded")(stranded_command)
app.command("study")(study_command)
app.command()(validate)
app.add_typer(plan, name="plan")


class Output(StrEnum):
    """Forms of a plan."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def main() -> None:
    """Entry point of the ``dralloc`` command."""
    # A command ends soon, and nearly all that it makes is there to stay: looking for garbage would take a tenth of its
    # time.
    gc.disable()
    app()


@app.command("allocate")
def allocate_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    mode: Annotated[Mode, typer.Option(help="As upstream's scheduler would, or as well as possible.")] = Mode.OPTIMAL,
    node: Nodes = None,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="A table, JSON, or ResourceClaims with their new status as YAML.")
    ] = Output.TABLE,
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
    quiet: Quiet = False,
) -> None:
    """Place the pending claims of a cluster."""
    with guarded():
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
        with session.busy(f"{mode.value}: {len(cluster.claims)} claims"):
            plan = dralloc.allocate(
                cluster,
                mode,
                nodes=node or (),
                features=features,
                strict=strict,
                gang=gang,
                caps=cap or (),
                fair=fair,
                pruning=pruning,
                progress=session.progress,
                **options,
            )
        session.notices(plan.compiled.findings)
        _print_plan(session, plan, output)


def _print_plan(session: Session, plan: Plan, output: Output) -> None:
    from dralloc.api import to_wire
    from dralloc.dump import dump_yaml

    if output is Output.YAML:
        typer.echo(dump_yaml(to_wire(claim) for claim in plan.claims), nl=False)
    else:
        show_answer(session, plan, as_json=output is Output.JSON)


@app.command("compare")
def compare_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    node: Nodes = None,
    as_json: AsJson = False,
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
    quiet: Quiet = False,
) -> None:
    """Show what first fit places, what the optimum places, and how far apart they are."""
    with guarded():
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
                progress=session.progress,
                **options,
            )
        session.notices(result.optimal.compiled.findings)
        show_answer(session, result, as_json=as_json)
