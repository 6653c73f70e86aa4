"""``resource.k8s.io/v1alpha3``: the shape of v1beta1, with plain quantities for capacities."""

from dralloc.api.versions import v1beta1
from dralloc.api.versions.walk import Json

__all__ = ["to_v1"]


def to_v1(kind: str, raw: Json) -> Json:
    """Convert to v1; `v1beta1` accepts plain quantities as well."""
    return v1beta1.to_v1(kind, raw)
