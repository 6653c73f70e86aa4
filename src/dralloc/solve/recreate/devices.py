"""Which devices a demand gets on a node: those that leave most to others.

What devices of a node take of it is worked out once, for each class of demands that ask for the same
(`dralloc.solve.recreate.offers`). Then devices are picked one after the other, by integers alone
(`dralloc.solve.recreate.cells`), and what was picked is remembered by what was left. Requests that amounts and one
`matchAttribute` do not describe, and pools of which amounts do not tell what fits, are for first fit's search, in a
ledger that is brought up to date before (`dralloc.solve.recreate.device_search`).
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from dralloc.problem import (
    Claim,
    ConstraintKind,
    DeviceIndex,
    NodeIndex,
    Problem,
)
from dralloc.problem.indices import DemandIndex
from dralloc.problem.ledger import Ledger
from dralloc.problem.solution import (
    Grant,
    Placement,
    charged_grants,
    served_by,
)
from dralloc.solve.first_fit.candidates import ClaimClass
from dralloc.solve.first_fit.plain import GrantsOfClaims
from dralloc.solve.recreate.cells import (
    NodeCells,
    PackedRow,
    bits_of,
    packed,
)
from dralloc.solve.recreate.common_supply import CommonSupply
from dralloc.solve.recreate.device_search import DeviceSearch
from dralloc.solve.recreate.offers import (
    DeviceAmounts,
    DeviceOffer,
    OfferBook,
    RequestOffer,
    RowAmounts,
    WishOffers,
)

__all__ = ["DeviceWish", "NodeDevices", "Site", "Way"]

# ----------------------------------------------------------------------------
# Classes of demands.


class Way(NamedTuple):
    """Devices of a node that serve all claims of a demand.

    Parameters
    ----------
    grants
        By claim.
    need
        What they take, packed.
    openings
        Shared devices of these of which the first user takes something more, with what that is.
    is_in_common
        Whether any of it could be used from other nodes, too.
    """

    grants: GrantsOfClaims
    need: int
    openings: tuple[tuple[int, int], ...]
    is_in_common: bool


class Site(NamedTuple):
    """Where a demand is placed, and with which devices."""

    node: NodeIndex
    way: Way


class RememberedChoices(NamedTuple):
    """Which way to take on a node, by what is left there in the bits of a mask."""

    mask: int
    ways: dict[int, Way | None]


@dataclass(slots=True, eq=False)
class DeviceWish:
    """Demands that ask for the same devices.

    Parameters
    ----------
    claims
        Those of one of them.
    hopeful
        By node, whether it may ever serve them.
    is_additive
        Whether what they take is always the same, whoever came before.
    is_composable
        Whether devices can be picked one after the other, with one value of an attribute at most in common.
    choices
        By node, which way to take.
    offers
        By node, what there is for them.
    ways
        Those that were taken.
    """

    claim_class: ClaimClass
    claims: Sequence[Claim]
    hopeful: list[bool]
    is_additive: bool
    is_composable: bool
    choices: dict[int, RememberedChoices] = field(default_factory=dict)
    offers: dict[int, WishOffers] = field(default_factory=dict)
    ways: dict[tuple[int, GrantsOfClaims], Way] = field(default_factory=dict)


_UNKNOWN: Final = Way((), 0, (), is_in_common=False)
"""Stands for what was not worked out yet."""


def _is_additive(claims: Sequence[Claim]) -> bool:
    """Return whether no request asks for admin access, which holds nothing and still asks for room."""
    return not any(
        alternative.admin
        for claim in claims
        for alternative in claim.alternatives()
    )


def _is_composable(claims: Sequence[Claim]) -> bool:
    """Return whether there is no constraint but one `matchAttribute` about one claim."""
    constraints = [
        constraint for claim in claims for constraint in claim.constraints
    ]
    return len(constraints) <= 1 and all(
        constraint.kind is ConstraintKind.MATCH and not constraint.scope
        for constraint in constraints
    )


# ----------------------------------------------------------------------------
# The choice of devices.

_ANY_WAY: Final = 0.1
"""How often devices are taken in another order, and not those that leave most to others: so other answers are met."""

_STATES: Final = 4000
"""For so many states of a node it is remembered what to choose there."""


class NodeDevices:
    """Chooses devices, and knows what is left of them.

    Parameters
    ----------
    staying
        Placements that nobody leaves.
    random
        Draws the order of devices.
    """

    def __init__(
        self, problem: Problem, search: DeviceSearch, random: Random
    ) -> None:
        self._problem = problem
        self._random = random
        self._search = search
        self._classes: dict[tuple[ClaimClass, int], DeviceWish] = {}
        self._shares: Tally[int] = Tally()
        self._common = CommonSupply(problem)
        # Who came and left since first fit's search heard of it, by node; and the nodes where that was about more than
        # the node.
        self._moved: list[dict[DemandIndex, None]] = [{} for _ in problem.nodes]
        self._moved_in_common: dict[NodeIndex, None] = {}
        self.sites: dict[DemandIndex, Site] = {}

    def begin(self, staying: Sequence[Placement]) -> Ledger:
        """Enter those who stay, and return the ledger with them."""
        problem = self._problem
        self._base = base = Ledger(problem)
        for _, device_index, charge in charged_grants(problem, staying):
            device = problem.devices[device_index]
            base.enter(device, charge, share=device.shareable)
        for placement in staying:
            self._search.accept(placement)
        self._is_additive = self._additive_nodes()
        self._cells = NodeCells(len(problem.nodes), self._bits_of_nodes())
        self._amounts = DeviceAmounts(problem, base, self._cells, self._common)
        self._offer_book = OfferBook(problem, self._search, self._amounts)
        return base

    def _additive_nodes(self) -> list[bool]:
        """Return by node whether amounts tell what fits.

        They do not where a pool is being updated or overdrawn, where groups exclude each other, and where devices take
        something of nodes. Nor do they on nodes that have something in common with such a node.
        """
        nodes = self._problem.all_nodes
        if self._search.charges_nodes:
            return [False] * len(nodes)
        additive = {node for node in nodes if self._is_additive_alone(node)}
        is_additive = [False] * len(nodes)
        for tied in self._common.tied_nodes:
            for node in tied:
                is_additive[node] = additive.issuperset(tied)
        return is_additive

    def _is_additive_alone(self, node: NodeIndex) -> bool:
        """Return whether amounts tell what fits, as far as the devices of a node are concerned."""
        problem = self._problem
        devices = [
            problem.devices[index] for index in problem.nodes[node].devices()
        ]
        return all(
            device.is_additive
            and device.slot not in problem.several_versions
            and not self._base.is_overdrawn(device.group)
            for device in devices
        )

    def _bits_of_nodes(self) -> int | None:
        """Return how many bits are enough for the rows of any node; None if nodes have nothing in common."""
        if self._common.is_empty:
            return None
        return max(
            bits_of(self._totals(node)) for node in self._problem.all_nodes
        )

    def _totals(self, node: NodeIndex) -> Iterator[int]:
        """Give out the totals of all rows that a node could have by itself."""
        problem, common = self._problem, self._common
        groups: dict[int, None] = {}
        for index in problem.nodes[node].devices():
            device = problem.devices[index]
            groups[device.group] = None
            if device.slot not in common.slots:
                # The device itself, and whether it is open.
                yield from (1, 1)
                for capacity in device.capacity.values():
                    yield capacity.total
        for group in groups:
            for counter in problem.counters_of.get(group, ()):
                if counter not in common.counters:
                    yield max(0, self._base.free[counter])

    # Classes.

    def class_of(self, claims: Sequence[Claim]) -> DeviceWish | None:
        """Return the class of a demand's claims; None if first fit's search for them may end with an error."""
        claim_class = self._search.class_of(claims)
        if claim_class is None:
            return None
        # Some demands take nothing of nodes, and have a claim less.
        key = claim_class, len(claims)
        if key not in self._classes:
            self._classes[key] = DeviceWish(
                claim_class,
                claims,
                self._search.hopeful_nodes(claim_class, claims),
                _is_additive(claims),
                _is_composable(claims),
            )
        return self._classes[key]

    # What is left.

    def take(self, demand: DemandIndex, site: Site) -> None:
        """Place a demand at a site, which must be free."""
        way, node = site.way, site.node
        self._cells.take(node, self._need(way))
        for slot, _ in way.openings:
            self._shares[slot] += 1
        self._note_move(demand, site)
        self.sites[demand] = site

    def give_back(self, demand: DemandIndex) -> Site:
        """Take a demand away, and return where it was."""
        site = self.sites.pop(demand)
        way, node = site.way, site.node
        for slot, _ in way.openings:
            self._shares[slot] -= 1
        self._cells.give_back(node, self._need(way))
        self._note_move(demand, site)
        return site

    def _note_move(self, demand: DemandIndex, site: Site) -> None:
        self._moved[site.node][demand] = None
        if site.way.is_in_common:
            self._moved_in_common[site.node] = None

    def _need(self, way: Way) -> int:
        """Return what a way takes, with what the first users of shared devices take."""
        need = way.need
        for slot, opening in way.openings:
            if not self._shares[slot]:
                need += opening
        return need

    def placement(self, demand: DemandIndex) -> Placement:
        """Return the placement of a demand that has a site."""
        site = self.sites[demand]
        return Placement(demand, site.node, site.way.grants)

    # The choice.

    def may_serve(self, wish: DeviceWish, node: NodeIndex) -> bool:
        """Return whether a node may serve a class now, as far as that is known."""
        choices = wish.choices.get(node)
        if choices is None:
            return True
        mask, ways = choices
        return ways.get(self._cells.left(node, mask), _UNKNOWN) is not None

    def choose(
        self, wish: DeviceWish, claims: Sequence[Claim], node: NodeIndex
    ) -> Way | None:
        """Return the devices that claims of a class get on a node; None if there are none."""
        if not (wish.is_additive and self._is_additive[node]):
            return self._searched(wish, claims, node)
        in_any_order = self._random.random() < _ANY_WAY
        if in_any_order and wish.is_composable:
            return self._composed(wish, node, in_any_order=True)
        choices = wish.choices.get(node)
        if choices is None:
            choices = wish.choices[node] = RememberedChoices(
                self._mask(wish, node), {}
            )
        mask, ways = choices
        way = ways.get(self._cells.left(node, mask), _UNKNOWN)
        if way is not _UNKNOWN:
            return way
        if wish.is_composable:
            way = self._composed(wish, node, in_any_order=False)
        else:
            way = self._searched(wish, claims, node)
        if len(ways) >= _STATES:
            ways.clear()
        # Looked up anew: with new devices the cell may have got new rows.
        ways[self._cells.left(node, mask)] = way
        return way

    def _mask(self, wish: DeviceWish, node: NodeIndex) -> int:
        """Return the bits that decide which way to take: all, where that is for first fit's search."""
        return self._offers(wish, node).mask if wish.is_composable else -1

    def _searched(
        self, wish: DeviceWish, claims: Sequence[Claim], node: NodeIndex
    ) -> Way | None:
        """Search as first fit does."""
        self._bring_up_to_date({node, *self._moved_in_common})
        grants = self._search.find(wish.claim_class, claims, node)
        if grants is None:
            return None
        return self.way(wish, node, grants)

    def _bring_up_to_date(self, nodes: Set[NodeIndex]) -> None:
        """Tell first fit's search who came and left on these nodes.

        All give back before anybody takes. What was brought up to date on another node stays as it is.
        """
        moved = [
            demand for node in sorted(nodes) for demand in self._moved[node]
        ]
        for demand in moved:
            if self._search.node_of(demand) in nodes:
                self._search.withdraw(demand)
        for demand in moved:
            site = self.sites.get(demand)
            if site is not None and site.node in nodes:
                self._search.withdraw(demand)
                self._search.admit(self.placement(demand))
        for node in nodes:
            self._moved[node].clear()
        self._moved_in_common.clear()

    def _composed(
        self, wish: DeviceWish, node: NodeIndex, *, in_any_order: bool
    ) -> Way | None:
        """Pick devices one after the other for each request."""
        offers = self._offers(wish, node)
        values = offers.values
        if in_any_order and len(values) > 1:
            values = self._random.sample(values, len(values))
        for value in values:
            grants = self._picked(offers, node, value, in_any_order)
            if grants is not None:
                return self.way(wish, node, grants)
        return None

    def _picked(
        self,
        offers: WishOffers,
        node: NodeIndex,
        value: Hashable,
        in_any_order: bool,
    ) -> GrantsOfClaims | None:
        """Return what is picked among devices that have a value, where that is asked for; None if too few fit."""
        guards = self._cells.guards(node)
        free = self._cells.left(node, -1)
        state = free | guards
        picked: list[list[Grant]] = [list(grants) for grants in offers.before]
        used: set[DeviceIndex] = set()
        for request in offers.requests:
            for alternative in request:
                # Each of these fits by itself; together they may take more than there is.
                fitting = self._fitting_offers(
                    alternative, value, state, guards, used
                )
                after, devices = state, []
                for offer, need in self._in_order(
                    fitting, alternative.devices_asked, free, in_any_order
                ):
                    if (after - need) & guards == guards:
                        after -= need
                        devices.append(offer.device)
                        if len(devices) == alternative.devices_asked:
                            break
                if len(devices) == alternative.devices_asked:
                    break
            else:
                # No alternative fits beside what requests before it picked, and these do not pick anew.
                return None
            state = after
            used.update(devices)
            picked[alternative.claim] += [
                Grant(alternative.request, alternative.choice, device)
                for device in devices
            ]
        return tuple([tuple(grants) for grants in picked])

    def _fitting_offers(
        self,
        alternative: RequestOffer,
        value: Hashable,
        state: int,
        guards: int,
        used: Set[DeviceIndex],
    ) -> list[tuple[DeviceOffer, int]]:
        """Return the devices for which there is enough now, each with what it takes."""
        shares = self._shares
        needs = [
            (
                offer,
                offer.need + offer.opening
                if offer.opening and not shares[offer.slot]
                else offer.need,
            )
            for offer in alternative.devices
        ]
        return [
            (offer, need)
            for offer, need in needs
            if (state - need) & guards == guards
            and offer.device not in used
            and (not alternative.is_constrained or value in offer.values)
        ]

    def _in_order(
        self,
        offers: list[tuple[DeviceOffer, int]],
        asked: int,
        free: int,
        in_any_order: bool,
    ) -> Sequence[tuple[DeviceOffer, int]]:
        """Return devices, those first that leave most to others: what they draw on is the least free.

        Where one is enough, that is the first alone; where there are too few, none.
        """
        if len(offers) < asked:
            return ()
        if len(offers) == 1:
            return offers
        if in_any_order:
            return self._random.sample(offers, len(offers))
        distinct_rows = {offer.rows for offer, _ in offers}
        freedom = {rows: _freedom(rows, free) for rows in distinct_rows}

        def key(fitting: tuple[DeviceOffer, int]) -> tuple[float, int]:
            offer, _ = fitting
            return freedom[offer.rows], offer.rivals

        return [min(offers, key=key)] if asked == 1 else sorted(offers, key=key)

    # What devices take.

    def _offers(self, wish: DeviceWish, node: NodeIndex) -> WishOffers:
        """Return what a node has for a class."""
        if node not in wish.offers:
            wish.offers[node] = self._offer_book.for_claims(wish.claims, node)
        return wish.offers[node]

    def way(
        self, wish: DeviceWish, node: NodeIndex, grants: GrantsOfClaims
    ) -> Way:
        """Return the way in which devices serve a class."""
        key = node, grants
        way = wish.ways.get(key)
        if way is None:
            way = self._new_way(wish, node, grants)
            wish.ways[key] = way
        return way

    def _new_way(
        self, wish: DeviceWish, node: NodeIndex, grants: GrantsOfClaims
    ) -> Way:
        is_in_common = self._search.charges_nodes or any(
            self._problem.devices[grant.device].slot in self._common.slots
            for claim_grants in grants
            for grant in claim_grants
        )
        if not self._is_additive[node]:
            return Way(grants, 0, (), is_in_common)
        amounts: RowAmounts = []
        openings: dict[int, int] = {}
        for claim, alternative, grant in served_by(wish.claims, grants):
            # Admin access holds nothing; what is beside it in the same claims counts for everybody else.
            if claim.is_synthetic or alternative.admin:
                continue
            charge = self._amounts.charge(alternative, grant.device)
            taken, once = self._amounts.taken(grant.device, node, charge)
            amounts += taken
            opening = packed(once)
            assert opening is not None
            if opening:
                openings[self._problem.devices[grant.device].slot] = opening
        need = packed(amounts)
        assert need is not None
        return Way(grants, need, tuple(openings.items()), is_in_common)


def _freedom(rows: Iterable[PackedRow], free: int) -> float:
    """Return how much of some rows is free, each as a part of all that it has."""
    return sum([((free >> row.shift) & row.mask) / row.total for row in rows])
