"""Names that the shell completes: of what is in the files that the command line names already."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

import dralloc
from dralloc.objects.errors import DrallocError

if TYPE_CHECKING:
    from dralloc.objects.cluster import Cluster

__all__ = ["names_of"]

_ARGUMENTS: Final = ("paths", "filename")
"""Parameters of commands that are files."""

_MOST: Final = 100
"""So many names are offered at most: a shell asks before it shows more."""


def names_of(*kinds: str) -> Callable[[typer.Context, str], list[str]]:
    """Return what completes an option whose values are names.

    Parameters
    ----------
    kinds
        What may be named: ``claims``, ``templates``, ``pods``, ``nodes`` or ``attributes`` of devices.
    """

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        # Where the last word is an option without its value, what stands
        # before it is not yet given to its parameters.
        cluster = _cluster_of(ctx.params, ctx.args)
        if cluster is None:
            return []
        names = (name for kind in kinds for name in _NAMES[kind](cluster))
        fitting = (name for name in names if name.startswith(incomplete))
        return sorted(dict.fromkeys(fitting))[:_MOST]

    return complete


def _cluster_of(
    parameters: Mapping[str, Any], words: Iterable[str]
) -> Cluster | None:
    """Return what the files hold; None where there are none, or they cannot be read: a shell shows no errors."""
    paths = list(map(Path, words))
    for name in _ARGUMENTS:
        paths += parameters.get(name) or ()
    files = [path for path in paths if path.exists()]
    try:
        return dralloc.load(*files) if files else None
    except (DrallocError, OSError):
        return None


def _attributes(cluster: Cluster) -> Iterator[str]:
    for published in cluster.slices:
        for device in published.spec.devices:
            yield from device.attributes


_NAMES: Final[dict[str, Callable[[Cluster], Iterable[str]]]] = {
    "claims": lambda cluster: (str(claim.key) for claim in cluster.claims),
    "templates": lambda cluster: (
        str(template.key) for template in cluster.templates
    ),
    "pods": lambda cluster: (str(pod.key) for pod in cluster.pods),
    "nodes": lambda cluster: (node.name for node in cluster.nodes),
    "attributes": _attributes,
}
