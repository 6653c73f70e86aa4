"""The claims of pods: those that were given, and those that are made from templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from dralloc.objects.api import (
    ApiObject,
    Pod,
    PodGroup,
    PodResourceClaim,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dralloc.objects.api.expansion import POD_CLAIM_ANNOTATION, claim_for, claim_name
from dralloc.objects.names import ClaimKey

__all__ = ["Claiming"]


class Claiming:
    """Finds the claims of pods and makes those that are missing, as the resource claim controller does.

    Parameters
    ----------
    claims
        All claims by key; those that are made come behind the others.
    unresolved
        For each pod that refers to something missing, what is missing.
    group_claims
        The PodGroup whose claim a pod uses, by pod and claim: it is reserved for the group as a whole (KEP-5729).
    """

    def __init__(
        self,
        claims: Iterable[ResourceClaim],
        templates: Iterable[ResourceClaimTemplate],
        groups: Mapping[ClaimKey, PodGroup],
    ) -> None:
        self.claims = {claim.key: claim for claim in claims}
        self.unresolved: dict[ClaimKey, tuple[str, ...]] = {}
        self.group_claims: dict[tuple[ClaimKey, ClaimKey], PodGroup] = {}
        self._missing: dict[tuple[str, str], list[tuple[Pod, str]]] = {}
        self._templates = {template.key: template for template in templates}
        self._groups = groups
        self._made_for = {
            (
                owner.kind,
                claim.key.namespace,
                owner.name,
                claim.metadata.annotations.get(POD_CLAIM_ANNOTATION),
            ): claim.name
            for claim in self.claims.values()
            for owner in claim.metadata.owner_references
        }

    def of(self, pod: Pod) -> Iterator[ClaimKey]:
        """The keys of the claims of a pod, in the order of its specification; missing claims are named too."""
        group = self._groups.get(pod.pod_group) if pod.pod_group else None
        for number, entry in enumerate(pod.spec.resource_claims):
            owner = (
                group
                if group is not None and entry in group.spec.resource_claims
                else pod
            )
            key = self._claim_of(pod, owner, entry, f"spec.resourceClaims[{number}]")
            if key is not None:
                if isinstance(owner, PodGroup):
                    self.group_claims[pod.key, key] = owner
                yield key

    def remarks(self) -> Iterator[tuple[ApiObject, str, str]]:
        """What is missing, once for all pods of a namespace that refer to it: the first of them, the path, the rule."""
        for (_, rule), places in self._missing.items():
            (pod, path), others = places[0], len(places) - 1
            pods = f"it and {others} more pods" if others else "the pod"
            yield pod, path, f"{rule}; {pods} cannot be placed"

    def _claim_of(
        self, pod: Pod, owner: Pod | PodGroup, entry: PodResourceClaim, path: str
    ) -> ClaimKey | None:
        """The claim of one entry of a pod: an entry that its PodGroup has too is the group's (KEP-5729)."""
        if entry.resource_claim_name is not None:
            key = ClaimKey(pod.key.namespace, entry.resource_claim_name)
            if key not in self.claims:
                self._miss(
                    pod,
                    f"{path}.resourceClaimName",
                    f'ResourceClaim "{key.name}" not found',
                )
            return key
        if entry.resource_claim_template_name is None:
            self._miss(
                pod, path, "needs resourceClaimName or resourceClaimTemplateName"
            )
            return ClaimKey(pod.key.namespace, claim_name(owner, entry.name))
        statuses = (
            *pod.status.resource_claim_statuses,
            *owner.status.resource_claim_statuses,
        )
        status = next((one for one in statuses if one.name == entry.name), None)
        if status is not None and status.resource_claim_name is None:
            return None
        name = (
            status.resource_claim_name
            if status
            else self._made_for.get((owner.kind, *owner.key, entry.name))
        )
        return self._from_template(
            pod, owner, entry, path, name or claim_name(owner, entry.name)
        )

    def _from_template(
        self,
        pod: Pod,
        owner: Pod | PodGroup,
        entry: PodResourceClaim,
        path: str,
        name: str,
    ) -> ClaimKey:
        namespace = pod.key.namespace
        key = ClaimKey(namespace, name)
        if key in self.claims:
            return key
        template = self._templates.get(
            ClaimKey(namespace, str(entry.resource_claim_template_name))
        )
        if template is None:
            missing = f'ResourceClaimTemplate "{entry.resource_claim_template_name}" not found'
            self._miss(pod, f"{path}.resourceClaimTemplateName", missing)
        else:
            self.claims[key] = claim_for(owner, entry.name, template, name)
        return key

    def _miss(self, pod: Pod, path: str, rule: str) -> None:
        self.unresolved[pod.key] = (
            *self.unresolved.get(pod.key, ()),
            f"{path}: {rule}",
        )
        self._missing.setdefault((pod.key.namespace, rule), []).append((pod, path))
