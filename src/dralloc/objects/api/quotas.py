"""ResourceQuota: how much a namespace may ask for (core/v1)."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import StrictStr

from dralloc.objects.api.base import EMPTY, PartialModel, QuantityField
from dralloc.objects.api.disclosure import (
    Name,
    Operator,
    PriorityName,
    Refined,
    ResourceName,
    Terms,
)
from dralloc.objects.api.objects import ObjectMeta, PartialObject

__all__ = ["ResourceQuota", "ResourceQuotaSpec", "ScopeRequirement", "ScopeSelector"]


_Scope = Annotated[
    StrictStr,
    Terms(
        "BestEffort",
        "CrossNamespacePodAffinity",
        "NotBestEffort",
        "NotTerminating",
        "PriorityClass",
        "Terminating",
        "VolumeAttributesClass",
    ),
]


class ScopeRequirement(PartialModel):
    """A scope, and for priority classes which of them."""

    scope_name: _Scope
    operator: Operator
    values: tuple[PriorityName, ...] = ()


class ScopeSelector(PartialModel):
    """Scopes that an object must have for the quota to count it."""

    match_expressions: tuple[ScopeRequirement, ...] = ()


class ResourceQuotaSpec(PartialModel):
    """The limits by resource name, and for which objects they count: with any scope, for pods only."""

    hard: Mapping[ResourceName, QuantityField] = EMPTY
    scopes: tuple[_Scope, ...] = ()
    scope_selector: ScopeSelector = ScopeSelector()

    @property
    def scoped(self) -> bool:
        """Whether it counts only objects of some scope."""
        return bool(self.scopes or self.scope_selector.match_expressions)


class ResourceQuota(PartialObject, api_version="v1", namespaced=True):
    """Limits for one namespace."""

    metadata: Annotated[ObjectMeta, Refined(name=Name.QUOTA)] = ObjectMeta()
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
