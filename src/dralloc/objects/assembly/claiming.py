"""The claims of pods: those that were given, and those that are made from templates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Final, NamedTuple

from dralloc.objects.api import (
    ApiObject,
    Pod,
    PodGroup,
    PodResourceClaim,
    ResourceClaim,
    ResourceClaimTemplate,
)
from dralloc.objects.api.owners import (
    POD_CLAIM_ANNOTATION,
    claim_for,
    claim_name,
)
from dralloc.objects.errors import did_you_mean
from dralloc.objects.names import ClaimKey

__all__ = ["Claiming", "belongs_to"]

_HINTED: Final = 20
"""For so many things that are missing it is looked up what may be meant."""


class _ClaimedEntry(NamedTuple):
    """What a claim is made for: an entry of a pod or PodGroup."""

    kind: str
    owner: ClaimKey
    entry: str


def _entries_of(claim: ResourceClaim) -> Iterator[_ClaimedEntry]:
    """Yield what a claim was made for: for one entry, or for nothing."""
    entry = claim.metadata.annotations.get(POD_CLAIM_ANNOTATION)
    if entry is not None:
        for owner in claim.metadata.owner_references:
            key = ClaimKey(claim.key.namespace, owner.name)
            yield _ClaimedEntry(owner.kind, key, entry)


def belongs_to(claim: ResourceClaim, owner: Pod | PodGroup) -> bool:
    """Whether a claim that names an owner means this one, and not an earlier one of the same name."""
    uids = {
        reference.uid
        for reference in claim.metadata.owner_references
        if (reference.kind, reference.name) == (owner.kind, owner.name)
    }
    uid = owner.metadata.uid
    # Objects that were never on a server have no UID.
    return not uid or "" in uids or uid in uids


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
        self._made_for: dict[_ClaimedEntry, list[ResourceClaim]] = {}
        for claim in self.claims.values():
            for entry in _entries_of(claim):
                self._made_for.setdefault(entry, []).append(claim)

    def of(self, pod: Pod) -> Iterator[ClaimKey]:
        """Yield the keys of the claims of a pod, in the order of its specification; missing claims are named too."""
        group = self._groups.get(pod.pod_group) if pod.pod_group else None
        for entry_index, entry in enumerate(pod.spec.resource_claims):
            owner = (
                group
                if group is not None and entry in group.spec.resource_claims
                else pod
            )
            key = self._claim_of(
                pod, owner, entry, f"spec.resourceClaims[{entry_index}]"
            )
            if key is not None:
                if isinstance(owner, PodGroup):
                    self.group_claims[pod.key, key] = owner
                yield key

    def remarks(self) -> Iterator[tuple[ApiObject, str, str]]:
        """Yield missing objects, once for all pods of a namespace that refer to one: the first pod, path and rule."""
        for (_, rule), references in self._missing.items():
            (pod, path), further_pods = references[0], len(references) - 1
            pods = (
                f"it and {further_pods} more pods"
                if further_pods
                else "the pod"
            )
            yield pod, path, f"{rule}; {pods} cannot be placed"

    def _claim_of(
        self,
        pod: Pod,
        owner: Pod | PodGroup,
        entry: PodResourceClaim,
        path: str,
    ) -> ClaimKey | None:
        """Return the claim of one entry of a pod: an entry that its PodGroup has too is the group's (KEP-5729)."""
        if entry.resource_claim_name is not None:
            key = ClaimKey(pod.key.namespace, entry.resource_claim_name)
            if key not in self.claims:
                missing = f'ResourceClaim "{key.name}" not found'
                meant = self._meant(key, self.claims)
                self._miss(pod, f"{path}.resourceClaimName", missing + meant)
            return key
        if entry.resource_claim_template_name is None:
            self._miss(
                pod,
                path,
                "needs resourceClaimName or resourceClaimTemplateName; before "
                "Kubernetes 1.31 they stood below source",
            )
            return ClaimKey(pod.key.namespace, claim_name(owner, entry.name))
        statuses = (
            *pod.status.resource_claim_statuses,
            *owner.status.resource_claim_statuses,
        )
        status = next(
            (
                entry_status
                for entry_status in statuses
                if entry_status.name == entry.name
            ),
            None,
        )
        # A status without a name says that no claim had to be made (``PodResourceClaimStatus``).
        if status is not None and status.resource_claim_name is None:
            return None
        # Without a status, a claim that belongs to the owner and names the pod's entry is the one that was made.
        name = (
            status.resource_claim_name
            if status
            else self._name_of_made(owner, entry.name)
        )
        return self._from_template(
            pod, owner, entry, path, name or self._new_name(owner, entry.name)
        )

    def _name_of_made(self, owner: Pod | PodGroup, entry: str) -> str | None:
        """Return the name of the claim that was made for an entry; None if there is none."""
        claimed_entry = _ClaimedEntry(owner.kind, owner.key, entry)
        claims = self._made_for.get(claimed_entry, ())
        return next(
            (claim.name for claim in claims if belongs_to(claim, owner)), None
        )

    def _new_name(self, owner: Pod | PodGroup, entry: str) -> str:
        """Return the name of the claim that is made for an entry: none that a claim of another entry has.

        Of long names only the beginning is in it, and five characters are not enough to tell thousands apart.
        """
        claimed_entry = _ClaimedEntry(owner.kind, owner.key, entry)
        names = (claim_name(owner, entry, attempt) for attempt in count())
        return next(
            name for name in names if self._may_have(owner, claimed_entry, name)
        )

    def _may_have(
        self, owner: Pod | PodGroup, claimed_entry: _ClaimedEntry, name: str
    ) -> bool:
        """Whether no claim has a name but one that says nothing of whom it is for, or is for this entry."""
        namesake = self.claims.get(ClaimKey(owner.key.namespace, name))
        entries = () if namesake is None else tuple(_entries_of(namesake))
        if namesake is None or not entries:
            return True
        return claimed_entry in entries and belongs_to(namesake, owner)

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
            named = str(entry.resource_claim_template_name)
            missing = f'ResourceClaimTemplate "{named}" not found'
            missing_key = ClaimKey(namespace, named)
            meant = self._meant(missing_key, self._templates)
            path = f"{path}.resourceClaimTemplateName"
            self._miss(pod, path, missing + meant)
        else:
            self.claims[key] = claim_for(owner, entry.name, template, name)
        return key

    def _meant(self, missing: ClaimKey, known: Iterable[ClaimKey]) -> str:
        """Return the names in the namespace that may be meant; only for the first missing ones, which are shown."""
        if len(self._missing) >= _HINTED:
            return ""
        namespace = missing.namespace
        names = [key.name for key in known if key.namespace == namespace]
        return did_you_mean(missing.name, names)

    def _miss(self, pod: Pod, path: str, rule: str) -> None:
        self.unresolved[pod.key] = (
            *self.unresolved.get(pod.key, ()),
            f"{path}: {rule}",
        )
        self._missing.setdefault((pod.key.namespace, rule), []).append(
            (pod, path)
        )
