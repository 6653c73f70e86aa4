"""A text's documents, in the format that it is in."""

from __future__ import annotations

from typing import Any, Final

from dralloc.objects.load.json_text import json_documents
from dralloc.objects.load.yaml_text import yaml_documents

__all__ = ["documents_of", "starts_like_json"]

_BEGINNING: Final = 4096


def starts_like_json(data: bytes) -> bool:
    """Whether the first character is a bracket; YAML in flow style starts so, too."""
    return data[:_BEGINNING].lstrip()[:1] in (b"{", b"[")


def documents_of(
    data: bytes, source: str, aliased: int
) -> tuple[list[Any], str | None]:
    """The documents up to the first that cannot be read, and why it cannot.

    Parameters
    ----------
    source
        Where the data is from: a file that is called YAML may be in flow style.
    aliased
        How many characters the aliases of a YAML text may stand for.
    """
    if not starts_like_json(data):
        return yaml_documents(data, aliased)
    documents, failure = json_documents(data)
    if failure is not None and source.endswith((".yaml", ".yml")):
        return yaml_documents(data, aliased)
    return documents, failure
