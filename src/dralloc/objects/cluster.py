"""The cluster as the API server holds it: slices, classes, nodes, claims, templates and pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import starmap
from os import PathLike

from dralloc.objects.answer import Answer
from dralloc.objects.api import (
    ApiObject,
    CompositePodGroup,
    DeviceClass,
    DeviceTaintRule,
    Namespace,
    Node,
    Pod,
    PodGroup,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceQuota,
    ResourceSlice,
    ResourceSliceSpec,
    Workload,
)
from dralloc.objects.api.base import changed
from dralloc.objects.assembly.claiming import Claiming, belongs_to
from dralloc.objects.assembly.given_objects import Located, Objects, identity
from dralloc.objects.assembly.missing_objects import (
    SYNTHETIC_NODE,
    assumed_nodes,
    missing_classes,
)
from dralloc.objects.assembly.population import Population
from dralloc.objects.assembly.unasked import Unasked
from dralloc.objects.choices import Include, several
from dralloc.objects.errors import DrallocError, Finding, InputError
from dralloc.objects.features import Features
from dralloc.objects.limits import LIMITS, Limits
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Part, Table

__all__ = ["SYNTHETIC_NODE", "Cluster", "Located", "cluster_of"]

Given = Iterable[ApiObject | Located]


@dataclass(frozen=True, repr=False)
class Cluster(Answer):
    """The given objects, made complete: pods of owners and claims of templates are there as objects.

    Made by `Cluster.of`; the constructor takes the parts as they are. ``print(cluster)`` shows how much there is.

    Parameters
    ----------
    slices, nodes, templates
        As given, in order.
    classes
        DeviceClasses by name.
    claims
        Given claims in order, then those made from templates in the order of their pods.
    pods
        Pods in order, with those that a controller would make of a Deployment, Job or another owner in its place.
    findings
        Remarks about the input, none of which makes it unusable.
    skipped
        How many objects of other kinds were given.
    claims_of_pods
        For each pod by its key, the keys of the claims that it uses. A claim that is missing is named here too.
    unresolved
        For each pod that refers to something missing, what is missing. Such a pod cannot be placed.
    namespaces
        Namespaces by name, as far as they were given.
    sources
        Where each given object was read, by kind and key. Claims made from templates are not in it.
    taint_rules, quotas
        As given, in order.
    pod_groups, composite_pod_groups, workloads
        By key.
    made
        The claims that were not given, but made from templates.
    abandoned
        Claims that were made for pods which have ended or are being deleted, or for an earlier pod with the name of
        another one: nobody waits for them.
    group_claims
        The PodGroup whose claim a pod uses, by pod and claim: it is reserved for the group as a whole (KEP-5729).
    suspended
        Pods that suspended owners would make; no claims are made for them.
    gone
        Pods that have run to their end or are being deleted, and why they are not among the others.
    server_version
        The version of the API server that all this was read from, such as ``v1.36.2``; empty if it is not known.

    Examples
    --------
    >>> import dralloc
    >>> cluster = dralloc.example()
    >>> [str(claim.key) for claim in cluster.claims if claim.status.allocation is None]
    ['default/any', 'default/large']
    """

    slices: tuple[ResourceSlice, ...] = ()
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    nodes: tuple[Node, ...] = ()
    claims: tuple[ResourceClaim, ...] = ()
    templates: tuple[ResourceClaimTemplate, ...] = ()
    pods: tuple[Pod, ...] = ()
    findings: tuple[Finding, ...] = ()
    skipped: Mapping[str, int] = field(default_factory=dict)
    claims_of_pods: Mapping[ClaimKey, tuple[ClaimKey, ...]] = field(
        default_factory=dict
    )
    unresolved: Mapping[ClaimKey, tuple[str, ...]] = field(default_factory=dict)
    namespaces: Mapping[str, Namespace] = field(default_factory=dict)
    sources: Mapping[tuple[str, ClaimKey], str] = field(default_factory=dict)
    taint_rules: tuple[DeviceTaintRule, ...] = ()
    quotas: tuple[ResourceQuota, ...] = ()
    pod_groups: Mapping[ClaimKey, PodGroup] = field(default_factory=dict)
    composite_pod_groups: Mapping[ClaimKey, CompositePodGroup] = field(
        default_factory=dict
    )
    workloads: Mapping[ClaimKey, Workload] = field(default_factory=dict)
    made: frozenset[ClaimKey] = frozenset()
    abandoned: frozenset[ClaimKey] = frozenset()
    group_claims: Mapping[tuple[ClaimKey, ClaimKey], PodGroup] = field(
        default_factory=dict
    )
    suspended: tuple[Pod, ...] = ()
    gone: Mapping[ClaimKey, Unasked] = field(default_factory=dict)
    server_version: str = ""

    @classmethod
    def of(
        cls,
        objects: Given,
        findings: Iterable[Finding] = (),
        skipped: Mapping[str, int] | None = None,
        limits: Limits = LIMITS,
    ) -> Cluster:
        """Build the cluster from single objects.

        Pods are made for an owner unless an object that it controls is given. Claims are made for entries of pods that
        name a template, unless the claim is given. Without Node objects the nodes are those that slices name; if they
        name none but are available on all nodes, there is one node, `SYNTHETIC_NODE`.

        Raises
        ------
        InputError
            The same object is given twice with different content, or owners ask for more pods than the limit allows.
        """
        cluster, repeated, errors = cls.usable(
            objects, findings, skipped or {}, limits
        )
        if errors := repeated + errors:
            raise InputError(errors)
        return cluster

    @classmethod
    def usable(
        cls,
        objects: Given,
        findings: Iterable[Finding],
        skipped: Mapping[str, int],
        limits: Limits,
        *,
        overriding: bool = False,
    ) -> tuple[Cluster, list[Finding], list[Finding]]:
        """Do the same as `of`, with what is wrong beside it: objects of one name, of which the first is used; the rest.

        Parameters
        ----------
        overriding
            Whether objects of later files take the place of those with their names in earlier ones, with a remark.
        """
        located = Objects(objects, overriding=overriding)
        slices, nodes, assumed = (
            tuple(located.of(ResourceSlice)),
            tuple(located.of(Node)),
            "",
        )
        if slices and not nodes:
            nodes, assumed = assumed_nodes(slices)
        # DaemonSets have a pod on each node, so that the nodes come before the pods.
        population = Population(located, nodes, limits.pods)
        cluster = cls(
            slices=slices,
            classes={named.name: named for named in located.of(DeviceClass)},
            nodes=nodes,
            claims=tuple(located.of(ResourceClaim)),
            templates=tuple(located.of(ResourceClaimTemplate)),
            skipped=dict(skipped),
            namespaces={named.name: named for named in located.of(Namespace)},
            sources=located.sources,
            taint_rules=tuple(located.of(DeviceTaintRule)),
            quotas=tuple(located.of(ResourceQuota)),
            pod_groups={named.key: named for named in located.of(PodGroup)},
            composite_pod_groups={
                named.key: named for named in located.of(CompositePodGroup)
            },
            workloads={named.key: named for named in located.of(Workload)},
            suspended=tuple(population.suspended),
            gone=population.gone,
        )
        # Claims of pods come last: templates and groups must be there to make them from.
        given_pods = {pod.key: pod for pod in located.of(Pod)}
        abandoned = cluster._made_in_vain(given_pods, population.gone)
        cluster = replace(cluster, abandoned=frozenset(abandoned))._with_pods(
            population.pods
        )
        # Remarks name where an object was read, which only the cluster knows.
        remarks = (
            *population.remarks,
            *missing_classes(located, cluster.classes),
        )
        said = (
            *findings,
            *_skipped_notice(cluster.skipped),
            *located.findings,
            *starmap(cluster.remark, remarks),
        )
        assumption = [Finding("", "", "", assumed)] if assumed else []
        excesses = list(starmap(cluster.remark, population.excesses))
        return (
            replace(cluster, findings=(*said, *cluster.findings, *assumption)),
            located.errors,
            excesses,
        )

    def including(self, include: str | Iterable[str]) -> Cluster:
        """Return the cluster as if ``"gated"`` pods, or those of ``"suspended"`` owners, were to be scheduled.

        Raises
        ------
        ChoiceError
            Something else is to be included.
        """
        inclusions = several(Include, "inclusion", include)
        if not inclusions:
            return self
        pods, suspended = self.pods, self.suspended
        if Include.GATED in inclusions:
            pods = tuple(map(_ungated, pods))
            suspended = tuple(map(_ungated, suspended))
        if Include.SUSPENDED not in inclusions:
            return replace(self, pods=pods)
        return replace(self, pods=pods, suspended=())._with_pods(suspended)

    def settled(
        self, claims: Iterable[ResourceClaim], nodes: Mapping[ClaimKey, str]
    ) -> Cluster:
        """Return the cluster in which claims are as given, allocated, and pods are on these nodes."""
        written = {claim.key: claim for claim in claims}
        return replace(
            self,
            claims=tuple(
                written.get(claim.key, claim) for claim in self.claims
            ),
            pods=tuple(
                _bound(pod, nodes[pod.key]) if pod.key in nodes else pod
                for pod in self.pods
            ),
        )

    def with_gates(self, features: Features) -> Cluster:
        """Return the cluster as controllers and an API server with these gates would have made it.

        With ``WorkloadResourceClaims`` off, each pod has claims of its own where its PodGroup has one for all. With
        ``TaintTolerationComparisonOperators`` off, tolerations that compare numbers are none.
        """
        cluster = self
        if not features.TaintTolerationComparisonOperators:
            pods = tuple(map(_without_comparisons, self.pods))
            cluster = replace(self, pods=pods)
        if not features.WorkloadResourceClaims and self.group_claims:
            cluster = cluster._with_own_claims()
        return cluster

    def _with_own_claims(self) -> Cluster:
        """Return the cluster in which no claim is a PodGroup's."""
        sharing = {pod for pod, _ in self.group_claims}
        of_groups = {claim for _, claim in self.group_claims} & self.made
        groups = {
            key: changed(group, spec=changed(group.spec, resource_claims=()))
            for key, group in self.pod_groups.items()
        }
        rest = replace(
            self,
            claims=tuple(
                claim for claim in self.claims if claim.key not in of_groups
            ),
            pods=tuple(pod for pod in self.pods if pod.key not in sharing),
            pod_groups=groups,
            made=self.made - of_groups,
            group_claims={},
        )
        completed = rest._with_pods(
            pod for pod in self.pods if pod.key in sharing
        )
        return replace(completed, pods=self.pods)

    def _with_pods(self, pods: Iterable[Pod]) -> Cluster:
        """Return the cluster with more pods, and the claims that they need."""
        added_pods = tuple(pods)
        claiming = Claiming(self.claims, self.templates, self.pod_groups)
        # Several entries of a pod may stand for one claim, which needs its devices once.
        claims_of_pods = {
            pod.key: tuple(dict.fromkeys(claiming.of(pod)))
            for pod in added_pods
        }
        return replace(
            self,
            claims=tuple(claiming.claims.values()),
            pods=(*self.pods, *added_pods),
            findings=(
                *self.findings,
                *starmap(self.remark, claiming.remarks()),
            ),
            claims_of_pods={**self.claims_of_pods, **claims_of_pods},
            unresolved={**self.unresolved, **claiming.unresolved},
            made=self.made
            | (claiming.claims.keys() - {claim.key for claim in self.claims}),
            group_claims={**self.group_claims, **claiming.group_claims},
        )

    def _made_in_vain(
        self, pods: Mapping[ClaimKey, Pod], gone: Collection[ClaimKey]
    ) -> Iterator[ClaimKey]:
        """Yield the claims that were made for pods which are gone, or for earlier ones with the names of others."""
        for claim in self.claims:
            for reference in claim.metadata.owner_references:
                key = ClaimKey(claim.key.namespace, reference.name)
                if reference.kind != Pod.kind or key not in pods:
                    continue
                if key in gone or not belongs_to(claim, pods[key]):
                    yield claim.key
                    break

    @property
    def headline(self) -> str:
        """The numbers of objects of each kind."""
        held = {
            "nodes": self.nodes,
            "slices": self.slices,
            "classes": self.classes,
            "claims": self.claims,
        }
        return ", ".join(
            f"{len(objects)} {name}"
            for name, objects in {**held, "pods": self.pods}.items()
        )

    def parts(self) -> list[Part]:
        """Return the contents of the cluster, as tables and lines."""
        return [Line(self.headline, "bold"), *self._tables()]

    def _tables(self) -> Iterator[Part]:
        """Yield the tables: what drivers publish, claims by namespace, and remarks."""
        specs_by_driver: dict[str, list[ResourceSliceSpec]] = {}
        for published in self.slices:
            specs_by_driver.setdefault(published.spec.driver, []).append(
                published.spec
            )
        rows: list[tuple[str, ...]] = []
        for driver, specs in specs_by_driver.items():
            pools = {spec.pool.name for spec in specs}
            device_count = sum(len(spec.devices) for spec in specs)
            rows.append(
                (driver, str(len(pools)), str(len(specs)), str(device_count))
            )
        yield Table(
            "Published by drivers",
            ("driver", ">pools", ">slices", ">devices"),
            rows,
        )
        allocated, totals = Counter[str](), Counter[str]()
        for claim in self.claims:
            totals[claim.key.namespace] += 1
            allocated[claim.key.namespace] += claim.is_allocated
        counts = [
            (name, str(claim_count), str(allocated[name]))
            for name, claim_count in totals.items()
        ]
        yield Table("Claims", ("namespace", ">claims", ">allocated"), counts)
        yield from (
            Line(f"warning: {finding}", "yellow") for finding in self.findings
        )

    def pod_claims(self, pod: Pod) -> tuple[ClaimKey, ...]:
        """Return the keys of the claims that a pod uses, in the order of its specification; missing claims as well."""
        return self.claims_of_pods[pod.key]

    def consumer(self, pod: ClaimKey, claim: ClaimKey) -> tuple[str, str]:
        """Return for what a claim is reserved when a pod uses it, as resource and name: pod or group (KEP-5729)."""
        group = self.group_claims.get((pod, claim))
        return (
            ("pods", pod.name) if group is None else ("podgroups", group.name)
        )

    def claim(self, key: ClaimKey) -> ResourceClaim | None:
        """Return the claim with this key, if there is one."""
        return self._claims_by_key.get(key)

    def is_lone(self, key: ClaimKey, claims: Iterable[ClaimKey]) -> bool:
        """Return whether these claims are asked for by a claim that no pod uses, not by a pod of the same name."""
        return key in self.lone_claims and [*claims] == [key]

    def is_leaving(self, claim: ResourceClaim) -> bool:
        """Return whether a claim is about to go, or to be free, as a pod that has it has ended or is being deleted."""
        users = (
            ClaimKey(claim.key.namespace, consumer.name)
            for consumer in claim.status.reserved_for
            if consumer.resource == "pods"
        )
        return (
            claim.metadata.deletion_timestamp is not None
            or claim.key in self.abandoned
            or not self.gone.keys().isdisjoint(users)
        )

    def remark(self, about: ApiObject, path: str, rule: str) -> Finding:
        """Return a finding about an object, with the place where it was read."""
        return Finding(
            self.sources.get(identity(about), ""), about.title, path, rule
        )

    @cached_property
    def lone_claims(self) -> frozenset[ClaimKey]:
        """The claims that no pod uses, nor one that a suspended owner would make."""
        used = {
            key for claims in self.claims_of_pods.values() for key in claims
        }
        for pod in self.suspended:
            used.update(
                ClaimKey(pod.key.namespace, entry.resource_claim_name or "")
                for entry in pod.spec.resource_claims
            )
        return frozenset(claim.key for claim in self.claims) - used

    @cached_property
    def pods_by_key(self) -> Mapping[ClaimKey, Pod]:
        """The pods by key."""
        return {pod.key: pod for pod in self.pods}

    @cached_property
    def _claims_by_key(self) -> Mapping[ClaimKey, ResourceClaim]:
        return {claim.key: claim for claim in self.claims}


def cluster_of(candidate: object) -> Cluster:
    """Return the cluster that a question is about; refuse all else.

    A path is not read here, as that has choices and notices of its own: `dralloc.load`.

    Raises
    ------
    DrallocError
        It is no cluster.
    """
    if isinstance(candidate, Cluster):
        return candidate
    read = (
        f"; dralloc.load({str(candidate)!r}) reads it"
        if isinstance(candidate, str | PathLike)
        else ""
    )
    raise DrallocError(
        f"cluster: must be a Cluster, as dralloc.load gives it, not {type(candidate).__name__}{read}"
    )


def _ungated(pod: Pod) -> Pod:
    return (
        changed(pod, spec=changed(pod.spec, scheduling_gates=()))
        if pod.spec.scheduling_gates
        else pod
    )


def _bound(pod: Pod, node: str) -> Pod:
    return changed(pod, spec=changed(pod.spec, node_name=node))


def _without_comparisons(pod: Pod) -> Pod:
    """Return the pod without tolerations that compare numbers (KEP-5471)."""
    tolerations = tuple(
        toleration
        for toleration in pod.spec.tolerations
        if toleration.operator not in ("Gt", "Lt")
    )
    if len(tolerations) == len(pod.spec.tolerations):
        return pod
    return changed(pod, spec=changed(pod.spec, tolerations=tolerations))


def _skipped_notice(skipped: Mapping[str, int]) -> Iterator[Finding]:
    if skipped:
        kinds = ", ".join(
            f"{kind} ({count})" for kind, count in sorted(skipped.items())
        )
        yield Finding("", "", "", f"not used: {kinds}")
