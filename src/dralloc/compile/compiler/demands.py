"""The demands, in the order in which the scheduler would take them, with the nodes where each may go.

Demands are ordered as the scheduler would take pods: higher priority first, then older first, then as given. First the
nodes on which a pod may be placed, then constraints over several claims, then the demands.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import chain
from typing import Final

from dralloc.compile.compiler.extended import DevicePlugins
from dralloc.compile.compiler.gangs import Gangs
from dralloc.compile.compiler.node_amounts import Footprints
from dralloc.compile.inventory import Inventory
from dralloc.compile.match import MatchTable
from dralloc.compile.match.derived import DerivedAttributes
from dralloc.compile.match.requests import (
    compile_claim,
    compile_equal_claim,
    in_claim,
)
from dralloc.objects.api import (
    ApiObject,
    NodeSelector,
    Pod,
    ResourceClaim,
    Toleration,
)
from dralloc.objects.api import Node as ApiNode
from dralloc.objects.api.disclosure import HOSTNAME_LABEL
from dralloc.objects.api.owners import generated_name
from dralloc.objects.api.selecting import (
    all_tolerated,
    goes_to_cordoned,
    names_of,
    selector_matches,
)
from dralloc.objects.assembly.unasked import Unasked
from dralloc.objects.choices import Ignored
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError, Finding
from dralloc.objects.names import ClaimKey, RequestName
from dralloc.objects.user_rules import ACROSS, Across, annotated
from dralloc.problem import (
    Claim,
    Constraint,
    ConstraintKind,
    Demand,
    NodeIndex,
    Numbered,
    Scalar,
    Scope,
    indices,
    numbered,
)
from dralloc.problem.subproblem import held_values

__all__ = ["MAX_CONSUMERS", "ConstraintsAcross", "Demands", "find_across"]

# ----------------------------------------------------------------------------
# On which nodes a pod may be placed, as far as the pod itself and its allocated
# claims say.


class Where:
    """Finds nodes. Pods with equal rules, as most pods have, get the same answer at once.

    Parameters
    ----------
    tainted
        Whether taints of nodes keep pods away that do not tolerate them.
    """

    def __init__(
        self, nodes: Numbered[NodeIndex, ApiNode], *, tainted: bool = True
    ) -> None:
        self._nodes = nodes
        self._tainted = tainted and any(node.spec.taints for node in nodes)
        self._by_name = {
            node.metadata.name: index for index, node in numbered(self._nodes)
        }
        self._known: dict[Hashable, tuple[NodeIndex, ...] | None] = {}

    def of(
        self,
        pod: Pod,
        selectors: Sequence[NodeSelector],
        elsewhere: frozenset[str],
    ) -> tuple[NodeIndex, ...] | None:
        """Indices of the nodes for a pod, in order; None for all.

        Parameters
        ----------
        selectors
            Of the claims that it uses.
        elsewhere
            Names of nodes that are not for the pod.
        """
        if pod.spec.node_name:
            # A pod that has a node goes nowhere else, whatever its rules say of that node now.
            index = self._by_name.get(pod.spec.node_name)
            return () if index is None else (index,)
        affinity = pod.spec.required_nodes
        if affinity:
            selectors = [*selectors, affinity]
        labels = pod.spec.node_selector
        to_cordoned = goes_to_cordoned(pod)
        # Where no taint counts, pods with different tolerations get the same answer.
        tolerations = pod.spec.tolerations if self._tainted else ()
        key = (
            tuple(labels.items()),
            repr(selectors) if selectors else "",
            elsewhere,
            to_cordoned,
            tolerations,
        )
        if key not in self._known:
            homes = [
                index
                for index in self._named(labels, selectors)
                if labels.items() <= self._nodes[index].metadata.labels.items()
                and self._admits(
                    self._nodes[index], selectors, elsewhere, tolerations
                )
            ]
            self._known[key] = (
                self._all_or(homes) if to_cordoned else self._schedulable(homes)
            )
        return self._known[key]

    def _admits(
        self,
        node: ApiNode,
        selectors: Sequence[NodeSelector],
        elsewhere: frozenset[str],
        tolerations: Sequence[Toleration],
    ) -> bool:
        """Whether a node is for a pod as far as names, node selectors and taints are concerned."""
        if node.metadata.name in elsewhere:
            return False
        if not all(selector_matches(selector, node) for selector in selectors):
            return False
        return not self._tainted or all_tolerated(node.spec.taints, tolerations)

    def _named(
        self, labels: Mapping[str, str], selectors: Iterable[NodeSelector]
    ) -> Sequence[NodeIndex]:
        """The nodes that rules name, lest all be looked at for each pod of a DaemonSet; all if rules name none."""
        named: list[set[NodeIndex]] = []
        for names in map(names_of, selectors):
            if names is not None:
                known_names = (name for name in names if name in self._by_name)
                named.append({self._by_name[name] for name in known_names})
        if HOSTNAME_LABEL in labels:
            named.append(set(self._by_hostname.get(labels[HOSTNAME_LABEL], ())))
        return (
            sorted(set.intersection(*named)) if named else indices(self._nodes)
        )

    @cached_property
    def _by_hostname(self) -> Mapping[str, Sequence[NodeIndex]]:
        by_hostname: dict[str, list[NodeIndex]] = defaultdict(list)
        for index, node in numbered(self._nodes):
            by_hostname[node.metadata.labels.get(HOSTNAME_LABEL, "")].append(
                index
            )
        return by_hostname

    def everywhere(self) -> tuple[NodeIndex, ...] | None:
        """The nodes for a pod without rules."""
        if () not in self._known:
            self._known[()] = self._schedulable(indices(self._nodes))
        return self._known[()]

    def _schedulable(
        self, nodes: Iterable[NodeIndex]
    ) -> tuple[NodeIndex, ...] | None:
        return self._all_or(
            index
            for index in nodes
            if not self._nodes[index].spec.unschedulable
        )

    def _all_or(
        self, nodes: Iterable[NodeIndex]
    ) -> tuple[NodeIndex, ...] | None:
        indices = tuple(nodes)
        return None if len(indices) == len(self._nodes) else indices


# ----------------------------------------------------------------------------
# Constraints over the claims of a pod, or of all pods of a group, and what devices
# that they hold mean for them.
#
# Neither Kubernetes nor its scheduler knows such constraints: a claim can only say
# what is to be true of its own devices.


@dataclass(frozen=True)
class ConstraintsAcross:
    """The constraints of each pod that go beyond single claims.

    Parameters
    ----------
    of_pods
        By pod.
    groups
        The pods of each group that has some.
    defects
        Why a pod cannot be placed whatever it gets: what is allocated breaks one of them.
    """

    of_pods: Mapping[ClaimKey, tuple[Constraint, ...]] = field(
        default_factory=dict
    )
    groups: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    defects: Mapping[ClaimKey, str] = field(default_factory=dict)

    @property
    def attributes(self) -> frozenset[str]:
        """The names of the attributes that they compare."""
        constraints = chain.from_iterable(self.of_pods.values())
        return frozenset(constraint.attribute for constraint in constraints)

    def beside(
        self, cluster: Cluster, inventory: Inventory
    ) -> ConstraintsAcross:
        """Return the constraints together with the values that the pods' allocated claims have already."""

        # The pods of a group share its constraints, so each is worked out once for all of them.
        @cache
        def beside(
            constraint: Constraint, scope: Scope, pod: ClaimKey | None
        ) -> tuple[Constraint, str]:
            pods = (
                [pod]
                if pod
                else [member.key for member in self.groups[scope.group]]
            )
            claims = dict.fromkeys(
                key for member in pods for key in cluster.claims_of_pods[member]
            )
            values: list[frozenset[Scalar] | None] = []
            for key in claims:
                values += _values(constraint, cluster.claim(key), inventory)
            held = held_values(constraint.kind, values)
            if held is not None:
                return replace(constraint, scope=scope._replace(held=held)), ""
            # The constraint stays as it was: the defect keeps the pods from being placed.
            holder = "the pod" if pod else f"group {scope.group}"
            rule = f"{constraint.kind.value} {constraint.attribute} over the claims of {holder}"
            return constraint, f"{rule}: devices that they hold violate it"

        of_pods: dict[ClaimKey, tuple[Constraint, ...]] = {}
        defects: dict[ClaimKey, str] = {}
        for pod, constraints in self.of_pods.items():
            narrowed = []
            for constraint in constraints:
                if scope := constraint.scope:
                    holder = None if scope.group else pod
                    beside_held, defect = beside(constraint, scope, holder)
                    narrowed.append(beside_held)
                    if defect:
                        defects[pod] = f"pod {pod}: {defect}"
            of_pods[pod] = tuple(narrowed)
        return replace(self, of_pods=of_pods, defects=defects)


def find_across(
    cluster: Cluster, gangs: Gangs, across: Sequence[Across]
) -> ConstraintsAcross:
    """Find the constraints over several claims: those that objects say, then those that are asked for.

    Raises
    ------
    DrallocError
        An annotation has another form.
    """
    over_gangs = [chosen for chosen in across if chosen.over == "gang"]
    over_pods = [chosen for chosen in across if chosen.over == "pod"]
    of_groups: dict[str, tuple[Constraint, ...]] = {}
    for name, group in gangs.groups.items():
        annotated_or_chosen = (*_annotated(group.about, "gang"), *over_gangs)
        of_groups[name] = tuple(_constraints(annotated_or_chosen, name))
    of_pods: dict[ClaimKey, tuple[Constraint, ...]] = {}
    for pod in cluster.pods:
        annotated_or_chosen = (*_annotated(pod, "pod"), *over_pods)
        of_pods[pod.key] = tuple(_constraints(annotated_or_chosen, ""))
    groups: dict[str, Sequence[Pod]] = {}
    for name, constraints in of_groups.items():
        if constraints:
            groups[name] = gangs.groups[name].pods
            for pod in groups[name]:
                of_pods[pod.key] += constraints
    return ConstraintsAcross(
        {
            pod: constraints
            for pod, constraints in of_pods.items()
            if constraints
        },
        groups,
    )


def _annotated(about: ApiObject | None, over: str) -> tuple[Across, ...]:
    text = about.metadata.annotations.get(ACROSS) if about else None
    if about is None or text is None:
        return ()
    try:
        return annotated(text, over)
    except ValueError as error:
        raise DrallocError(
            f'{about.title}: metadata.annotations["{ACROSS}"]: {error}'
        ) from None


def _constraints(across: Iterable[Across], group: str) -> Iterator[Constraint]:
    for constraint_index, spanning in enumerate(across):
        yield Constraint(
            ConstraintKind(spanning.kind),
            spanning.attribute,
            frozenset(spanning.requests),
            scope=Scope(constraint_index, group),
        )


def _values(
    constraint: Constraint, claim: ResourceClaim | None, inventory: Inventory
) -> Iterator[frozenset[Scalar] | None]:
    """The values of the devices that a claim holds under a constraint."""
    if claim is None or not claim.is_allocated:
        return
    form = in_claim(constraint, claim.spec.devices, inventory.features)
    # Attributes that the claim's own requests derive are not among those of the device (KEP-6080).
    derived = DerivedAttributes(
        (
            attribute.expression
            for _, details in claim.spec.devices.alternatives
            for attribute in details.derived_attributes
            if form.derived and attribute.name == form.attribute
        ),
        inventory.features,
    )
    for result in claim.results:
        name = RequestName(*result.request.split("/"))
        if form.covers(name):
            newest = inventory.newest(result.device_id)
            if newest is None:
                yield None
                continue
            source = inventory.sources[newest]
            attributes = {
                **inventory.devices[newest].attributes,
                **derived.of(source.slice.spec.driver, source.device),
            }
            yield attributes.get(form.compared(name))


MAX_CONSUMERS: Final = 256
"""Most pods that can use one claim at a time (``ResourceClaimReservedForMaxSize`` of resource.k8s.io)."""

_NOWHERE: Final[frozenset[str]] = frozenset()


@dataclass
class Demands:
    """Works out the demands of a cluster.

    Parameters
    ----------
    elsewhere
        Names of nodes that are not for a pod, by pod.
    refused
        Why a claim cannot be made, by claim.
    ignored
        What of that which binds pods to nodes does not count.
    unasked
        The pods that are no part of any demand, and why, once the demands are there.
    findings
        Remarks, once the demands are there.
    """

    cluster: Cluster
    nodes: Sequence[ApiNode]
    table: MatchTable
    elsewhere: Mapping[ClaimKey, frozenset[str]]
    refused: Mapping[ClaimKey, str]
    gangs: Gangs
    across: ConstraintsAcross
    plugins: DevicePlugins
    ignored: frozenset[Ignored] = frozenset()
    unasked: dict[ClaimKey, Unasked] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    _known: dict[tuple[int, tuple[Constraint, ...]], Claim] = field(
        default_factory=dict
    )
    _compiled: dict[tuple[ClaimKey, tuple[Constraint, ...]], Claim] = field(
        default_factory=dict
    )
    _allocated: dict[ClaimKey, Sequence[ResourceClaim]] = field(
        default_factory=dict
    )
    """By pod with a demand, those of its claims that are allocated."""

    def in_order(self) -> tuple[Demand, ...]:
        """Return all demands, in the order in which the scheduler would take them."""
        entries = [*self._of_pods(), *self._of_lone_claims()]
        self.unasked.update(self.cluster.gone)
        for pod in self.cluster.suspended:
            asks = pod.spec.resource_claims or self.plugins.asked(pod)
            self.unasked[pod.key] = (
                Unasked.SUSPENDED if asks else Unasked.NO_DEVICE
            )
        entries.sort(
            key=lambda entry: (
                -entry[1].priority,
                entry[0] is None,
                entry[0] or "",
            )
        )
        return self._with_few_consumers([demand for _, demand in entries])

    def _of_pods(self) -> Iterator[tuple[str | None, Demand]]:
        for pod in self.cluster.pods:
            claims: list[Claim] = []
            allocated: list[ResourceClaim] = []
            name = pod.key
            across = self.across.of_pods.get(name, ())
            for key in (
                self.cluster.claims_of_pods[name]
                if not pod.spec.scheduling_gates
                else ()
            ):
                claim = self.cluster.claim(key)
                if claim is None:
                    reason = "; ".join(self.cluster.unresolved.get(name, ()))
                    claims.append(
                        Claim(key, "", (), defect=f"pod {name}: {reason}")
                    )
                elif claim.is_allocated:
                    allocated.append(claim)
                else:
                    if (key, across) not in self._compiled:
                        self._compiled[key, across] = self._compile(
                            claim, across
                        )
                    claims.append(self._compiled[key, across])
            if claims or not allocated:
                # A pod whose claims are all allocated is not waiting for what is
                # nowhere.
                claims += self._of_no_node(pod)
            if claims and name in self.across.defects:
                claims.append(
                    Claim(
                        claims[0].key, "", (), defect=self.across.defects[name]
                    )
                )
            if claims:
                yield (
                    pod.metadata.creation_timestamp,
                    self._demand(pod, claims, allocated),
                )
            else:
                self.unasked[name] = self._why_unasked(pod)

    def _of_no_node(self, pod: Pod) -> Iterator[Claim]:
        """Return the stand-in for extended resources that no node has."""
        missing = (
            self.plugins.missing(pod)
            if not (pod.spec.node_name or pod.spec.scheduling_gates)
            else ()
        )
        if missing:
            key = ClaimKey(
                pod.key.namespace,
                generated_name(
                    f"{pod.name}-extended-resources-", pod.key.namespace
                ),
            )
            defect = f"pod {pod.key}: no DeviceClass and no node offers {', '.join(missing)}"
            yield Claim(key, "", (), defect=defect)

    def _why_unasked(self, pod: Pod) -> Unasked:
        """Return why nothing of a pod is pending."""
        claims = self.cluster.pod_claims(pod)
        if not claims and not self.plugins.asked(pod):
            return Unasked.NO_DEVICE
        if pod.spec.scheduling_gates:
            return Unasked.GATED
        if pod.spec.node_name:
            return Unasked.BOUND
        return Unasked.ALLOCATED if claims else Unasked.PLUGIN

    @cached_property
    def _where(self) -> Where:
        return Where(self.nodes, tainted=Ignored.TAINTS not in self.ignored)

    def _demand(
        self,
        pod: Pod,
        claims: Sequence[Claim],
        allocated: Sequence[ResourceClaim],
    ) -> Demand:
        key = pod.key
        self._allocated[key] = allocated
        obstacles = [(claim, self._obstacle(claim, pod)) for claim in allocated]
        # An allocated claim asks for nothing. One that the pod cannot use is in the demand all the same, with a defect
        # that keeps it from being placed.
        blocked = [
            Claim(claim.key, "", (), defect=f"pod {key}: {reason}")
            for claim, reason in obstacles
            if reason
        ]
        selectors = []
        for claim in allocated:
            allocation = claim.status.allocation
            if allocation is not None and allocation.node_selector is not None:
                selectors.append(allocation.node_selector)
        gang = self.gangs.of(pod)
        elsewhere = self.elsewhere.get(key, _NOWHERE) | gang.elsewhere
        return Demand(
            key=key,
            claims=(*claims, *blocked),
            priority=pod.spec.priority or 0,
            nodes=()
            if gang.halted
            else self._where.of(pod, selectors, elsewhere),
            gang=gang.name,
            quorum=gang.quorum,
            roles=gang.roles,
            parent=gang.parent,
        )

    def _obstacle(self, claim: ResourceClaim, pod: Pod) -> str:
        """Return why a pod cannot use a claim that is allocated already (upstream's plugin); empty if it can."""
        if claim.metadata.deletion_timestamp is not None:
            return f'resourceclaim "{claim.name}" is being deleted'
        users = {
            (user.resource, user.name) for user in claim.status.reserved_for
        }
        if (
            len(users) >= MAX_CONSUMERS
            and self.cluster.consumer(pod.key, claim.key) not in users
        ):
            full = f"status.reservedFor has {len(users)} entries of at most {MAX_CONSUMERS}"
            return f'resourceclaim "{claim.name}" is in use: {full}'
        if users - {
            self.cluster.consumer(pod.key, claim.key)
        } and self._footprints.is_mapped(claim):
            return f'resourceclaim "{claim.name}" has a mapped device and cannot be shared across pods'
        return ""

    @cached_property
    def _footprints(self) -> Footprints:
        return Footprints(self.cluster, self.table.inventory.devices)

    def _of_lone_claims(self) -> Iterator[tuple[str | None, Demand]]:
        waited_for = self.cluster.lone_claims - self.cluster.abandoned
        for claim in self.cluster.claims:
            waiting = (
                claim.status.allocation is None
                and claim.metadata.deletion_timestamp is None
            )
            if claim.key in waited_for and waiting:
                nodes = self._where.everywhere()
                yield (
                    claim.metadata.creation_timestamp,
                    Demand(claim.key, (self._compile(claim),), nodes=nodes),
                )

    def _compile(
        self, claim: ResourceClaim, across: tuple[Constraint, ...] = ()
    ) -> Claim:
        # Claims of one template share their specification.
        name = id(claim.spec), across
        equal_claim = self._known.get(name)
        if equal_claim is None:
            compiled = compile_claim(
                claim,
                self.cluster.classes,
                self.table,
                self.table.features,
                across,
            )
            if not compiled.is_defective:
                self._known[name] = compiled
        else:
            compiled = compile_equal_claim(claim, equal_claim, self.table)
        defect = self.refused.get(claim.key, "")
        if claim.metadata.deletion_timestamp is not None:
            defect = f'claim {claim.key}: resourceclaim "{claim.name}" is being deleted'
        return replace(compiled, defect=defect) if defect else compiled

    def _with_few_consumers(
        self, demands: Sequence[Demand]
    ) -> tuple[Demand, ...]:
        """The demands, where a claim has more users than it may have only the first ones with nodes to go to.

        Users of an allocated claim count, too: those that have reserved it, and who comes with a claim of its own.
        """
        used = [self._used(demand) for demand in demands]
        users_of = Counter(chain.from_iterable(used))
        most: dict[ClaimKey, int] = defaultdict(lambda: MAX_CONSUMERS)
        for allocated in chain.from_iterable(self._allocated.values()):
            users_of[allocated.key] += len(allocated.status.reserved_for)
            if self._footprints.is_mapped(allocated):
                # It is for one pod (KEP-5517).
                most[allocated.key] = 1
        if all(users <= most[key] for key, users in users_of.items()):
            return tuple(demands)
        # By claim, its consumers with their place in the queue. Pods of one group can be one consumer.
        queues: dict[ClaimKey, dict[tuple[str, str], int]] = defaultdict(dict)
        for allocated in chain.from_iterable(self._allocated.values()):
            # Whoever has reserved an allocated claim comes first.
            for reservation in allocated.status.reserved_for:
                users = queues[allocated.key]
                user = reservation.resource, reservation.name
                users.setdefault(user, len(users))
        limited: list[Demand] = []
        for demand, claims in zip(demands, used, strict=True):
            is_late = False
            for claim in claims:
                users = queues[claim]
                user = self.cluster.consumer(demand.key, claim)
                is_late |= users.setdefault(user, len(users)) >= most[claim]
            # A defect says more about why it is not placed.
            is_late = is_late and not demand.is_defective
            limited.append(replace(demand, nodes=()) if is_late else demand)
        for key, users in queues.items():
            shared_claim, user_count = self.cluster.claim(key), len(users)
            if user_count > most[key] and shared_claim is not None:
                rule = (
                    f"{user_count} pods want it, but only {most[key]} can use it at a time: "
                    "the others are not placed"
                )
                self.findings.append(
                    self.cluster.remark(
                        shared_claim, "status.reservedFor", rule
                    )
                )
        return tuple(limited)

    def _used(self, demand: Demand) -> Sequence[ClaimKey]:
        """The claims that a demand uses once it is placed, those that are allocated already among them."""
        claims = [claim.key for claim in demand.claims]
        if not self.cluster.is_lone(demand.key, claims):
            claims += [claim.key for claim in self._allocated[demand.key]]
        return list(dict.fromkeys(claims))
