"""ResourceQuota for claims (KEP-4381 "ResourceQuota").

The API server looks at quota when a claim is made. Claims that are given exist already: they count as used. Claims that
dralloc makes for pods have yet to pass: one that exceeds a limit cannot be made, and its pod stays pending.

Source: upstream's ``claimEvaluator``. A request counts with its devices, ``All`` as the 32 that a claim can get at
most, and a prioritized list with the most that any of its alternatives asks of each class (KEP-4816 "Resource Quota").
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dralloc.api import DeviceClass, DeviceSubRequest, ExactDeviceRequest, ResourceClaim, ResourceQuota
from dralloc.cluster import Cluster
from dralloc.errors import Finding
from dralloc.features import Features
from dralloc.names import ClaimKey
from dralloc.problem import MAX_RESULTS
from dralloc.quantity import NANOS, Quantity

__all__ = ["Quotas", "check_quotas"]

_COUNT = "count/resourceclaims.resource.k8s.io"
_DEVICES = ".deviceclass.resource.k8s.io/devices"
_IMPLICIT = "requests.deviceclass.resource.kubernetes.io/"


@dataclass(frozen=True)
class Quotas:
    """Why claims cannot be made, by claim, and remarks about quotas."""

    defects: Mapping[ClaimKey, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()


def check_quotas(cluster: Cluster, features: Features) -> Quotas:
    """Hold the claims of every namespace against its quotas, claims that are given before those that are to be made."""
    check = _Check(cluster, features)
    return Quotas(check.defects, tuple(check.findings()))


class _Check:
    def __init__(self, cluster: Cluster, features: Features) -> None:
        self.cluster = cluster
        self.features = features
        # A quota with a scope is for pods only.
        self.quotas: dict[str, list[ResourceQuota]] = defaultdict(list)
        for quota in cluster.quotas:
            if not quota.spec.scoped:
                self.quotas[quota.key.namespace].append(quota)
        claims = cluster.claims if self.quotas else ()
        concerned = [claim for claim in claims if claim.key.namespace in self.quotas]
        self.used: dict[str, Counter[str]] = defaultdict(Counter)
        for claim in concerned:
            if claim.key not in cluster.made:
                self.used[claim.key.namespace] += self._usage(claim)
        self.given = {namespace: Counter(used) for namespace, used in self.used.items()}
        self.refused: dict[ClaimKey, list[ClaimKey]] = defaultdict(list)
        self.defects: dict[ClaimKey, str] = {}
        for claim in concerned:
            if claim.key in cluster.made:
                self._make(claim)

    def _make(self, claim: ResourceClaim) -> None:
        wanted, used = self._usage(claim), self.used[claim.key.namespace]
        for quota in self.quotas[claim.key.namespace]:
            short = [name for name in _limited(quota, wanted) if _exceeds(quota, name, used[name] + wanted[name])]
            if short:
                self.defects[claim.key] = (
                    f"claim {claim.key}: exceeded quota: {quota.name}, requested: {_listed(short, wanted)}, "
                    f"used: {_listed(short, used)}, limited: {_listed(short, quota.spec.hard)}"
                )
                self.refused[quota.key].append(claim.key)
                return
        used.update(wanted)

    def findings(self) -> Iterator[Finding]:
        """Quotas that given claims exceed already, and quotas that claims of pods cannot pass."""
        for namespace, quotas in self.quotas.items():
            for quota in quotas:
                given = self.given.get(namespace, Counter())
                for name in _limited(quota, given):
                    if _exceeds(quota, name, given[name]):
                        rule = f"the given claims ask for {given[name]}, more than the {quota.spec.hard[name]} allowed"
                        yield self.cluster.remark(quota, f"spec.hard[{name}]", rule)
                refused = self.refused.get(quota.key)
                if refused:
                    more = f" and {len(refused) - 1} more" if len(refused) > 1 else ""
                    yield self.cluster.remark(quota, "spec.hard", f"{self.defects[refused[0]]}{more}")

    def _usage(self, claim: ResourceClaim) -> Counter[str]:
        """What a claim counts for, by resource name."""
        usage = Counter({_COUNT: 1})
        for request in claim.spec.devices.requests:
            most: Counter[str] = Counter()
            for one in request.first_available or ((request.exactly,) if request.exactly else ()):
                most[one.device_class_name] = max(most[one.device_class_name], _devices(one))
            for name, devices in most.items():
                for resource in self._resources(name, self.cluster.classes.get(name)):
                    usage[resource] += devices
        return usage

    def _resources(self, name: str, device_class: DeviceClass | None) -> Iterator[str]:
        """The names under which devices of a class are limited; as extended resources, too (KEP-5004)."""
        yield f"{name}{_DEVICES}"
        if self.features.ExtendedResource:
            yield f"{_IMPLICIT}{name}"
            if device_class is not None and device_class.spec.extended_resource_name is not None:
                yield f"requests.{device_class.spec.extended_resource_name}"


def _devices(details: ExactDeviceRequest | DeviceSubRequest) -> int:
    """How many devices a request can get; modes that are not known count for nothing."""
    return {"ExactCount": details.count, "All": MAX_RESULTS}.get(details.allocation_mode, 0)


def _limited(quota: ResourceQuota, usage: Mapping[str, int]) -> Iterator[str]:
    return (name for name in quota.spec.hard if usage.get(name))


def _exceeds(quota: ResourceQuota, name: str, amount: int) -> bool:
    return amount * NANOS > quota.spec.hard[name].nanos


def _listed(names: Sequence[str], amounts: Mapping[str, int] | Mapping[str, Quantity]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names)
