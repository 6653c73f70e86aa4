"""ResourceQuota for claims (KEP-4381 "ResourceQuota").

The API server looks at quota when a claim is made. Claims that are given exist already: they count as used. Claims that
dralloc makes for pods have yet to pass: one that exceeds a limit cannot be made, and its pod stays pending.

Source: upstream's ``claimEvaluator``. A request counts with its devices, ``All`` as the 32 that a claim can get at
most, and a prioritized list with the most that any of its alternatives asks of each class (KEP-4816 "Resource Quota").
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from dralloc.objects.api import ResourceClaim, ResourceQuota
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Finding
from dralloc.objects.features import Features
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import NANOS, Quantity
from dralloc.problem import MAX_RESULTS

__all__ = ["Quotas"]

_COUNT = "count/resourceclaims.resource.k8s.io"
_DEVICES = ".deviceclass.resource.k8s.io/devices"
_IMPLICIT = "requests.deviceclass.resource.kubernetes.io/"


class Quotas:
    """The verdicts of quotas on the claims of their namespaces: claims that exist come before those to be made.

    Parameters
    ----------
    defects
        Why claims cannot be made, by claim.
    """

    def __init__(self, cluster: Cluster, features: Features) -> None:
        self._cluster = cluster
        self._features = features
        # A quota with a scope is for pods only.
        self._quotas: dict[str, list[ResourceQuota]] = defaultdict(list)
        for quota in cluster.quotas:
            if not quota.spec.scoped:
                self._quotas[quota.key.namespace].append(quota)
        self._used: dict[str, Counter[str]] = defaultdict(Counter)
        self._refused: dict[ClaimKey, list[ClaimKey]] = defaultdict(list)
        self.defects: dict[ClaimKey, str] = {}
        claims = cluster.claims if self._quotas else ()
        concerned = [
            claim for claim in claims if claim.key.namespace in self._quotas
        ]
        for claim in concerned:
            if claim.key not in cluster.made:
                self._used[claim.key.namespace] += self._usage(claim)
        self._given = {
            namespace: Counter(used) for namespace, used in self._used.items()
        }
        for claim in concerned:
            if claim.key in cluster.made:
                self._make(claim)

    def _make(self, claim: ResourceClaim) -> None:
        requested, used = self._usage(claim), self._used[claim.key.namespace]
        for quota in self._quotas[claim.key.namespace]:
            if short := [
                name
                for name in _exceeded(quota, used + requested)
                if requested[name]
            ]:
                self.defects[claim.key] = (
                    f"claim {claim.key}: exceeded quota: {quota.name}, requested: {_listed(short, requested)}, "
                    f"used: {_listed(short, used)}, limited: {_listed(short, quota.spec.hard)}"
                )
                self._refused[quota.key].append(claim.key)
                return
        used.update(requested)

    def findings(self) -> Iterator[Finding]:
        """Quotas that given claims exceed already, and quotas that claims of pods cannot pass."""
        for namespace, quotas in self._quotas.items():
            for quota in quotas:
                used = self._given.get(namespace, Counter())
                for name in _exceeded(quota, used):
                    rule = f"the given claims ask for {used[name]}, more than the {quota.spec.hard[name]} allowed"
                    yield self._cluster.remark(
                        quota, f"spec.hard[{name}]", rule
                    )
                if refused := self._refused.get(quota.key):
                    further = (
                        f" and {len(refused) - 1} more"
                        if len(refused) > 1
                        else ""
                    )
                    yield self._cluster.remark(
                        quota,
                        "spec.hard",
                        f"{self.defects[refused[0]]}{further}",
                    )

    def _usage(self, claim: ResourceClaim) -> Counter[str]:
        """Return the amounts that a claim counts for in quotas, by resource name."""
        usage = Counter({_COUNT: 1})
        for request in claim.spec.devices.requests:
            by_class: Counter[str] = Counter()
            for _, details in request.alternatives:
                # Modes that are not known count for nothing.
                counts = {"ExactCount": details.count, "All": MAX_RESULTS}
                devices = counts.get(details.allocation_mode, 0)
                name = details.device_class_name
                by_class[name] = max(by_class[name], devices)
            for name, devices in by_class.items():
                usage.update(dict.fromkeys(self._resources(name), devices))
        return usage

    def _resources(self, name: str) -> Iterator[str]:
        """The names under which devices of a class are limited; as extended resources, too (KEP-5004)."""
        yield f"{name}{_DEVICES}"
        if self._features.ExtendedResource:
            yield f"{_IMPLICIT}{name}"
            device_class = self._cluster.classes.get(name)
            if (
                device_class is not None
                and device_class.spec.extended_resource_name is not None
            ):
                yield f"requests.{device_class.spec.extended_resource_name}"


def _exceeded(quota: ResourceQuota, usage: Mapping[str, int]) -> Iterator[str]:
    """Yield the resources of which more is in use than the quota allows."""
    limits = quota.spec.hard.items()
    return (
        name
        for name, limit in limits
        if (used := usage.get(name)) and used * NANOS > limit.nanos
    )


def _listed(
    names: Sequence[str], amounts: Mapping[str, int] | Mapping[str, Quantity]
) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names)
