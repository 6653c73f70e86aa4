"""What controllers would make: the pods of a Deployment or Job, and the claims of pods that name a template."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Final

from dralloc.objects.api.claims import ResourceClaim, ResourceClaimTemplate
from dralloc.objects.api.disclosure import POD_CLAIM_ANNOTATION
from dralloc.objects.api.groups import PodGroup
from dralloc.objects.api.node_selectors import selector_matches
from dralloc.objects.api.nodes import (
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from dralloc.objects.api.objects import ApiObject, ObjectMeta, OwnerReference, changed
from dralloc.objects.api.owners import PodOwner
from dralloc.objects.api.placement import Affinity, NodeAffinity
from dralloc.objects.api.tolerating import CORDON_TOLERATION, all_tolerated
from dralloc.objects.api.workloads import Pod, PodSpec

__all__ = [
    "POD_CLAIM_ANNOTATION",
    "claim_for",
    "claim_name",
    "generated_name",
    "pods_of",
]

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes makes suffixes of: no vowels, so that no words come out."""
_SUFFIX_LENGTH: Final = 5
_LONGEST_BASE: Final = 63 - _SUFFIX_LENGTH


def generated_name(base: str, *identity: str) -> str:
    """`base` with a suffix of five characters, as ``generateName`` makes it, but always the same for one identity."""
    number = int.from_bytes(
        hashlib.sha256("/".join((base, *identity)).encode()).digest()
    )
    suffix = ""
    for _ in range(_SUFFIX_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        suffix += _ALPHABET[digit]
    return base[:_LONGEST_BASE] + suffix


def pods_of(owner: PodOwner, nodes: Sequence[Node]) -> Iterator[Pod]:
    """The pods that an object asks for, named by number: ``web-0``, ``web-1``.

    A DaemonSet asks for one on each node that node selector and required node affinity of its template match and whose
    taints it tolerates, cordoned or not; they are named by node. Source: ``daemon_controller.go`` of
    kube-controller-manager.
    """
    for one in owner.sets:
        each: Iterable[tuple[Iterable[object], PodSpec]]
        if owner.form.everywhere:
            homes = (node for node in nodes if _belongs_on(one.template.spec, node))
            each = (((node.name,), _pinned(one.template.spec, node)) for node in homes)
        else:
            numbers = product(*(range(*bounds) for bounds in one.ranges))
            each = ((place, one.template.spec) for place in numbers)
        for words, spec in each:
            name = "-".join(filter(None, (owner.name, one.name, *map(str, words))))
            yield Pod(metadata=_metadata(owner, one.template.metadata, name), spec=spec)


def _metadata(owner: PodOwner, template: ObjectMeta, name: str) -> ObjectMeta:
    return changed(
        template,
        name=name,
        namespace=owner.metadata.namespace,
        creation_timestamp=owner.metadata.creation_timestamp,
        owner_references=(_reference(owner),),
    )


def _belongs_on(daemon: PodSpec, node: Node) -> bool:
    """Whether a DaemonSet has a pod on the node."""
    required = daemon.required_nodes
    return (
        daemon.node_selector.items() <= node.metadata.labels.items()
        and (required is None or selector_matches(required, node))
        and all_tolerated(node.spec.taints, (*daemon.tolerations, CORDON_TOLERATION))
    )


def _pinned(daemon: PodSpec, node: Node) -> PodSpec:
    """What a DaemonSet makes of its template for a node."""
    here = NodeSelectorRequirement(
        key="metadata.name", operator="In", values=(node.name,)
    )
    required = NodeSelector(
        node_selector_terms=(NodeSelectorTerm(match_fields=(here,)),)
    )
    affinity = Affinity(node_affinity=NodeAffinity(required=required))
    return changed(
        daemon, affinity=affinity, tolerations=(*daemon.tolerations, CORDON_TOLERATION)
    )


def claim_name(owner: Pod | PodGroup, entry: str) -> str:
    """A name for the claim of one entry of a pod or PodGroup: ``<owner>-<entry>-<suffix>``."""
    kind = () if isinstance(owner, Pod) else (owner.kind,)
    return generated_name(f"{owner.name}-{entry}-", owner.key.namespace, *kind)


def claim_for(
    owner: Pod | PodGroup, entry: str, template: ResourceClaimTemplate, name: str
) -> ResourceClaim:
    """The claim that the resource claim controller makes for one entry of a pod (KEP-4381) or PodGroup (KEP-5729).

    Parameters
    ----------
    owner
        Whom the claim is for and will belong to.
    entry
        The name of the entry in ``spec.resourceClaims``.
    template
        The template that the entry names.
    name
        The claim's name.
    """
    blueprint = template.spec.metadata
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=owner.metadata.namespace,
            labels=blueprint.labels,
            annotations={**blueprint.annotations, POD_CLAIM_ANNOTATION: entry},
            creation_timestamp=owner.metadata.creation_timestamp,
            owner_references=(_reference(owner),),
        ),
        spec=template.spec.spec,
    )


def _reference(owner: ApiObject) -> OwnerReference:
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        uid=owner.metadata.uid,
        controller=True,
    )
