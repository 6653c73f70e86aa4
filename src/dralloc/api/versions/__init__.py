"""Older wire forms of ``resource.k8s.io``, each turned into v1 by a function on plain data.

Such a function gets the kind and the object as it was written and returns an object that shares what did not change.
What it does not know it leaves alone, for validation to report.
"""

from collections.abc import Callable, Mapping
from typing import Final

from dralloc.api.versions import kep5075_alpha, kep5517_alpha, v1beta1
from dralloc.api.versions.walk import Json
from dralloc.api.versions.written import Path, written_path

__all__ = ["CONVERSIONS", "Json", "Path", "kep5075_alpha", "kep5517_alpha", "written_path"]


def _as_it_is(_kind: str, raw: Json) -> Json:
    """Nothing to change: v1 took over v1beta2 as it was (Kubernetes 1.34)."""
    return raw


CONVERSIONS: Final[Mapping[str, Callable[[str, Json], Json]]] = {
    "v1": _as_it_is,
    "v1beta2": _as_it_is,
    "v1beta1": v1beta1.to_v1,
    "v1alpha3": v1beta1.to_v1,
}
"""For each supported version of the API group, how an object of a kind becomes v1."""
