"""ResourceQuota: how much a namespace may ask for (core/v1)."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import StrictStr

from dralloc.api.base import PartialModel, QuantityField
from dralloc.api.objects import PartialObject

__all__ = ["ResourceQuota", "ResourceQuotaSpec"]


class ResourceQuotaSpec(PartialModel):
    """The limits by resource name, and for which objects they count: with any scope, for pods only."""

    hard: Mapping[StrictStr, QuantityField] = {}
    scopes: tuple[StrictStr, ...] = ()
    scope_selector: Mapping[str, Any] | None = None


class ResourceQuota(PartialObject):
    """Limits for one namespace."""

    api_version: ClassVar[str] = "v1"
    kind: ClassVar[str] = "ResourceQuota"
    namespaced: ClassVar[bool] = True

    spec: ResourceQuotaSpec = ResourceQuotaSpec()
