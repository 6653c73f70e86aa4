"""Single changes that would admit a demand, cheapest first. Each has been tried out before it is shown.

Suggestions to add a node, raise a cap, scale a request down and substitute one; those to release or move claims are in
`dralloc.ask.explain.release`. All of them are collected in the end.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final

from dralloc.ask.allocate import check_newcomers
from dralloc.ask.context.node_bars import Bar
from dralloc.ask.context.offers import TableOffers, Variation
from dralloc.ask.explain.conflict_members import (
    Member,
    MemberKind,
    alternatives_of,
)
from dralloc.ask.explain.oracle import Certificate, FeasibilityOracle
from dralloc.ask.explain.reasons import (
    Change,
    Cost,
    Place,
    Suggestion,
    devices_text,
    request_text,
    toleration_text,
)
from dralloc.ask.explain.release import releases
from dralloc.ask.explain.snapshot import Caps, DemandSnapshot
from dralloc.ask.scenario import Scenario
from dralloc.check.objects import Binding
from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.match import Criteria
from dralloc.compile.match.requests import compile_claim
from dralloc.compile.write import allocated_claims
from dralloc.objects.api import Node
from dralloc.objects.cluster import Cluster
from dralloc.objects.quantity import Format, Quantity
from dralloc.objects.report import amount, at_most
from dralloc.objects.user_rules import BudgetKey
from dralloc.problem import (
    Alternative,
    Claim,
    Demand,
    DeviceIndex,
    NodeIndex,
    indices,
    numbered,
)
from dralloc.problem.solution import Solution

__all__ = [
    "check_suggestions",
    "find_suggestions",
    "least_raises",
    "substitutes",
]

# ----------------------------------------------------------------------------
# Suggestions to add a node: which node types would hold the demand if there were one
# more of them, empty.

_MOST_NODES = 8


def _added_nodes(oracle: FeasibilityOracle) -> Iterator[Suggestion]:
    """Return, for each node type, one of its nodes if an empty node like it could take the demand."""
    snapshot = oracle.snapshot
    if (
        snapshot.demand.claims != snapshot.whole.claims
        or not snapshot.whole.claims
    ):
        return
    if not oracle.exact and oracle.gives_up(Change()):
        return
    added = _AddedNodes(oracle)
    types = list(islice(added.types(), _MOST_NODES))
    for rank, node in enumerate(added.holding(types)):
        yield Suggestion(
            f"add a node like {node.name}",
            "fits on the new node",
            Cost.NODE,
            rank,
        )


class _AddedNodes:
    """Clusters with one more node, at the moment that is explained."""

    def __init__(self, oracle: FeasibilityOracle) -> None:
        self.oracle = oracle
        self.moment = _at_the_moment(oracle.compiled, oracle.snapshot)
        self.nodes = {node.name: node for node in self.moment.cluster.nodes}

    def types(self) -> Iterator[Node]:
        """A node of each type to which the pod could go: equal in what it has, and in the classes of its devices."""
        snapshot, sources = (
            self.oracle.snapshot,
            self.oracle.compiled.inventory.sources,
        )
        look = snapshot.context.offers.device_key
        seen: set[Hashable] = set()
        for problem_node in snapshot.problem.nodes:
            node = self.nodes[problem_node.name]
            # The devices that come with the node: those of slices that name it.
            local = [
                device
                for device in problem_node.devices()
                if sources[device].slice.spec.node_name == problem_node.name
            ]
            key = (
                tuple(map(look, local)),
                frozenset(node.status.allocatable.items()),
            )
            if (
                local
                and key not in seen
                and not snapshot.exclusions.of_node(snapshot.whole, node)
            ):
                seen.add(key)
                yield node

    def holding(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes of which the demand fits on a new one, whatever else is asked of it there.

        The new nodes are there together, as compiling takes longer than all else. Each is empty, and the demand is
        tried on it alone. None matters to another one, not even where pods are spread over domains: a copy is in the
        domains of its original, and in one of its own name, which has nobody in it.
        """
        if not nodes:
            return []
        names = [f"{node.name} (new)" for node in nodes]
        scenario = self.moment
        for node, name in zip(nodes, names, strict=True):
            scenario = scenario.with_copy_of(node.name, name)
        if not self.oracle.snapshot.caps.budgets:
            # No device of another node alone can matter, but for what caps count.
            scenario = scenario.without_slices_of(self.nodes.keys())
        compiled = self.oracle.compiled.again(scenario.cluster, nodes=names)
        node_indices = {
            problem_node.name: index
            for index, problem_node in numbered(compiled.problem.nodes)
        }
        demand = self._demand(compiled)
        return [
            node
            for node, name in zip(nodes, names, strict=True)
            if self.oracle.fits(compiled, demand, node_indices[name])
        ]

    def _demand(self, compiled: CompiledCluster) -> Demand:
        """The explained demand as it is in the changed cluster."""
        explained = self.oracle.compiled.problem.demands[
            self.oracle.snapshot.number
        ]
        is_claim = self.oracle.compiled.is_claim(explained)
        pairs = zip(
            compiled.problem.demands, compiled.whole.demands, strict=True
        )
        return next(
            with_pod_rules
            for demand, with_pod_rules in pairs
            if demand.key == explained.key
            and compiled.is_claim(demand) is is_claim
        )


def _at_the_moment(
    compiled: CompiledCluster, snapshot: DemandSnapshot
) -> Scenario:
    """The cluster at the demand's turn: with everything that was granted before."""
    placements = tuple(snapshot.placements)
    homes = {}
    for placement in placements:
        demand = compiled.problem.demands[placement.demand]
        if not compiled.is_claim(demand):
            homes[demand.key] = compiled.problem.nodes[placement.node].name
    return Scenario(compiled.cluster).settle(
        allocated_claims(compiled, Solution(placements)), homes
    )


# ----------------------------------------------------------------------------
# Suggestions to raise caps, by the least that is enough.

_Attempt = Callable[
    [Mapping[BudgetKey, int | None]], tuple[Mapping[BudgetKey, int], str] | None
]
"""What an answer under some caps uses of each, and what it comes to, in words; None as a cap means without it."""


def _raised_caps(
    oracle: FeasibilityOracle, members: Sequence[Member]
) -> Iterator[Suggestion]:
    """A cap of the conflict, if it is enough to raise it; if not, all caps of its namespace together."""
    caps = oracle.snapshot.caps

    def attempt(
        levels: Mapping[BudgetKey, int | None],
    ) -> tuple[Mapping[BudgetKey, int], str] | None:
        lifted = frozenset(
            key for key, level in levels.items() if level is None
        )
        raised = {
            key: level for key, level in levels.items() if level is not None
        }
        certificate = oracle.admit(Change(caps=lifted, raised=raised))
        return (
            None
            if certificate is None
            else (
                caps.used(oracle.alone(Change()), [certificate.placement]),
                oracle.fits_on(certificate.node),
            )
        )

    keys = [
        key
        for member in members
        if member.kind is MemberKind.CAP
        for key in sorted(member.without.caps)
    ]
    return least_raises(caps, keys, attempt)


def least_raises(
    caps: Caps, keys: Sequence[BudgetKey], attempt: _Attempt
) -> Iterator[Suggestion]:
    """Every single cap that it is enough to raise; if there is none, all caps of their namespaces together."""
    before = caps.most
    raises = [_least_raise([key], before, attempt) for key in keys]
    namespaces = {key.namespace for key in keys}
    together = [key for key in before if key.namespace in namespaces]
    if not any(raises) and len(together) > 1:
        raises = [_least_raise(together, before, attempt)]
    for raised, outcome in filter(None, raises):
        levels = (
            f"{key.namespace}={key.resource} from {amount(before[key])} to {amount(level)}"
            for key, level in raised.items()
        )
        yield Suggestion(
            f"raise cap {', '.join(levels)}",
            outcome,
            Cost.CAP,
            len(raised),
            Change(raised=raised),
        )


def _least_raise(
    caps: Sequence[BudgetKey],
    before: Mapping[BudgetKey, int],
    attempt: _Attempt,
) -> tuple[dict[BudgetKey, int], str] | None:
    """Raise caps to what some answer needs, then lower one after the other as long as there is an answer.

    Returns the caps that have to be raised with what they are raised to, and the outcome; None if caps do not help.
    """
    without_caps = attempt(dict.fromkeys(caps))
    if without_caps is None:
        return None
    used, outcome = without_caps
    levels = {cap: max(before[cap], used[cap]) for cap in caps}
    for cap in caps:
        while levels[cap] > before[cap]:
            lower = attempt({**levels, cap: levels[cap] - 1})
            if lower is None:
                break
            used, outcome = lower
            levels[cap] = max(before[cap], used[cap])
    raised = {
        cap: level for cap, level in levels.items() if level > before[cap]
    }
    return (raised, outcome) if raised else None


# ----------------------------------------------------------------------------
# Suggestions to scale a request down: fewer devices, or a smaller amount of a
# capacity.

_MOST_AMOUNTS = 64


def _scaled_down(oracle: FeasibilityOracle) -> Iterator[Suggestion]:
    """Return, by request the largest count, and by capacity the largest amount, that can be served."""
    for position, claim, alternative in alternatives_of(
        oracle.snapshot.demand.claims
    ):
        for suggestion in (
            *_fewer(oracle, position, alternative),
            *_smaller(oracle, position, alternative),
        ):
            request = request_text(claim, alternative)
            text = f"{request}: ask for {suggestion.text}"
            yield replace(suggestion, text=text)


def _largest(
    values: Sequence[int], admit: Callable[[int], Certificate | None]
) -> tuple[int, Certificate] | None:
    """The largest value that is admitted, if smaller values are never harder; the answer has been tried in any case."""
    tried: dict[int, Certificate] = {}

    def refused(value: int) -> bool:
        certificate = admit(value)
        if certificate is not None:
            tried[value] = certificate
        return certificate is None

    admitted_count = bisect_left(values, True, key=refused)
    return (
        (values[admitted_count - 1], tried[values[admitted_count - 1]])
        if admitted_count
        else None
    )


def _fewer(
    oracle: FeasibilityOracle, position: Place, alternative: Alternative
) -> Iterator[Suggestion]:
    count = alternative.count or 0
    largest = _largest(
        range(1, count),
        lambda fewer: oracle.admit(Change(counts={position: fewer})),
    )
    if largest is not None:
        fewer, certificate = largest
        text, outcome = (
            f"{devices_text(fewer)} in place of {count}",
            oracle.fits_on(certificate.node),
        )
        yield Suggestion(
            text,
            outcome,
            Cost.LESS,
            count - fewer,
            Change(counts={position: fewer}),
        )


def _smaller(
    oracle: FeasibilityOracle, position: Place, alternative: Alternative
) -> Iterator[Suggestion]:
    requested = oracle.snapshot.context.offers.amounts(alternative.index)
    for name, free in _free_amounts(oracle, alternative).items():
        limit = requested[name].nanos if name in requested else max(free) + 1
        values = sorted(nanos for nanos in free if 0 < nanos < limit)[
            -_MOST_AMOUNTS:
        ]

        def change_to(nanos: int, name: str = name) -> Change:
            return Change(
                variations={
                    position: Variation(
                        amounts=((name, Quantity(nanos, Format.BINARY)),)
                    )
                }
            )

        largest = _largest(values, lambda nanos: oracle.admit(change_to(nanos)))
        if largest is not None:
            smaller, certificate = largest
            before = (
                f" in place of {requested[name]}"
                if name in requested
                else " (now it asks for no amount)"
            )
            text, outcome = (
                f"{amount(smaller)} of {name}{before}",
                oracle.fits_on(certificate.node),
            )
            yield Suggestion(text, outcome, Cost.LESS, 1, change_to(smaller))


def _free_amounts(
    oracle: FeasibilityOracle, alternative: Alternative
) -> dict[str, set[int]]:
    """Return, by capacity, the amounts that some device, or a cap, has left."""
    context = oracle.snapshot.context
    requested = context.offers.amounts(alternative.index)
    free_amounts: dict[str, set[int]] = defaultdict(set)
    for device_index, device in numbered(context.problem.devices):
        if (
            not (device.shareable or requested)
            or context.offers.selects(alternative.index, device_index)
            is not True
        ):
            continue
        for name, capacity in device.capacity.items():
            if device.shareable and capacity.consumable:
                free_amounts[name].add(
                    context.ledger.capacity_left(device, name)
                )
            elif name in requested and not device.shareable:
                free_amounts[name].add(capacity.total)
    for budget in context.budgets:
        if budget.resource in free_amounts and budget.left:
            free_amounts[budget.resource].add(budget.left)
    return free_amounts


# ----------------------------------------------------------------------------
# Suggestions to substitute a request: what other claims of the cluster ask for in its
# place.

_MOST_SUBSTITUTES: Final = 12


@dataclass(frozen=True)
class _Other:
    """The request of another claim's alternative."""

    claim: Claim
    alternative: Alternative
    criteria: Criteria

    def text(self, count: int | None) -> str:
        """The change, for a request of so many devices."""
        is_one_of_several = len(list(alternatives_of((self.claim,)))) > 1
        request = (
            f", request {self.alternative.name}," if is_one_of_several else ""
        )
        count_text = (
            ""
            if count == self.alternative.count
            else f", but {devices_text(count)}"
        )
        return f"ask as claim {self.claim.key}{request} does ({self._kind()}){count_text}"

    def _kind(self) -> str:
        criteria = self.criteria
        of_class = (
            [f"class {criteria.device_class.metadata.name}"]
            if criteria.device_class is not None
            else []
        )
        amounts = (f"{amount} of {name}" for name, amount in criteria.amounts)
        tolerated = (
            f"tolerating {toleration_text(toleration)}"
            for toleration in criteria.tolerations
        )
        return "; ".join((*of_class, *criteria.selectors, *amounts, *tolerated))


def substitutes(oracle: FeasibilityOracle) -> Iterator[Suggestion]:
    """Yield requests of other claims that could be served in place of the demand's own, the most usual first.

    Only devices of the request's own class count, whatever its selectors say: a network adapter is no substitute for a
    GPU, of the same driver or not. It comes with its tolerations. Where it could not be served with them, those of the
    demand are tried, and the suggestion says so.
    """
    offers = oracle.snapshot.context.offers
    if not isinstance(offers, TableOffers):
        return
    usual = _usual(oracle.compiled.cluster, offers)
    for position, claim, alternative in alternatives_of(
        oracle.snapshot.demand.claims
    ):
        if alternative.admin or alternative.defect or position[2]:
            continue
        own_clauses = offers.clauses(alternative.index)
        tolerations = offers.table.criteria[alternative.index].tolerations
        of_class = _devices_of_class(offers, alternative, oracle)
        for rank, substitute in enumerate(usual):
            if (
                substitute.claim.key == claim.key
                or offers.clauses(substitute.alternative.index) == own_clauses
            ):
                continue
            attempts = {"": substitute.criteria}
            if tolerations != substitute.criteria.tolerations:
                attempts[", keeping its tolerations"] = replace(
                    substitute.criteria, tolerations=tolerations
                )
            for remark, criteria in attempts.items():
                change = Change(
                    variations={position: Variation(substitute=criteria)}
                )
                certificate = oracle.admit(change)
                if certificate is not None and _is_of(
                    position, certificate, of_class
                ):
                    text = f"{request_text(claim, alternative)}: {substitute.text(alternative.count)}{remark}"
                    yield Suggestion(
                        text,
                        oracle.fits_on(certificate.node),
                        Cost.OTHER,
                        rank,
                        change,
                    )
                    break


def _devices_of_class(
    offers: TableOffers, alternative: Alternative, oracle: FeasibilityOracle
) -> frozenset[DeviceIndex]:
    """Return the devices that are of the request's class, whatever its own selectors say."""
    criteria = replace(
        offers.table.criteria[alternative.index], selectors=(), amounts=()
    )
    of_class = offers.vary(alternative.index, Variation(substitute=criteria))
    # Devices with equal keys are selected alike.
    verdicts: dict[Hashable, bool] = {}
    selected: set[DeviceIndex] = set()
    devices = tuple(indices(oracle.snapshot.problem.devices))
    for device, key in zip(devices, offers.device_keys(devices), strict=True):
        if key not in verdicts:
            verdicts[key] = offers.selects(of_class, device) is True
        if verdicts[key]:
            selected.add(device)
    return frozenset(selected)


def _is_of(
    position: Place, certificate: Certificate, devices: frozenset[DeviceIndex]
) -> bool:
    """Whether a request would be served with some of these devices."""
    claim, request, _ = position
    granted = [
        grant for grant in certificate.grants[claim] if grant.request == request
    ]
    return all(grant.device in devices for grant in granted)


def _usual(cluster: Cluster, offers: TableOffers) -> list[_Other]:
    """Return the requests of the cluster's claims, each class with its first claim, the most usual first."""
    counts: Counter[Hashable] = Counter()
    first: dict[Hashable, _Other] = {}
    seen: dict[int, Claim] = {}
    for claim in cluster.claims:
        # Claims of one template share their specification.
        compiled_claim = seen.get(id(claim.spec))
        if compiled_claim is None:
            compiled_claim = seen[id(claim.spec)] = compile_claim(
                claim, cluster.classes, offers.table, offers.table.features
            )
        for _, _, alternative in alternatives_of((compiled_claim,)):
            if not alternative.admin and not alternative.defect:
                key = offers.request_key(alternative.index)
                counts[key] += 1
                first.setdefault(
                    key,
                    _Other(
                        compiled_claim,
                        alternative,
                        offers.table.criteria[alternative.index],
                    ),
                )
    return [first[key] for key, _ in counts.most_common(_MOST_SUBSTITUTES)]


_RELAXED = {
    MemberKind.TAINT: (Cost.TOLERATE, "tolerate"),
    MemberKind.CONSTRAINT: (Cost.CONSTRAINT, "drop"),
    MemberKind.SELECTOR: (Cost.SELECTOR, "drop"),
    MemberKind.NODES: (Cost.NODES, "lift"),
}


def find_suggestions(
    oracle: FeasibilityOracle, members: Sequence[Member]
) -> tuple[Suggestion, ...]:
    """Every suggestion that holds, cheapest first.

    Parameters
    ----------
    members
        The rules that may be relaxed: those of a conflict, as no other rule alone can help.

    Returns
    -------
    tuple
        Empty if the demand could be placed as it is: then its gang is in its way, and nothing that is said here.
    """
    if oracle.admit(Change()) is not None:
        return ()
    suggestions = chain(
        _relaxed(oracle, members),
        _scaled_down(oracle),
        substitutes(oracle),
        _raised_caps(oracle, members),
        releases(oracle),
        _added_nodes(oracle),
    )
    return tuple(
        sorted(
            suggestions,
            key=lambda suggestion: (suggestion.cost, suggestion.amount),
        )
    )


def _relaxed(
    oracle: FeasibilityOracle, members: Sequence[Member]
) -> Iterator[Suggestion]:
    for member in members:
        if member.kind not in _RELAXED:
            continue
        change = member.without
        nodes = _roomiest_first(oracle, member)
        certificate = oracle.admit(change, nodes=nodes)
        if certificate is not None:
            cost, verb = _RELAXED[member.kind]
            bar = _shortage_bar(oracle, member, certificate.node)
            text = _less(bar) if bar else f"{verb} {member.title}"
            outcome = oracle.fits_on(certificate.node)
            yield Suggestion(text, outcome, cost, change=change)


def _shortage_bar(
    oracle: FeasibilityOracle, member: Member, node: NodeIndex
) -> Bar | None:
    """Return the shortage of a node that a rule is about, if it is about an amount."""
    bars = oracle.snapshot.bars_of(node)
    of_rule = (bar for bar in bars if bar.text == member.title)
    return next((bar for bar in of_rule if bar.resource), None)


def _roomiest_first(
    oracle: FeasibilityOracle, member: Member
) -> Sequence[NodeIndex] | None:
    """Return the nodes by what is left of an amount that the rule is about, the most first; None for other rules."""
    if member.kind is not MemberKind.NODES:
        return None
    remaining: dict[NodeIndex, int] = {}
    for node in oracle.snapshot.problem.all_nodes:
        bar = _shortage_bar(oracle, member, node)
        if bar:
            remaining[node] = bar.left
    return sorted(remaining, key=lambda node: -remaining[node]) or None


def _less(bar: Bar) -> str:
    """Return the change that would lift a bar: free the resource on the node, or request less of it."""
    resource = "CPU" if bar.resource == "cpu" else bar.resource
    if not bar.left:
        return f"free {resource} on the node"
    return f"request at most {at_most(bar.left)} {resource}"


# ----------------------------------------------------------------------------
# Suggestions held against the objects of the cluster. The oracle looks for a node in
# the problem that the compiler has read; the checker of objects reads pods and nodes
# by itself, so that what the compiler misreads is not suggested.


def check_suggestions(
    oracle: FeasibilityOracle, suggestions: Sequence[Suggestion]
) -> None:
    """Make sure that the pod that is explained may go where suggestions let it in.

    Not looked at are pods of gangs, which do not come alone; new nodes, whose clusters are compiled anew; and changes
    that lift rules of the objects.

    Raises
    ------
    CheckError
        It may not.
    """
    snapshot, compiled = oracle.snapshot, oracle.compiled
    tried = [
        suggestion
        for suggestion in suggestions
        if suggestion.cost is not Cost.NODE and not suggestion.change.rules
    ]
    if not tried or compiled.is_claim(snapshot.whole) or snapshot.whole.gang:
        return
    moment = _at_the_moment(compiled, snapshot)
    for suggestion in tried:
        certificate, released = (
            oracle.admit(suggestion.change),
            suggestion.change.released,
        )
        assert certificate is not None
        users = {
            pod
            for pod, claims in moment.cluster.claims_of_pods.items()
            if not released.isdisjoint(claims)
        }
        cluster = moment.release(released).without_pods(users).cluster
        home = snapshot.problem.nodes[certificate.node].name
        binding = Binding(snapshot.whole.key, home)
        check_newcomers(compiled, compiled.choices, cluster, [binding])
