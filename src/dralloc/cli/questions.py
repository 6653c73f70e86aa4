"""The commands that ask about a cluster, as it is and what if.

As it is: ``dralloc allocate``, ``compare``, ``explain``, ``stranded``, ``capacity``, ``report``. What they print as
JSON: ``dralloc schema``. What if: ``dralloc plan``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

import dralloc
from dralloc.cli.console import Answers, Asking
from dralloc.cli.options import (
    ANSWER,
    EXPLAINED,
    READ,
    SCHEDULER,
    SEARCH,
    AnyPaths,
    Modes,
    Seeds,
    names_of,
)
from dralloc.objects.choices import AnswerName, Choices, ModeName
from dralloc.objects.errors import DrallocError

if TYPE_CHECKING:
    from dralloc.ask.whatif import MixEntry
    from dralloc.objects.answer import Document
    from dralloc.solve.optimum import Progress

__all__ = [
    "DOCUMENTS",
    "PLANS",
    "allocate_command",
    "capacity_command",
    "compare_command",
    "document_of",
    "explain_command",
    "export_model_command",
    "report_command",
    "schema_command",
    "stranded_command",
]

# ----------------------------------------------------------------------------
# ``dralloc allocate``, ``compare``, ``explain`` and ``stranded``: questions about a
# cluster as it is.


def allocate_command(
    paths: AnyPaths,
    mode: Annotated[
        AnswerName,
        typer.Option(
            help="optimal: as much as possible; scheduler: as kube-scheduler does; first-fit: as "
            "upstream's allocator does, node by node; or a policy."
        ),
    ] = "optimal",
    *,
    choices: Annotated[Choices, SCHEDULER],
    session: Answers,
) -> None:
    """Place the pending claims of a cluster."""
    from dralloc.objects.api import to_wire

    with session.asking(paths, choices, f"{mode}: {{}} claims") as cluster:
        plan = dralloc.allocate(
            cluster, mode, choices=choices, progress=session.progress
        )
    session.warn((*plan.findings, *plan.warnings))
    session.answer(plan, objects=lambda: map(to_wire, plan.claims))


def compare_command(
    paths: AnyPaths,
    modes: Modes = "first-fit,optimal",
    seeds: Seeds = 5,
    *,
    choices: Annotated[Choices, SCHEDULER],
    session: Answers,
) -> None:
    """Compare answers side by side: first fit, kube-scheduler, policies, the optimum."""
    with session.asking(paths, choices, "comparing on {} claims") as cluster:
        result = dralloc.compare(
            cluster,
            modes=modes,
            seeds=seeds,
            choices=choices,
            progress=session.progress,
        )
    session.warn((*result.findings, *result.best.warnings))
    session.answer(result)


def export_model_command(
    paths: AnyPaths,
    to: Annotated[
        Path,
        typer.Option(
            metavar="FILE",
            help="*.mps for MPS; else CP-SAT's format, as text if the name ends in .txt.",
        ),
    ],
    *,
    choices: Annotated[Choices, ANSWER],
    session: Asking,
) -> None:
    """Write the exact model of what is pending, with its objective, for other solvers."""
    with session.asking(paths, choices, "model of {} claims") as cluster:
        dralloc.export_model(cluster, to, choices=choices)


def explain_command(  # noqa: PLR0913 - one parameter per option
    paths: AnyPaths,
    claim: Annotated[
        str | None,
        typer.Option(
            metavar="NS/NAME",
            help="The claim to explain; without any, all that is pending.",
            autocompletion=names_of("claims"),
        ),
    ] = None,
    pod: Annotated[
        str | None,
        typer.Option(
            metavar="NS/NAME",
            help="The pod to explain.",
            autocompletion=names_of("pods"),
        ),
    ] = None,
    mode: Annotated[
        ModeName, typer.Option(help="Whose answer to explain.")
    ] = "first-fit",
    node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Show the reasons of this node; may be given several times.",
            autocompletion=names_of("nodes"),
        ),
    ] = None,
    no_changes: Annotated[
        bool,
        typer.Option(
            "--no-changes",
            help="Give reasons only: do not search for a conflict and for changes.",
        ),
    ] = False,
    *,
    choices: Annotated[Choices, EXPLAINED],
    session: Answers,
) -> None:
    """Say why a claim or pod is pending, what it conflicts with, and what would admit it."""
    with session.asking(paths, choices, "explaining") as cluster:
        explanation = dralloc.explain(
            cluster,
            claim,
            pod,
            mode=mode,
            nodes=node or (),
            suggest=not no_changes,
            choices=choices,
        )
    session.answer(explanation)


def stranded_command(
    paths: AnyPaths,
    claim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NS/NAME[=N]",
            help="A claim or template of the mix; may be given several times. By default the pending claims.",
            autocompletion=names_of("claims", "templates"),
        ),
    ] = None,
    *,
    choices: Annotated[Choices, READ],
    session: Answers,
) -> None:
    """Say which free capacity a mix of claims cannot use, by pool and by kind of node, and what strands it."""
    with session.asking(paths, choices, "looking at what is free") as cluster:
        stranding = dralloc.stranded(cluster, claim or (), choices=choices)
    session.answer(stranding)


# ----------------------------------------------------------------------------
# ``dralloc capacity``: how much there is, and how much of it is left.


def capacity_command(
    paths: AnyPaths,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ATTRIBUTE",
            help="An attribute that tells products apart, e.g. productName; may be given several times. By"
            " default, the attributes that drivers usually have for it.",
            autocompletion=names_of("attributes"),
        ),
    ] = None,
    *,
    choices: Annotated[Choices, READ],
    session: Answers,
) -> None:
    """Count devices in use, free and held back, by product and node, with amounts of counters."""
    with session.asking(paths, choices, "counting devices") as cluster:
        report = dralloc.capacity(cluster, by=by or (), choices=choices)
    session.answer(report)


# ----------------------------------------------------------------------------
# ``dralloc report``: both answers as one HTML page.


def report_command(  # noqa: PLR0913 - one parameter per option
    paths: AnyPaths,
    to: Annotated[
        Path,
        typer.Option("--to", metavar="FILE", help="The page to write."),
    ] = Path("report.html"),
    title: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="What the page is about, in its heading."
        ),
    ] = "",
    timings: Annotated[
        bool,
        typer.Option(
            "--timings/--no-timings",
            help="Show seconds; without them, equal answers give equal pages.",
        ),
    ] = True,
    modes: Modes = "first-fit,optimal",
    seeds: Seeds = 5,
    *,
    choices: Annotated[Choices, SCHEDULER],
    session: Answers,
    invocation: typer.Context,
) -> None:
    """Write the answers as one HTML page with pictures, and print what compare prints."""
    from dralloc.objects.save import write_text
    from dralloc.show.page import page_renderer

    page = page_renderer()
    if not to.parent.is_dir():
        raise DrallocError(
            f"{to}: cannot be written: there is no directory {to.parent}"
        )
    records: list[Progress] = []

    def progress(record: Progress) -> None:
        records.append(record)
        session.progress(record)

    with session.asking(paths, choices, "comparing on {} claims") as cluster:
        result = dralloc.compare(
            cluster,
            modes=modes,
            seeds=seeds,
            progress=progress,
            choices=choices,
        )
    session.warn(result.findings)
    remarks = [
        str(finding) for finding in (*cluster.findings, *result.findings)
    ]
    with session.busy("drawing"):
        source = title or " ".join(map(str, paths)) or "the live cluster"
        about = page.Circumstances(
            source, dict(_chosen(invocation.params)), records, remarks, timings
        )
        text = page.render(result, about)
    write_text(text, to)
    session.tell(f"{to}: {result.headline}")
    session.answer(result)


def _chosen(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what was chosen, in words; without what was left at nothing."""
    for name in SCHEDULER:
        value = parameters[name]
        if value and name != "pruning":
            text = (
                "yes"
                if value is True
                else ", ".join(value)
                if isinstance(value, list | tuple)
                else str(value)
            )
            yield _SAID.get(name, name.replace("_", " ")), text


_SAID = {"node": "nodes", "feature": "features", "cap": "caps"}


# ----------------------------------------------------------------------------
# ``dralloc schema``: the JSON Schema of what commands print as JSON.

DOCUMENTS: Final = {
    "allocate": ("show.plan", "PlanDocument"),
    "apply": ("live.apply.documents", "ApplyDocument"),
    "apply-status": ("live.apply.documents", "StatusDocument"),
    "capacity": ("ask.capacity", "CapacityDocument"),
    "compare": ("show.plan", "ComparisonDocument"),
    "conformance": ("lint.conformance.outcomes", "OutcomeDocument"),
    "defragment": ("ask.whatif.document", "DefragmentationDocument"),
    "drain": ("ask.whatif.document", "DrainDocument"),
    "explain": ("ask.explain.explanation", "ExplanationDocument"),
    "explain-all": ("ask.explain.pending", "PendingDocument"),
    "fewest-nodes": ("ask.whatif.document", "FewestNodesDocument"),
    "headroom": ("ask.whatif.document", "HeadroomDocument"),
    "partition-layout": ("ask.whatif.document", "PartitionLayoutDocument"),
    "preempt": ("ask.whatif.document", "PreemptionDocument"),
    "stranded": ("ask.stranded", "StrandingDocument"),
    "validate": ("lint.validate.violations", "ValidationDocument"),
}
"""By command the module and the name of the document that it prints as JSON."""

Name = StrEnum("Name", {name: name for name in DOCUMENTS})  # type: ignore[misc] # the words are those of the table


def schema_command(
    name: Annotated[
        Name, typer.Argument(help="The command.", show_default=False)
    ],
) -> None:
    """Print the JSON Schema of a command's JSON."""
    typer.echo(json.dumps(document_of(name).json_schema(), indent=2))


def document_of(name: str) -> type[Document]:
    """The document that a command prints as JSON."""
    module, document = DOCUMENTS[name]
    document_type: type[Document] = getattr(
        import_module(f"dralloc.{module}"), document
    )
    return document_type


# ----------------------------------------------------------------------------
# ``dralloc plan``: what if.


@dataclass(frozen=True)
class MixOptions:
    """Claims, templates and pods, in this order; may be nothing."""

    claim: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NS/NAME[=N]",
            help="A claim or a template; may be given several times.",
            autocompletion=names_of("claims", "templates"),
        ),
    ] = None
    template: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NS/NAME[=N]",
            help="A template; may be given several times.",
            autocompletion=names_of("templates"),
        ),
    ] = None
    pod: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NS/NAME[=N]",
            help="A pod with its claims; may be given several times.",
            autocompletion=names_of("pods"),
        ),
    ] = None

    def entries(self) -> list[MixEntry]:
        """Return what the options name."""
        from dralloc.ask.whatif import MixEntry, Source

        named = (
            (Source.CLAIM, self.claim),
            (Source.TEMPLATE, self.template),
            (Source.POD, self.pod),
        )
        return [
            MixEntry.parse(text, source)
            for source, texts in named
            for text in texts or ()
        ]


_HEADROOM: Final = {**SEARCH, "node": ANSWER["node"]}


def headroom_command(
    paths: AnyPaths,
    mix: MixOptions,
    points: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="How many points of what fits together to show at most; 0 shows all.",
        ),
    ] = 25,
    *,
    choices: Annotated[Choices, _HEADROOM],
    session: Answers,
) -> None:
    """Count how many more of a claim fit; of two or three claims, also how many fit together."""
    entries = mix.entries()
    if not entries:
        raise DrallocError(
            "say what is wanted: --claim, --template or --pod NAMESPACE/NAME"
        )
    with session.asking(paths, choices, "looking for headroom") as cluster:
        answer = dralloc.headroom(
            cluster, *entries, points=points or None, choices=choices
        )
    session.answer(answer)


def fewest_command(  # noqa: PLR0913 - one parameter per option
    paths: AnyPaths,
    mix: MixOptions,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NODE or NAME=LABEL=VALUE",
            help="A kind of node: a node to copy, or nodes with a label; several times. By default, all nodes.",
        ),
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KIND=AMOUNT",
            help="What a node of a kind costs; by default 1.",
        ),
    ] = None,
    *,
    choices: Annotated[Choices, SEARCH],
    session: Answers,
) -> None:
    """Find the fewest empty nodes that hold some claims, or all that is pending; with prices, the cheapest kinds."""
    from dralloc.ask.whatif.node_types import parse_price

    entries, kinds, prices = (
        mix.entries(),
        _kinds(kind or ()),
        dict(map(parse_price, price or ())),
    )
    with session.asking(
        paths, choices, "looking for the fewest nodes"
    ) as cluster:
        answer = dralloc.fewest_nodes(
            cluster, *entries, kinds=kinds, prices=prices, choices=choices
        )
    session.answer(answer)


def _kinds(texts: Sequence[str]) -> dict[str, str]:
    kinds = {}
    for text in texts:
        name, _, node_or_label = text.partition("=")
        if not name or not node_or_label:
            raise DrallocError(
                f"--kind {text}: expected NAME=NODE or NAME=LABEL=VALUE"
            )
        kinds[name] = node_or_label
    return kinds


def layout_command(
    paths: AnyPaths,
    mix: MixOptions,
    choices: Annotated[Choices, SEARCH],
    session: Answers,
) -> None:
    """Find the fixed partitions of each GPU that serve some claims, or all that is pending, best, and what is lost."""
    with session.asking(paths, choices, "looking for layouts") as cluster:
        answer = dralloc.partition_layout(
            cluster, *mix.entries(), choices=choices
        )
    session.answer(answer)


_MOVES: Final = {**_HEADROOM, "gang": ANSWER["gang"]}
_PREEMPTED: Final = {
    **_MOVES,
    "scheduler_config": SCHEDULER["scheduler_config"],
}


def defragment_command(
    paths: AnyPaths,
    moves: Annotated[
        int,
        typer.Option(
            "--moves",
            min=0,
            metavar="K",
            help="How many claims to move at most.",
        ),
    ],
    choices: Annotated[Choices, _MOVES],
    session: Answers,
) -> None:
    """Find the few moves of allocated claims that admit the most of what is pending, in order."""
    with session.asking(paths, choices, "looking for moves") as cluster:
        answer = dralloc.defragment(cluster, moves, choices=choices)
    session.answer(answer)


def drain_command(
    nodes: Annotated[
        list[str],
        typer.Argument(
            metavar="NODE",
            help="The nodes to drain.",
            show_default=False,
            autocompletion=names_of("nodes"),
        ),
    ],
    filename: Annotated[
        list[Path],
        typer.Option(
            "--filename",
            "-f",
            default_factory=list,
            metavar="PATH",
            help="File or directory with YAML or JSON; - reads standard input.",
            show_default=False,
        ),
    ],
    choices: Annotated[Choices, SEARCH],
    session: Answers,
) -> None:
    """Say where the claims of some nodes can go, or why they cannot. Exit code 1 if not all of them can."""
    with session.asking(filename, choices, "draining") as cluster:
        answer = dralloc.drain(cluster, *nodes, choices=choices)
    session.answer(answer, failed=not answer.possible)


def preempt_command(  # noqa: PLR0913 - one parameter per option
    paths: AnyPaths,
    claim: Annotated[
        str | None,
        typer.Option(
            metavar="NS/NAME",
            help="The claim to admit.",
            autocompletion=names_of("claims"),
        ),
    ] = None,
    pod: Annotated[
        str | None,
        typer.Option(
            metavar="NS/NAME",
            help="The pod to admit, with its gang.",
            autocompletion=names_of("pods"),
        ),
    ] = None,
    cost: Annotated[
        str,
        typer.Option(
            metavar="pods|priority|ANNOTATION",
            help="Evict the fewest pods, the fewest of the highest priorities, or those with the smallest sum of an "
            "annotation.",
        ),
    ] = "pods",
    *,
    choices: Annotated[Choices, _PREEMPTED],
    session: Answers,
) -> None:
    """Say which pods of lower priority to evict for a claim or pod. Exit code 1 if that does not help."""
    with session.asking(paths, choices, "looking for victims") as cluster:
        answer = dralloc.preempt(
            cluster, claim, pod, cost=cost, choices=choices
        )
    session.answer(answer, failed=not answer.possible)


PLANS: Final[dict[str, Callable[..., None]]] = {
    "headroom": headroom_command,
    "fewest-nodes": fewest_command,
    "drain": drain_command,
    "defragment": defragment_command,
    "partition-layout": layout_command,
    "preempt": preempt_command,
}
"""The commands by name."""
