"""The feasibility oracle, and the minimal conflict that it finds.

`FeasibilityOracle.admit` says whether a demand could be placed if something were different, tried out and never
guessed: it looks for a node on which the changed demand fits beside everything that stays. A node is asked with first
fit, whose answer the checker must accept, and where that finds nothing with the exact model. One demand goes to one
node, so node by node is exact. Then come the rules that can be part of a conflict, and the conflict.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import reduce
from itertools import chain, groupby
from operator import or_
from typing import Final

from dralloc.ask.context.context import Context, Lift, Screening
from dralloc.ask.context.offers import Variation
from dralloc.ask.explain.reasons import (
    Change,
    Place,
    Wording,
    constraint_places,
    constraint_text,
    devices_text,
    request_text,
    taint_text,
)
from dralloc.ask.explain.snapshot import DemandSnapshot
from dralloc.check import check
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.api import DeviceTaint
from dralloc.objects.choices import Mode
from dralloc.objects.errors import FatalError
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Part, Table, amount, counted, listed
from dralloc.problem import (
    Alternative,
    Claim,
    Demand,
    DemandIndex,
    NodeIndex,
    Problem,
    indices,
)
from dralloc.problem.equivalence import inventory_key
from dralloc.problem.ledger import Scarcity
from dralloc.problem.named_limits import Limit, limits_of, users_of
from dralloc.problem.solution import Grant, Placement, Solution
from dralloc.problem.subproblem import Subproblem, cut
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import solve, within_caps

__all__ = [
    "Certificate",
    "Conflict",
    "FeasibilityOracle",
    "Member",
    "MemberKind",
    "alternatives_of",
    "find_conflict",
    "in_whole",
    "members_of",
]

_Grants = tuple[tuple[Grant, ...], ...]


class _AttemptEndedError(Exception):
    """First fit's attempt ended with an error, for every node: no other node is looked at."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A checked answer to a changed problem: the node, and for each claim what it gets (devices of the problem)."""

    node: NodeIndex
    grants: _Grants

    @property
    def placement(self) -> Placement:
        """Return the certificate as a placement of the only demand."""
        return Placement(DemandIndex(0), self.node, self.grants)


class FeasibilityOracle:
    """Tries changes out.

    Parameters
    ----------
    compiled
        The objects behind the snapshot's problem.
    mode
        With first fit, a selector that fails ends the attempt, and only first fit's search counts.
    """

    def __init__(
        self, snapshot: DemandSnapshot, compiled: CompiledCluster, mode: Mode
    ) -> None:
        self.snapshot = snapshot
        self.compiled = compiled
        self.exact = mode is Mode.OPTIMAL
        self._usable = frozenset(snapshot.nodes)
        self._screenings: dict[frozenset[ClaimKey], Screening] = {}
        self._known: dict[Hashable, _Grants | None] = {}
        self._orders: dict[
            tuple[frozenset[str], frozenset[ClaimKey]], list[NodeIndex]
        ] = {}

    def admit(
        self,
        change: Change,
        *,
        all_nodes: bool = False,
        nodes: Sequence[NodeIndex] | None = None,
    ) -> Certificate | None:
        """Return a certificate of where the changed demand fits; None if it fits nowhere.

        Parameters
        ----------
        all_nodes
            Whether the model is asked about every node, also where screening shows too few devices.
        nodes
            The nodes to look at, as far as they are allowed; all of these if None.
        """
        try:
            return self._search(change, nodes, all_nodes=all_nodes)
        except _AttemptEndedError:
            return None

    def gives_up(self, change: Change) -> bool:
        """Whether an error ends the attempt for every node."""
        try:
            self._search(change, None, all_nodes=True)
        except _AttemptEndedError:
            return True
        return False

    def _search(
        self,
        change: Change,
        nodes: Sequence[NodeIndex] | None,
        *,
        all_nodes: bool,
    ) -> Certificate | None:
        demand, lift = self.changed_demand(change), self.lift(change)
        context, screening = (
            self.context(change),
            self._screening(change.released),
        )
        candidates = (
            self.allowed(change)
            if nodes is None
            else [node for node in nodes if self._lets_in(change, node)]
        )
        for node in candidates:
            # First fit is not screened: an error on a hopeless node ends its attempt.
            if all_nodes or not self.exact or screening.on(node, demand, lift):
                part = context.part([node], [demand], lift)
                certificate = self._within(part, demand, lift)
                if certificate is not None:
                    return certificate
        return None

    def changed_demand(self, change: Change) -> Demand:
        """The changed demand."""
        return change.of(self.snapshot.demand, self.snapshot.context.offers)

    def alone(self, change: Change) -> Problem:
        """The whole problem with the changed demand as the only one, to which certificates refer."""
        context = self.snapshot.context
        return replace(
            context.problem,
            demands=(self.changed_demand(change),),
            eligibility=context.offers,
        )

    def lift(self, change: Change) -> Lift:
        """The limits that do not count after the change."""
        return Lift(change.limits, lenient=self.exact)

    def context(self, change: Change) -> Context:
        """The context without the claims that are released, with the caps that are left."""
        return replace(
            self._screening(change.released).context,
            budgets=self.snapshot.caps.under(change),
        )

    def _screening(self, released: frozenset[ClaimKey]) -> Screening:
        if released not in self._screenings:
            # Many changes release the same claims: their ledgers are made once.
            ledger = self.snapshot.context.ledger.copy()
            ledger.release(released)
            self._screenings[released] = Screening(
                replace(self.snapshot.context, ledger=ledger)
            )
        return self._screenings[released]

    def allowed(self, change: Change) -> list[NodeIndex]:
        """The nodes that the demand may go to, in search order; nodes that are let in only by the change come last."""
        key = change.rules, self._leaving(change)
        if key not in self._orders:
            usable = self.snapshot.nodes
            further = (
                node
                for node in self.snapshot.problem.all_nodes
                if node not in self._usable
            )
            # A change that takes away no rule about nodes lets no further node in.
            candidates = (*usable, *further) if any(key) else usable
            self._orders[key] = [
                node for node in candidates if self._lets_in(change, node)
            ]
        return self._orders[key]

    def _lets_in(self, change: Change, node: NodeIndex) -> bool:
        """Whether every rule that leaves a node out is one that does not count after a change."""
        return change.rules.issuperset(
            self.snapshot.rules(node, self._leaving(change))
        )

    def _leaving(self, change: Change) -> frozenset[ClaimKey]:
        """The claims that go, if it matters what their pods take of nodes and mean for others."""
        return change.released if self.snapshot.bars else frozenset()

    def fits_on(self, node: NodeIndex) -> str:
        """Say where the demand fits after a change."""
        return f"fits on {self.snapshot.problem.nodes[node].name}"

    def _within(
        self, part: Subproblem, demand: Demand, lift: Lift
    ) -> Certificate | None:
        """An answer on the only node of a part of a context.

        Raises
        ------
        _AttemptEndedError
            First fit gives up for every node.
        """
        # Equal nodes give equal answers (see `inventory_key`).
        key = (
            demand.claims,
            lift,
            part.problem.budgets,
            inventory_key(part.problem),
        )
        if key not in self._known:
            solution = self._solve(part.problem)
            if solution is None:
                raise _AttemptEndedError
            self._known[key] = (
                solution.placements[0].grants if solution.placements else None
            )
        grants = self._known[key]
        if grants is None:
            return None
        return Certificate(part.nodes[0], in_whole(part, grants))

    def _solve(self, problem: Problem) -> Solution | None:
        solution = first_fit(problem)
        if not self.exact and isinstance(solution.errors.get(0), FatalError):
            return None
        # First fit knows nothing of caps. The model is only asked where it finds no way.
        solution = replace(
            solution,
            placements=tuple(within_caps(problem, solution.placements)),
        )
        if not solution.placements and self.exact:
            solution = solve(problem)
        check(problem, solution)
        return solution

    def fits(
        self, compiled: CompiledCluster, demand: Demand, node: NodeIndex
    ) -> bool:
        """Whether a demand of another cluster fits on a node there, alone and beside everything that binds it."""
        problem = compiled.whole
        if node not in problem.candidate_nodes(demand):
            return False
        part = cut(
            problem, [node], demands=[demand.by_itself(nodes=None)]
        ).problem
        solution = self._solve(
            part if self.exact else replace(part, budgets=())
        )
        return solution is not None and bool(solution.placements)


def in_whole(part: Subproblem, grants: Sequence[Sequence[Grant]]) -> _Grants:
    """Return grants of a part of the problem with the devices as the whole problem numbers them."""
    in_whole_problem = []
    for of_claim in grants:
        renumbered = (
            grant._replace(device=part.devices[grant.device])
            for grant in of_claim
        )
        in_whole_problem.append(tuple(renumbered))
    return tuple(in_whole_problem)


# ----------------------------------------------------------------------------
# The rules that can be part of a conflict, each with the change that takes it away.

_SINGLE_HOLDERS: Final = 24
"""Up to so many claims that hold something are members of their own; of more, those that ask for the same are one."""

_MOST_GROUPS: Final = 32
"""Of such groups so many are members of their own, the largest; the others are one together."""

_DEVICES_NAMED: Final = 2
"""So many devices of a holder are named."""


class MemberKind(StrEnum):
    """Kinds of members, in the order in which a conflict tries to do without them."""

    HOLDER = "holder"
    COUNTER = Scarcity.COUNTER.value
    GROUPS = Scarcity.GROUPS.value
    CAPACITY = Scarcity.CAPACITY.value
    CAP = "cap"
    TAINT = "taint"
    NODES = "nodes"
    AMOUNT = "amount"
    CONSTRAINT = "constraint"
    CLASS = "class selector"
    SELECTOR = "selector"
    REQUEST = "request"


@dataclass(frozen=True, eq=False)
class Member:
    """A rule with a name.

    Parameters
    ----------
    title
        What it is.
    without
        The change that takes it away.
    detail
        Who holds it, and how much is left, where that applies.
    """

    kind: MemberKind
    title: str
    without: Change = field(repr=False)
    detail: str = ""


def members_of(oracle: FeasibilityOracle) -> list[Member]:
    """Every rule that could be part of a conflict about the oracle's demand."""
    rules = _Members(oracle)
    members = chain(
        rules.holders(),
        rules.limits(),
        rules.caps(),
        rules.taints(),
        rules.nodes(),
        rules.own(),
    )
    return sorted(
        members, key=lambda member: list(MemberKind).index(member.kind)
    )


def alternatives_of(
    claims: tuple[Claim, ...],
) -> Iterator[tuple[Place, Claim, Alternative]]:
    """Every alternative of some claims with its place."""
    for claim_index, claim in enumerate(claims):
        for index, request in enumerate(claim.requests):
            for choice, alternative in enumerate(request.alternatives):
                yield (claim_index, index, choice), claim, alternative


class _Members:
    def __init__(self, oracle: FeasibilityOracle) -> None:
        self.cluster = oracle.compiled.cluster
        self.snapshot = oracle.snapshot
        self.problem = oracle.snapshot.problem
        self.offers = oracle.snapshot.context.offers
        self.ledger = oracle.snapshot.context.ledger
        self.claims = oracle.snapshot.demand.claims
        self.wording = Wording(oracle.snapshot.placed, oracle.compiled)

    def own(self) -> Iterator[Member]:
        """The criteria of the demand itself."""
        for positions in constraint_places(self.claims):
            claim_index, index = positions[0]
            constraint = self.claims[claim_index].constraints[index]
            rule = f"constraint #{index}: {constraint.kind.value} {constraint.attribute}"
            title = f"claim {self.claims[claim_index].key}, {rule}"
            if constraint.scope:
                title = constraint_text(constraint, index)
            yield Member(
                MemberKind.CONSTRAINT,
                title,
                Change(constraints=frozenset(positions)),
            )
        for claim_index, claim in enumerate(self.claims):
            if claim.defect and not claim.requests:
                yield Member(
                    MemberKind.REQUEST,
                    claim.defect,
                    Change(claims=frozenset({claim_index})),
                )
            for index, request in enumerate(claim.requests):
                title = request_text(claim, request)
                alternatives_text = " or ".join(
                    alternative.defect.removeprefix(f"{title}: ")
                    or self._asked(alternative)
                    for alternative in request.alternatives
                )
                has_defect = any(
                    alternative.defect for alternative in request.alternatives
                )
                change = Change(requests=frozenset({(claim_index, index)}))
                yield Member(
                    MemberKind.REQUEST,
                    title,
                    change,
                    alternatives_text
                    if has_defect
                    else f"asks for {alternatives_text}",
                )
        for position, claim, alternative in alternatives_of(self.claims):
            about = request_text(claim, alternative)
            for index, clause in enumerate(
                self.offers.clauses(alternative.index)
            ):
                change = Change(
                    variations={position: Variation(without=frozenset({index}))}
                )
                kind = (
                    MemberKind.CLASS if clause.of_class else MemberKind.SELECTOR
                )
                yield Member(kind, f"{about}, {clause}", change)
            for name, quantity in self.offers.amounts(
                alternative.index
            ).items():
                change = Change(
                    variations={position: Variation(unasked=frozenset({name}))}
                )
                yield Member(
                    MemberKind.AMOUNT,
                    f"{about}, capacity {name}: {quantity}",
                    change,
                )

    def _asked(self, alternative: Alternative) -> str:
        of_class = self.offers.class_name(alternative.index)
        return f"{devices_text(alternative.count)}{f' of class {of_class}' if of_class else ''}"

    def taints(self) -> Iterator[Member]:
        """The taints that are not tolerated."""
        positions: dict[DeviceTaint, set[Place]] = defaultdict(set)
        # Devices of one key have the same taints.
        one_of_each = {
            self.offers.device_key(device): device
            for device in indices(self.problem.devices)
        }
        for position, _, alternative in alternatives_of(self.claims):
            for device in one_of_each.values():
                for taint in self.offers.taints(alternative.index, device):
                    positions[taint].add(position)
        for taint, concerned in sorted(
            positions.items(), key=lambda item: taint_text(item[0])
        ):
            variations = {
                position: Variation(tolerated=frozenset({taint}))
                for position in concerned
            }
            yield Member(
                MemberKind.TAINT,
                f"taint {taint_text(taint)}",
                Change(variations=variations),
            )

    def nodes(self) -> Iterator[Member]:
        """The rules that leave nodes out."""
        counts = Counter(
            rule
            for node in self.problem.all_nodes
            for rule in self.snapshot.rules(node)
        )
        for rule, node_count in counts.items():
            detail = f"rules out {counted(node_count, 'node')}"
            yield Member(
                MemberKind.NODES, rule, Change(rules=frozenset({rule})), detail
            )

    def limits(self) -> Iterator[Member]:
        """The limits on what devices share or have each, with their users."""
        for limit in limits_of(self.problem):
            detail = ", ".join(self._state(limit))
            yield Member(
                MemberKind(limit.scarcity.value),
                str(limit),
                Change(limits=frozenset({limit})),
                detail,
            )

    def _state(self, limit: Limit) -> Iterator[str]:
        """Return the free amount of all counters of one name, and the holders of the rest."""
        if limit.scarcity is Scarcity.COUNTER:
            sets = self.problem.counters_by_name[limit.driver, limit.name]
            free, total = (
                sum(self.ledger.free[counter] for counter in sets),
                sum(self.problem.counters[counter].total for counter in sets),
            )
            yield f"{amount(free)} free of {amount(total)}{f' in {len(sets)} counter sets' if len(sets) > 1 else ''}"
        if limit.scarcity is not Scarcity.GROUPS:
            yield self.wording.holders(users_of(self.ledger, limit))

    def caps(self) -> Iterator[Member]:
        """The caps of the demand's namespace, with the use by each user."""
        for budget in self.snapshot.caps.of(self.snapshot.demand):
            users = self.snapshot.caps.users(budget)
            held = f", {self.wording.holders(users)}" if users else ""
            title = f"cap {budget.namespace}={budget.resource}:{amount(budget.most or 0)}"
            change = Change(caps=frozenset({budget.key}))
            yield Member(
                MemberKind.CAP,
                title,
                change,
                f"{amount(budget.used)} used{held}",
            )

    def holders(self) -> Iterator[Member]:
        """The claims that hold something; many are told apart by what they ask for."""
        keys = [
            key
            for key, held in self.ledger.by_claim.items()
            if held and key not in self.snapshot.own_claims
        ]
        if len(keys) <= _SINGLE_HOLDERS:
            groups = [[key] for key in keys]
        else:
            # Each member costs an answer of the model, so there may not be too many.
            alike: dict[Hashable, list[ClaimKey]] = defaultdict(list)
            for key in keys:
                alike[self._request_class(key)].append(key)
            groups = sorted(alike.values(), key=len, reverse=True)
            remaining = [
                key for group in groups[_MOST_GROUPS:] for key in group
            ]
            groups = groups[:_MOST_GROUPS] + ([remaining] if remaining else [])
        for group in groups:
            yield Member(
                MemberKind.HOLDER,
                self._title(group),
                Change(released=frozenset(group)),
                self._held(group),
            )

    def _held(self, group: list[ClaimKey]) -> str:
        """Return the amounts that some claims hold."""
        slots = list(
            dict.fromkeys(
                holding.slot
                for key in group
                for holding in self.ledger.by_claim[key]
            )
        )
        devices = [
            str(self.problem.devices[self.problem.versions[slot][-1]].id)
            for slot in slots
        ]
        return f"holds {listed(devices, _DEVICES_NAMED)}"

    def _request_class(self, key: ClaimKey) -> Hashable:
        claim = self.cluster.claim(key)
        return key in self.snapshot.placed, "" if claim is None else repr(
            claim.spec.devices.requests
        )

    def _title(self, group: list[ClaimKey]) -> str:
        state = (
            "placed claim"
            if group[0] in self.snapshot.placed
            else "allocated claim"
        )
        if len(group) == 1:
            return f"{state} {group[0]}"
        return f"{len(group)} {state.replace('claim', 'claims', 1)} like {group[0]}"


# ----------------------------------------------------------------------------
# A minimal conflict: rules that cannot hold together, though they could if any one of
# them did not hold.
#
# Deletion filter: rules are left out, whole kinds first, as long as what is left is
# infeasible. Rules are not quite monotone (``All`` asks for more devices when a
# selector is left out), so in the end every member is left out once more.


@dataclass(frozen=True)
class Conflict:
    """A minimal conflict.

    Parameters
    ----------
    members
        The rules; with none the demand cannot be placed whatever it asks for.
    """

    members: tuple[Member, ...]
    nodes: int
    """How many nodes were looked at."""

    def parts(self) -> list[Part]:
        """The conflict as tables and lines."""
        if not self.members:
            return [Line("No node could take it, whatever it asked for.")]
        rows = [
            (
                member.kind.value,
                f"{member.title}\n  {member.detail}"
                if member.detail
                else member.title,
            )
            for member in self.members
        ]
        title = "Minimal conflict: impossible together, possible without any one of them"
        return [Table(title, ("kind", "rule"), rows)]


def find_conflict(
    oracle: FeasibilityOracle, members: Sequence[Member]
) -> Conflict | None:
    """Find a minimal conflict among the members; None if the demand can be placed with all of them in force."""
    if oracle.admit(Change()) is not None:
        return None
    return _Filter(oracle, members).run()


class _Filter:
    def __init__(
        self, oracle: FeasibilityOracle, members: Sequence[Member]
    ) -> None:
        self.oracle = oracle
        self.members = members
        self.in_force = list(members)

    def run(self) -> Conflict:
        # Kinds are tried in their order: what is left out first is not blamed. Rules about
        # others go before what the demand itself asks for.
        for _, chunk in groupby(self.members, key=lambda member: member.kind):
            self._prune(list(chunk))
        # Once more one by one, until nothing can go: only then is it minimal.
        while True:
            spare = self._spare()
            if spare is None:
                break
            self.in_force.remove(spare)
        change = self._relaxed(self.in_force)
        # The model is asked about every node with all members in force.
        if self.oracle.admit(change, all_nodes=True) is not None:
            raise AssertionError("a conflict turned out to be feasible")
        return Conflict(
            tuple(reversed(self.in_force)), len(self.oracle.allowed(change))
        )

    def _spare(self) -> Member | None:
        """A member without which the others still cannot hold together."""
        for member in self.in_force:
            if not self._feasible_without([member]):
                return member
        return None

    def _prune(self, chunk: list[Member]) -> None:
        """Leave out as much of the chunk as possible."""
        if not self._feasible_without(chunk):
            self.in_force = [
                member for member in self.in_force if member not in chunk
            ]
        # One of its members is needed: each half by itself, the second beside what is left
        # of the first.
        elif len(chunk) > 1:
            half = len(chunk) // 2
            self._prune(chunk[:half])
            self._prune(chunk[half:])

    def _feasible_without(self, left_out: Sequence[Member]) -> bool:
        remaining = [
            member for member in self.in_force if member not in left_out
        ]
        return self.oracle.admit(self._relaxed(remaining)) is not None

    def _relaxed(self, in_force: Sequence[Member]) -> Change:
        return reduce(
            or_,
            (
                member.without
                for member in self.members
                if member not in in_force
            ),
            Change(),
        )
