"""Candidates: the devices that can serve each request on each node, before anything is decided.

From top to bottom: the nodes that could ever serve a demand; the selectors that fail on devices; the survey of
candidates; and the components, demands that share no candidate and nothing else, so that they are solved apart.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

from networkx.utils import UnionFind

from dralloc.objects.choices import Goal
from dralloc.objects.errors import AllocationError, ExpressionFailure
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    MAX_RESULTS,
    Alternative,
    Charge,
    Claim,
    CounterIndex,
    Demand,
    DeviceIndex,
    NodeIndex,
    PoolState,
    Problem,
    indices,
    quorum_of,
)
from dralloc.problem.equivalence import claim_key
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.ledger import Ledger
from dralloc.problem.supply import NODE_DRIVER
from dralloc.solve.optimum.stopping import Stop, TooLarge

__all__ = [
    "Candidate",
    "CandidateSite",
    "CandidateSurvey",
    "NodeCapabilities",
    "ServingChoice",
    "components",
    "may_pass_over",
    "summed_up",
    "survey",
    "touched",
    "touched_before",
    "units",
]

# ----------------------------------------------------------------------------
# Capabilities: which nodes could ever serve a demand. This looks at what they are made
# of, not at what is in use.


class NodeCapabilities:
    """Tells where a demand finds as many devices as it asks for, worked out once per kind of demand and of node.

    Attributes
    ----------
    node_types
        By node, the number of its type: nodes of a type offer as many devices of each device class.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        type_of_signature: dict[Hashable, int] = {}
        self.node_types: list[int] = []
        self._contents: list[Mapping[Hashable, tuple[DeviceIndex, int]]] = []
        device_keys: dict[DeviceIndex, Hashable] = {}
        for node in indices(problem.nodes):
            tally: Tally[Hashable] = Tally()
            sample: dict[Hashable, DeviceIndex] = {}
            for device in problem.nodes[node].devices():
                if problem.devices[device].id.driver == NODE_DRIVER:
                    continue
                if device not in device_keys:
                    device_keys[device] = problem.eligibility.device_key(device)
                tally[device_keys[device]] += 1
                sample.setdefault(device_keys[device], device)
            signature = frozenset(tally.items())
            if signature not in type_of_signature:
                type_of_signature[signature] = len(type_of_signature)
                contents = {
                    key: (sample[key], count) for key, count in tally.items()
                }
                self._contents.append(contents)
            self.node_types.append(type_of_signature[signature])
        self._shapes: dict[int, Hashable] = {}
        self._answers: dict[tuple[Hashable, int], int | None] = {}
        self._totals: dict[tuple[Hashable, int | None], int] = {}

    def shape(self, demand: DemandIndex) -> Hashable:
        """Return the key of a demand's device requests: equal for demands that differ only in their use of nodes."""
        if demand not in self._shapes:
            claims = self.problem.demands[demand].claims
            keys = tuple(
                claim_key(self.problem.eligibility, claim)
                for claim in claims
                if not claim.is_synthetic
            )
            self._shapes[demand] = keys
        return self._shapes[demand]

    def could_serve(self, node: NodeIndex, demand: DemandIndex) -> bool:
        """Whether the node has enough devices for each request of the demand, were nothing in use."""
        return self.candidates(node, demand) is not None

    def candidates(self, node: NodeIndex, demand: DemandIndex) -> int | None:
        """Return the number of the node's devices to choose from, over all requests; None if one has too few."""
        node_type = self.node_types[node]
        question = self.shape(demand), node_type
        if question not in self._answers:
            count = self._candidates(self._contents[node_type], demand)
            self._answers[question] = count
        return self._answers[question]

    def all_candidates(self, demand: DemandIndex) -> int:
        """Return the number of candidates on all nodes that the demand may go to."""
        nodes = self.problem.demands[demand].nodes
        # Demands with the same selection of nodes most often have the same object.
        question = self.shape(demand), None if nodes is None else id(nodes)
        if question not in self._totals:
            allowed = self.problem.candidate_nodes(self.problem.demands[demand])
            nodes_of_type = Tally(self.node_types[node] for node in allowed)
            sample = {self.node_types[node]: node for node in allowed}
            total = 0
            for node_type, node_count in nodes_of_type.items():
                # Nodes that have too few count as none.
                candidates = self.candidates(sample[node_type], demand)
                total += node_count * (candidates or 0)
            self._totals[question] = total
        return self._totals[question]

    def _candidates(
        self,
        contents: Mapping[Hashable, tuple[DeviceIndex, int]],
        demand: DemandIndex,
    ) -> int | None:
        total = 0
        for claim in self.problem.demands[demand].claims:
            if claim.is_synthetic:
                continue
            for request in claim.requests:
                enough = False
                for alternative in request.alternatives:
                    matching = self._matching(contents, alternative)
                    if matching >= (alternative.count or 1):
                        enough = True
                        total += matching
                if not enough:
                    return None
        return total

    def _matching(
        self,
        contents: Mapping[Hashable, tuple[DeviceIndex, int]],
        alternative: Alternative,
    ) -> int:
        selects = self.problem.eligibility.selects
        return sum(
            count
            for device, count in contents.values()
            if selects(alternative.index, device) is True
        )


# ----------------------------------------------------------------------------
# Failures: selectors that fail on devices, which are left out. One line is for all
# devices of a driver, and all claims alike.

_OF_CLASS: Final = "class "


def summed_up(failures: Iterable[AllocationError]) -> tuple[str, ...]:
    """Return the messages of failures, each once, in the order in which they were met."""
    by_line = grouped((_kind(failure), failure) for failure in failures)
    lines = (_line(alike) for alike in by_line.values())
    return tuple(dict.fromkeys(lines))


def _kind(failure: AllocationError) -> tuple[str, ...]:
    """Equal for failures that are told in one line: of one class, or of one expression of claims."""
    if not isinstance(failure, ExpressionFailure):
        return (str(failure),)
    owner = failure.owner if failure.owner.startswith(_OF_CLASS) else ""
    return (
        owner,
        failure.what,
        failure.expression,
        failure.driver,
        failure.reason,
    )


def _line(alike: Sequence[AllocationError]) -> str:
    first = alike[0]
    if not isinstance(first, ExpressionFailure):
        # Further lines show where in an expression it is.
        return str(first).partition("\n")[0]
    told = [
        failure for failure in alike if isinstance(failure, ExpressionFailure)
    ]
    owners = dict.fromkeys(failure.owner for failure in told)
    devices = dict.fromkeys(failure.device for failure in told)
    owner = first.owner
    if len(owners) > 1:
        owner += f" and {len(owners) - 1} more"
    where = f"device {first.device}"
    if len(devices) > 1:
        where = f"{len(devices)} devices of driver {first.driver}"
    return f"{first.what} of {owner} fails on {where}: {first.reason}"


# ----------------------------------------------------------------------------
# The survey: every candidate of every demand.


class Candidate(NamedTuple):
    """A device that can serve an alternative, and what that takes of it."""

    device: DeviceIndex
    charge: Charge


@dataclass(frozen=True, slots=True)
class ServingChoice:
    """An alternative that a node can serve with ``count`` of the candidates, which are in search order.

    Parameters
    ----------
    claim, request, alternative
        The indices inside demand, claim and request.
    spec
        What it asks of each device, and how many.
    count
        How many devices it takes; with allocation mode ``All`` the most that it can.
    candidates
        The devices that it can take.
    loose
        The candidates that ``All`` leaves out when others leave too little capacity on them.
    blocked
        What it cannot take although it matches: ``All`` is possible only if others fill all of it.
    """

    claim: int
    request: int
    alternative: int
    spec: Alternative
    count: int
    candidates: tuple[Candidate, ...]
    loose: tuple[Candidate, ...] = ()
    blocked: tuple[Candidate, ...] = ()

    @property
    def least(self) -> int:
        """The fewest devices that it takes."""
        if self.spec.count is None:
            return max(1, self.count - len(self.loose))
        return self.count

    @property
    def fixed(self) -> bool:
        """Whether it takes all of its candidates, so that nothing is left to decide about them."""
        return self.count == len(self.candidates) and not self.loose


@dataclass(frozen=True, slots=True)
class CandidateSite:
    """A node that a demand can go to, with the possible choices for each request, of all claims in a row.

    ``shared``: the claims, by index, that other demands list too. They have no requests here if the node cannot serve
    them: then another demand has to be granted the claim.
    """

    node: NodeIndex
    requests: tuple[tuple[ServingChoice, ...], ...]
    shared: tuple[int, ...] = ()

    def choices(self) -> Iterator[ServingChoice]:
        """Every choice, in order."""
        for request in self.requests:
            yield from request


def may_pass_over(demand: Demand, sites: Iterable[CandidateSite]) -> bool:
    """Whether there is a device that a demand has to take, or cannot take, unless others have filled it (KEP-5075)."""
    return demand.asks_for_all and any(
        choice.loose or choice.blocked
        for site in sites
        for choice in site.choices()
    )


@dataclass(frozen=True, slots=True)
class CandidateSurvey:
    """The sites of each demand that has any, by the demand's index in order, and the selectors that failed."""

    sites: dict[DemandIndex, tuple[CandidateSite, ...]]
    failures: tuple[AllocationError, ...]


def survey(
    problem: Problem,
    demands: Iterable[DemandIndex] | None = None,
    *,
    strict_cel: bool = False,
    stop: Stop | None = None,
    most_candidates: float = inf,
) -> CandidateSurvey:
    """Work out every candidate of some demands; of all if None.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set. Otherwise the device is left out with a warning.
    Stopped
        It is time to stop; `TooLarge` if there are more than ``most_candidates``.
    """
    surveyor = _Surveyor(problem, strict_cel, stop or Stop(), most_candidates)
    chosen = indices(problem.demands) if demands is None else demands
    sites = {index: surveyor.sites(problem.demands[index]) for index in chosen}
    halted = _halted(problem, sites)
    placeable = {
        index: demand_sites
        for index, demand_sites in sites.items()
        if demand_sites and problem.demands[index].gang not in halted
    }
    return CandidateSurvey(placeable, tuple(surveyor.failures.values()))


def _halted(
    problem: Problem, sites: Mapping[DemandIndex, Sequence[CandidateSite]]
) -> set[str]:
    """The gangs of which fewer demands can be placed than they need."""
    demands = problem.demands
    missing = Tally(
        demands[index].gang
        for index, of_demand in sites.items()
        if not of_demand
    )
    gangs = grouped(
        (demands[index].gang, demands[index])
        for index in sites
        if demands[index].gang in missing
    )
    return {
        gang
        for gang, members in gangs.items()
        if gang and len(members) - missing[gang] < quorum_of(members)
    }


class _Surveyor:
    def __init__(
        self,
        problem: Problem,
        strict_cel: bool,
        stop: Stop,
        most_candidates: float,
    ) -> None:
        self.problem = problem
        self.strict_cel = strict_cel
        self.stop = stop
        self.allowance = most_candidates
        self.failures: dict[str, AllocationError] = {}
        self.devices: dict[int, list[DeviceIndex]] = {}
        # By node, its devices by kind, with their positions in search order.
        self.kinds: dict[int, list[list[tuple[int, DeviceIndex]]]] = {}
        self.candidates: dict[Hashable, tuple[Candidate, ...]] = {}
        listed: Tally[ClaimKey] = Tally()
        for demand in problem.demands:
            listed.update(
                claim.key for claim in demand.claims if claim.requests
            )
        self.shared = {key for key, times in listed.items() if times > 1}
        self.ledger = Ledger(problem)

    def sites(self, demand: Demand) -> tuple[CandidateSite, ...]:
        """The nodes that can serve every request, looked at alone. A defect anywhere is fatal for the demand."""
        if demand.is_defective:
            return ()
        sites = []
        for node in self.stop.each(self.problem.candidate_nodes(demand)):
            site = self._site(demand, node)
            if site is None:
                continue
            sites.append(site)
            self.allowance -= sum(
                len(choice.candidates) for choice in site.choices()
            )
            if self.allowance < 0:
                raise TooLarge
        return tuple(sites)

    def _site(self, demand: Demand, node: NodeIndex) -> CandidateSite | None:
        requests: list[tuple[ServingChoice, ...]] = []
        shared = tuple(
            index
            for index, claim in enumerate(demand.claims)
            if claim.key in self.shared
        )
        for index, claim in enumerate(demand.claims):
            choices = self._claim(index, claim, node)
            if choices is None and index not in shared:
                return None
            requests.extend(choices or ())
        return CandidateSite(node, tuple(requests), shared)

    def _claim(
        self, index: int, claim: Claim, node: NodeIndex
    ) -> list[tuple[ServingChoice, ...]] | None:
        """The choices for each request of a claim; None if a request has none, or all of them are too many results."""
        requests: list[tuple[ServingChoice, ...]] = []
        for position, request in enumerate(claim.requests):
            choices = []
            for rank, spec in enumerate(request.alternatives):
                choice = self._choice(
                    claim, spec, node, (index, position, rank)
                )
                if choice and choice.least <= MAX_RESULTS:
                    choices.append(choice)
            if not choices:
                return None
            requests.append(tuple(choices))
        fewest_results = 0
        for of_request in requests:
            fewest_results += min(choice.least for choice in of_request)
        return requests if fewest_results <= MAX_RESULTS else None

    def _choice(
        self,
        claim: Claim,
        spec: Alternative,
        node: NodeIndex,
        position: tuple[int, int, int],
    ) -> ServingChoice | None:
        attributes = [
            constraint.compared(spec.name)
            for constraint in claim.constraints
            if constraint.covers(spec.name)
        ]
        if spec.count is None:
            return self._all(spec, node, position, attributes)
        # Equal alternatives have equal candidates.
        key = (
            self.problem.eligibility.request_key(spec.index),
            spec.admin,
            node,
            tuple(attributes),
        )
        candidates = self.candidates.get(key)
        if candidates is None:
            known_failures = len(self.failures)
            candidates = tuple(self._candidates(spec, node, attributes))
            # Where a selector fails, each claim is to be named.
            if len(self.failures) == known_failures:
                self.candidates[key] = candidates
        if len(candidates) >= spec.count:
            return ServingChoice(*position, spec, spec.count, candidates)
        return None

    def _candidates(
        self,
        spec: Alternative,
        node: NodeIndex,
        attributes: Sequence[str],
    ) -> Iterator[Candidate]:
        """Give out the devices that can serve an alternative, in search order."""
        for device in self._possible(spec, node):
            # What is in use is asked first: a selector may fail on it, for nothing.
            if not self._is_free(spec, device):
                continue
            charge = self._offer(spec, device)
            if charge is None:
                continue
            candidate = Candidate(device, charge)
            if self._is_usable(spec, candidate, attributes):
                yield candidate

    def _all(
        self,
        spec: Alternative,
        node: NodeIndex,
        position: tuple[int, int, int],
        attributes: Sequence[str],
    ) -> ServingChoice | None:
        """All or nothing (KEP-4381, allocation mode All); without a full device it can do (KEP-5075)."""
        pools = self.problem.nodes[node].pools
        if any(pool.state is not PoolState.USABLE for pool in pools):
            return None
        usable: list[Candidate] = []
        blocked: list[Candidate] = []
        for device in self._devices(node):
            charge = self._offer(spec, device)
            if charge is None:
                continue
            candidate = Candidate(device, charge)
            if self._is_free(spec, device) and self._is_usable(
                spec, candidate, attributes
            ):
                usable.append(candidate)
            else:
                blocked.append(candidate)
        if not usable:
            return None
        if not all(candidate.charge.capacity for candidate in blocked):
            return None
        loose = tuple(
            candidate for candidate in usable if candidate.charge.capacity
        )
        return ServingChoice(
            *position, spec, len(usable), tuple(usable), loose, tuple(blocked)
        )

    def _devices(self, node: NodeIndex) -> list[DeviceIndex]:
        """The devices of usable pools that reach the node, in search order."""
        if node not in self.devices:
            offered = self.problem.nodes[node].devices()
            self.devices[node] = [
                device
                for device in offered
                if self.problem.on_node(device, node)
            ]
        return self.devices[node]

    def _possible(
        self, spec: Alternative, node: NodeIndex
    ) -> list[DeviceIndex]:
        """The devices that reach the node, without those of a kind that an alternative does not select."""
        if node not in self.kinds:
            key_of = self.problem.eligibility.device_key
            in_order = enumerate(self._devices(node))
            kinds = grouped(
                (key_of(device), (position, device))
                for position, device in in_order
            )
            self.kinds[node] = list(kinds.values())
        selects = self.problem.eligibility.selects
        possible: list[tuple[int, DeviceIndex]] = []
        for devices in self.kinds[node]:
            _, sample = devices[0]
            # A selector that fails on a device is asked about each of them.
            if selects(spec.index, sample) is not False:
                possible += devices
        return [device for _, device in sorted(possible)]

    def _offer(self, spec: Alternative, device: DeviceIndex) -> Charge | None:
        """Return the charge of the device for the alternative; None if it does not match or lacks the capacity."""
        eligibility = self.problem.eligibility
        selected = eligibility.selects(spec.index, device)
        if isinstance(selected, AllocationError):
            if self.strict_cel:
                raise selected
            self.failures[str(selected)] = selected
            return None
        if not selected:
            return None
        charge = eligibility.charge(spec.index, device)
        view = self.problem.devices[device]
        if charge is None or not self.ledger.has_capacity(view, charge):
            return None
        return charge

    def _is_free(self, spec: Alternative, device: DeviceIndex) -> bool:
        return spec.admin or self.ledger.is_free(self.problem.devices[device])

    def _is_usable(
        self, spec: Alternative, candidate: Candidate, attributes: Sequence[str]
    ) -> bool:
        view = self.problem.devices[candidate.device]
        if not self.problem.eligibility.admits(spec.index, candidate.device):
            return False
        if not all(attribute in view.attributes for attribute in attributes):
            return False
        return self.ledger.may_fit(view, candidate.charge, admin=spec.admin)


# ----------------------------------------------------------------------------
# Components: demands that share nothing with each other are solved apart.


def components(
    problem: Problem,
    survey: CandidateSurvey,
    goal: Goal = Goal.NONE,
    stop: Stop | None = None,
) -> list[tuple[DemandIndex, ...]]:
    """Split the demands that have sites by what they share: slots, counters, gangs, rules, budgets, for the goal.

    Returns
    -------
    The demands of each component in order, components by their first demand.

    Raises
    ------
    Stopped
        It is time to stop.
    """
    stop = stop or Stop()
    forest: UnionFind[Hashable] = UnionFind()
    joined: set[int] = set()
    for demand, sites in survey.sites.items():
        view = problem.demands[demand]
        links: list[Hashable] = []
        if view.placed_with:
            links.append(("gang", view.placed_with))
        links += [("rule", role.rule) for role in view.roles]
        links += [("scope", scope) for scope in view.group_scopes]
        links += [
            ("claim", view.claims[claim].key) for claim in sites[0].shared
        ]
        links += _budgets(problem, demand)
        forest.union(("demand", demand), *links)
        for site in stop.each(sites):
            resources = dict.fromkeys(_shared(problem, site, goal))
            forest.union(("demand", demand), *resources)
            for slot, behind_slot in _behind_slots(problem, site, goal, joined):
                forest.union(("slot", slot), *behind_slot)
    members = grouped(
        (forest[("demand", demand)], demand) for demand in survey.sites
    )
    return [tuple(demands) for demands in members.values()]


def _budgets(problem: Problem, demand: DemandIndex) -> Iterator[Hashable]:
    """The budgets that the demand spends from; of those that are to be fair each depends on the others."""
    for budget in problem.budgets:
        if budget.namespace == problem.demands[demand].key.namespace:
            yield ("budget", "" if budget.fair else budget.namespace)


def touched(problem: Problem, survey: CandidateSurvey) -> Iterator[Hashable]:
    """The slots and counters that the demands share with other demands for them."""
    joined: set[int] = set()
    for sites in survey.sites.values():
        for site in sites:
            yield from _shared(problem, site, Goal.NONE)
            for _, resources in _behind_slots(problem, site, Goal.NONE, joined):
                yield from resources


def _shared(
    problem: Problem, site: CandidateSite, goal: Goal
) -> Iterator[Hashable]:
    """Yield the resources that a demand on the site shares; with admin access, slots that ``All`` omits when full."""
    if goal in {Goal.FEWEST_NODES, Goal.SPREAD}:
        yield ("node", site.node)
    for choice in site.choices():
        for device, charge in (*choice.candidates, *choice.blocked):
            if not choice.spec.admin or choice.loose or choice.blocked:
                yield ("slot", problem.devices[device].slot)
            if not choice.spec.admin and charge.counters:
                yield from _drawn(problem, Candidate(device, charge), goal)


def _behind_slots(
    problem: Problem, site: CandidateSite, goal: Goal, joined: set[int]
) -> Iterator[tuple[int, tuple[Hashable, ...]]]:
    """Yield the resources that each slot which is not joined yet shares with others as soon as it is in use."""
    for choice in site.choices():
        if choice.spec.admin:
            continue
        for candidate in choice.candidates:
            slot = problem.devices[candidate.device].slot
            if slot not in joined:
                joined.add(slot)
                yield slot, tuple(_drawn(problem, candidate, goal))


def _drawn(
    problem: Problem, candidate: Candidate, goal: Goal
) -> Iterator[Hashable]:
    for version in problem.versions[problem.devices[candidate.device].slot]:
        yield from problem.devices[version].resources
    yield from (
        ("counter", counter) for counter, _ in candidate.charge.counters
    )
    if goal is Goal.LEAST_FRAGMENTATION:
        yield from (("unit", unit) for unit in units(problem, *candidate))


def units(
    problem: Problem, device: DeviceIndex, charge: Charge
) -> tuple[Hashable, ...]:
    """Return the units that an allocation breaks (``least-fragmentation``): counter sets (KEP-4815), or the device."""
    slot = problem.devices[device].slot
    drawn: list[CounterIndex] = []
    for version in problem.versions[slot]:
        drawn += [counter for counter, _ in problem.devices[version].consumes]
    drawn += [counter for counter, _ in charge.counters]
    sets = dict.fromkeys(problem.counters[counter].id[:3] for counter in drawn)
    return tuple(sets) if sets else (slot,)


def touched_before(problem: Problem) -> frozenset[Hashable]:
    """The units that allocated claims draw on."""
    sets = {
        counter.id[:3]
        for counter in problem.counters
        if counter.free < counter.total
    }
    return frozenset(sets | problem.usage.held | set(problem.usage.shares))
