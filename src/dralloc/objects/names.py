"""How things are told apart: pools by driver, devices by driver and pool, subrequests by their request."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ClaimKey", "CounterID", "DeviceID", "PoolID", "RequestName"]


class PoolID(NamedTuple):
    """A pool of devices: unique by driver and pool name together, never by the pool's name alone."""

    driver: str
    pool: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}"


class DeviceID(NamedTuple):
    """A device: unique by driver, pool name and device name."""

    driver: str
    pool: str
    device: str

    @property
    def pool_id(self) -> PoolID:
        """The pool that the device belongs to."""
        return PoolID(self.driver, self.pool)

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class CounterID(NamedTuple):
    """A counter of a counter set of a pool (KEP-4815)."""

    driver: str
    pool: str
    counter_set: str
    counter: str

    def __str__(self) -> str:
        return "/".join(self)


class ClaimKey(NamedTuple):
    """A namespaced object, e.g. a ResourceClaim or a Pod."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> ClaimKey:
        """Return the key that users write as ``namespace/name``, or as ``name`` in the default namespace."""
        namespace, slash, name = text.partition("/")
        return cls(namespace, name) if slash else cls("default", text)

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class RequestName(NamedTuple):
    """A request of a claim, or one subrequest of it: printed as ``request`` or ``request/sub``."""

    request: str
    sub: str = ""

    @classmethod
    def parse(cls, text: str) -> RequestName:
        """Return the name as allocations have it."""
        return cls(*text.split("/"))

    def __str__(self) -> str:
        return f"{self.request}/{self.sub}" if self.sub else self.request
