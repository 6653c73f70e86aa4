"""The calls: everything is read without garbage collection, which would go through the objects again and again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

from dralloc.objects.api import ObjectReader
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Finding, InputError
from dralloc.objects.garbage import without_garbage_collection
from dralloc.objects.limits import LIMITS, Limits
from dralloc.objects.load.loading import Loading, Paths, Reading
from dralloc.objects.load.slice_texts import SliceTexts

__all__ = [
    "load",
    "load_documents",
    "load_objects",
    "load_text",
    "read",
    "read_documents",
]


@without_garbage_collection()
def load(
    *paths: Paths,
    strict: bool = False,
    stdin: IO[bytes] | None = None,
    limits: Limits = LIMITS,
) -> Cluster:
    """Read everything that is given and put it together.

    Parameters
    ----------
    paths
        Files, directories (all ``*.yaml``, ``*.yml`` and ``*.json`` in and below them, also with ``.gz``, in the order
        of their names; what is no Kubernetes object there is skipped and counted), or ``-`` for standard input; or
        objects that are plain data already, as dictionaries. A list of them is as good as one after the other. An
        object takes the place of one with its name that an earlier path has, and a finding says so; in one file, two
        of them are an error.
    strict
        Whether a field that is not known in an object of ``resource.k8s.io`` is an error.
    stdin
        What ``-`` reads; by default the standard input of the process.
    limits
        How much may come out of little text.

    Raises
    ------
    InputError
        Something cannot be read or is not valid. It holds a finding for every defect in all of the input.

    Examples
    --------
    >>> import dralloc
    >>> from importlib.resources import files
    >>> cluster = dralloc.load(str(files("dralloc.objects") / "example.yaml"))
    >>> [node.name for node in cluster.nodes]
    ['node-0', 'node-1']
    >>> dralloc.load({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a"}}).nodes[0].name
    'a'
    """
    loading = _loading(limits, strict=strict)
    loading.add_all(paths, stdin)
    return loading.cluster()


@without_garbage_collection()
def load_objects(
    *paths: Paths, stdin: IO[bytes] | None = None, limits: Limits = LIMITS
) -> list[dict[str, Any]]:
    """Read what `load` reads, as plain data in the order in which it is given; kinds and fields are not looked at.

    Raises
    ------
    InputError
        Something cannot be read, or is no object of Kubernetes.
    """
    keeper = _Keeper()
    loading = Loading(keeper, limits)
    loading.add_all(paths, stdin)
    errors = keeper.errors or ([] if loading.documents else loading.empty)
    if errors:
        raise InputError(errors)
    return keeper.kept


class _Keeper(ObjectReader):
    """Keeps objects as they were written."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[dict[str, Any]] = []

    def read(self, raw: dict[str, Any], source: str) -> None:
        if isinstance(raw.get("kind"), str) and isinstance(raw.get("apiVersion"), str):
            self.kept.append(raw)
        else:
            self.errors.append(
                Finding(
                    source,
                    "",
                    "",
                    "is no Kubernetes object: it needs apiVersion and kind",
                )
            )


@without_garbage_collection()
def read(
    *paths: Paths, stdin: IO[bytes] | None = None, limits: Limits = LIMITS
) -> Reading:
    """As `load`, but objects that cannot be used are no obstacle to the others.

    Raises
    ------
    InputError
        A file cannot be read, or there is nothing in any of them.
    """
    loading = _loading(limits)
    loading.add_all(paths, stdin)
    return loading.reading()


@without_garbage_collection()
def read_documents(
    documents: Iterable[Any], *, source: str = "", limits: Limits = LIMITS
) -> Reading:
    """As `load_documents`, but objects that cannot be used are no obstacle to the others."""
    loading = _loading(limits)
    for document in documents:
        loading.add_document(document, source)
    return loading.reading()


@without_garbage_collection()
def load_text(
    text: str | bytes,
    *,
    source: str = "<text>",
    strict: bool = False,
    limits: Limits = LIMITS,
) -> Cluster:
    """Read YAML or JSON text; `source` names it in findings. Otherwise like `load`."""
    loading = _loading(limits, strict=strict)
    loading.add_text(text.encode() if isinstance(text, str) else text, source)
    return loading.cluster()


@without_garbage_collection()
def load_documents(
    documents: Iterable[Any],
    *,
    source: str = "",
    strict: bool = False,
    limits: Limits = LIMITS,
) -> Cluster:
    """Read objects that are plain data already, in any supported version. Otherwise like `load`."""
    loading = _loading(limits, strict=strict)
    for document in documents:
        loading.add_document(document, source)
    return loading.cluster()


def _loading(limits: Limits, *, strict: bool = False) -> Loading:
    reader = ObjectReader(strict=strict)
    return Loading(reader, limits, SliceTexts(reader.slices).item_at)
