"""``resource.k8s.io/v1beta2``: the same shape as v1."""

from dralloc.api.versions.walk import Json

__all__ = ["to_v1"]


def to_v1(_kind: str, raw: Json) -> Json:
    """Nothing to change: v1 took over v1beta2 as it was (Kubernetes 1.34)."""
    return raw
