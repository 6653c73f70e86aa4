"""``dralloc schema``: the JSON Schema of what commands print as JSON."""

from __future__ import annotations

import json
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from dralloc.objects.answer import Document

__all__ = ["DOCUMENTS", "document_of", "schema_command"]

DOCUMENTS: Final = {
    "allocate": ("show.documents", "PlanDocument"),
    "apply": ("live.apply.documents", "ApplyDocument"),
    "apply-status": ("live.apply.documents", "StatusDocument"),
    "capacity": ("ask.capacity", "CapacityDocument"),
    "compare": ("show.documents", "ComparisonDocument"),
    "conformance": ("lint.conformance.outcomes", "OutcomeDocument"),
    "defragment": ("ask.whatif.document", "DefragmentationDocument"),
    "drain": ("ask.whatif.document", "DrainDocument"),
    "explain": ("ask.explain.explanation", "ExplanationDocument"),
    "explain-all": ("ask.explain.pending", "PendingDocument"),
    "fewest-nodes": ("ask.whatif.document", "FewestNodesDocument"),
    "headroom": ("ask.whatif.document", "HeadroomDocument"),
    "partition-layout": ("ask.whatif.document", "PartitionLayoutDocument"),
    "preempt": ("ask.whatif.document", "PreemptionDocument"),
    "stranded": ("ask.stranded.stranding", "StrandingDocument"),
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
