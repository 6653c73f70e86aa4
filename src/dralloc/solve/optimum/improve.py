"""Large-neighbourhood search on the hub: it takes any answer to any problem and makes it better.

Step by step some nodes are chosen, the demands on them are taken out, and they are placed again together with demands
that wait: as a problem of its own, with everything that the rest of the answer holds in use, which is solved as any
problem is (`dralloc.solve.optimum.neighbourhood`). Nothing here knows a rule or a shape of demand; so nothing is too
mixed for it.

From top to bottom: the ways to choose the next neighbourhood, drawn by what they gain for their work; the search, which
keeps what is better; and the component that is too large or too mixed for one model, which is searched first and
decided by the exact model at last.

Sources: Shaw 1998 for large-neighbourhood search, Ropke and Pisinger 2006 for the choice of neighbourhoods by success,
here by success for work, as neighbourhoods of many nodes take ten times as long as those of few.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from math import exp, inf
from typing import Final, NamedTuple, Protocol

import numpy as np

from dralloc.objects.choices import MAX_SEED, Backend, Options
from dralloc.objects.errors import AllocationError
from dralloc.problem import NodeIndex, Problem, indices, numbered
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.inter_pod import OneDomain
from dralloc.problem.solution import (
    APPRAISAL_UNIT,
    Appraisal,
    LevelPrices,
    Placement,
)
from dralloc.solve.optimum.candidates import CandidateSite, NodeCapabilities
from dralloc.solve.optimum.component import Component, is_proven
from dralloc.solve.optimum.neighbourhood import (
    Bonds,
    ExtraRules,
    Incumbent,
    Neighbourhood,
    NeighbourhoodTask,
    neighbourhood,
)
from dralloc.solve.optimum.objective import DemandSubset, Objective
from dralloc.solve.optimum.relax import Bound, RelaxationLadder
from dralloc.solve.optimum.relax.prices import levels_of
from dralloc.solve.optimum.search import Watch
from dralloc.solve.optimum.stopping import Cancelled, Stop, Stopped
from dralloc.solve.work import Parcel, run_all

__all__ = [
    "NeighbourhoodSearch",
    "SearchedComponent",
    "climbing_on",
    "relaxation_stop",
]

# ----------------------------------------------------------------------------
# Which neighbourhood comes next: several ways to choose nodes and those who wait, drawn
# by their success for the work that they were.
#
# Each way names some nodes. Freed are the blocks that stand on them, as long as there
# is room, and beside them blocks that wait and that one of the nodes could serve.

_BREADTHS: Final = (4, 24)
"""On so many nodes at most demands are freed. Where nodes have many demands, few nodes are most often enough; where
they have one or two, an exchange takes more of them."""

_TRUST: Final = 3000
"""Each way begins as if it had had one success for so much work, which is that of about twenty small neighbourhoods."""

_TOLERANCE: Final = 0.1
"""Who would pay so much more than it is worth, as a part of what a demand is worth, is drawn much less often."""

_GANG_EFFORT: Final = 4.0
"""To make room for a gang takes so many times the work of the solver."""

_ONE_MORE: Final = APPRAISAL_UNIT - APPRAISAL_UNIT // 1000
"""What the smallest gain is worth, a little less for what was rounded."""

_LITTLE_WEIGHT: Final = 0.05
"""Nobody is drawn with less than this part of the average weight."""


class _Draft(NamedTuple):
    """Nodes to choose from, in order.

    Parameters
    ----------
    nodes
        More than are needed.
    block
        The block that waits for which they were chosen; None if they were not chosen for anybody.
    """

    nodes: Sequence[NodeIndex]
    block: int | None = None


class _Approach(NamedTuple):
    """A way to choose nodes, by its name, and on how many of them demands are freed at most."""

    way: str
    breadth: int


@dataclass(slots=True)
class _Experience:
    """How often an approach led to a better answer, and how much work that was."""

    successes: int = 0
    work: float = 0.0

    @property
    def gain(self) -> float:
        """Successes for work, as far as that is known; where nothing helps, all approaches get as much work."""
        return (1 + self.successes) / (_TRUST + self.work)


class Proposal(NamedTuple):
    """Blocks to free, for these nodes.

    Parameters
    ----------
    approach
        That which proposed them.
    reserved
        All that no other neighbourhood may touch at the same time: nodes, pools that several nodes can use, blocks, and
        rules between pods.
    work
        About how long it takes: the number of ways to put a demand on a node, times the effort. Counted and not
        measured, so that the search takes the same steps wherever it runs.
    effort
        How much work the solver may do about it, as a multiple of what it usually may.
    """

    approach: _Approach
    nodes: tuple[NodeIndex, ...]
    blocks: tuple[int, ...]
    reserved: frozenset[Hashable]
    work: float
    effort: float = 1.0


class NeighbourhoodSelection:
    """Chooses neighbourhoods.

    Parameters
    ----------
    demands
        Those that can be freed.
    largest_block
        Larger blocks are never freed.
    appraisal
        What demands and nodes are worth; None if that is not known.
    counts_weight_alone
        Whether nothing but more weight is a gain.
    """

    def __init__(  # noqa: PLR0913 - the answer, what may change, and how to choose
        self,
        incumbent: Incumbent,
        bonds: Bonds,
        demands: Sequence[DemandIndex],
        seed: int,
        largest_block: int,
        appraisal: Appraisal | None = None,
        *,
        counts_weight_alone: bool = False,
    ) -> None:
        self.incumbent = incumbent
        self.bonds = bonds
        self.problem = incumbent.problem
        self.capabilities = NodeCapabilities(self.problem)
        self.random = np.random.default_rng(seed)
        self._appraisal = appraisal
        self._counts_weight_alone = counts_weight_alone
        self._largest_block = largest_block
        self._blocks = [
            block
            for block in dict.fromkeys(
                bonds.block_of[demand] for demand in demands
            )
            if len(bonds.blocks[block]) <= largest_block
            and not self._is_hopeless(block)
        ]
        self._promises = {block: self._promise(block) for block in self._blocks}
        levels = levels_of(
            self.problem.demands[demand].weight for demand in demands
        )
        self._highest_of_last_level = levels[-1].highest if levels else 0
        self._nodes = self._serving_nodes()
        self._waiting: Sequence[int] = ()
        nodes_of_type = grouped(
            (self.capabilities.node_types[node], node) for node in self._nodes
        )
        self._alike = {
            node: nodes for nodes in nodes_of_type.values() for node in nodes
        }
        seen_from = Tally(
            pool.id for node in self.problem.nodes for pool in node.pools
        )
        self._shared_pools = {
            index: [pool.id for pool in node.pools if seen_from[pool.id] > 1]
            for index, node in numbered(self.problem.nodes)
        }
        self._queue: list[NodeIndex] = []
        # Bound methods would keep the selection, and the answer with it, alive until garbage is collected.
        cls = NeighbourhoodSelection
        self._ways: dict[str, Callable[[NeighbourhoodSelection], _Draft]] = {
            "in turn": cls._nodes_in_turn,
            "for a waiting block": cls._nodes_for_waiting,
        }
        if appraisal is not None:
            self._ways["far from the bound"] = cls._nodes_far_from_bound
        self._experience = {
            _Approach(way, breadth): _Experience()
            for way in self._ways
            for breadth in _BREADTHS
        }

    def turns(self, size: int) -> int:
        """Return after about how many neighbourhoods of a size each node could have had a turn."""
        return (
            1
            + (len(self._blocks) + len(self._nodes)) // size
            + len(set(self.capabilities.node_types))
        )

    def propose(
        self, side_by_side: Sequence[Proposal], size: int
    ) -> Proposal | None:
        """Choose a neighbourhood that has nothing to do with the others; None if there is none.

        Parameters
        ----------
        side_by_side
            Those that are solved side by side with it, from the same answer.
        size
            About so many demands are freed.
        """
        if not self._nodes:
            return None
        if not side_by_side:
            self._waiting = self._who_waits()
        busy = frozenset[Hashable]().union(
            *(proposal.reserved for proposal in side_by_side)
        )
        approach = self._some_approach()
        nodes: list[NodeIndex] = []
        blocks: dict[int, None] = {}
        reserved: set[Hashable] = set()
        draft = self._ways[approach.way](self)
        waiting_limit, effort = size // 2, 1.0
        if draft.block is not None and busy.isdisjoint(
            self._of_block(draft.block)
        ):
            blocks[draft.block] = None
            reserved |= self._of_block(draft.block)
            if len(self.bonds.blocks[draft.block]) > 1:
                # A gang finds room where many leave, and is hard enough to place.
                size, waiting_limit = self._largest_block, 0
                effort = _GANG_EFFORT
        for node in draft.nodes:
            keys_of_node = self._of_node(node)
            if not busy.isdisjoint(keys_of_node):
                continue
            nodes.append(node)
            reserved |= keys_of_node
            for demand in self.incumbent.on_node(node):
                block = self.bonds.block_of[demand]
                keys_of_block = self._of_block(block)
                if len(self.bonds.blocks[block]) <= size and busy.isdisjoint(
                    keys_of_block
                ):
                    blocks[block] = None
                    reserved |= keys_of_block
            if (
                len(nodes) >= approach.breadth
                or self._number_of_demands(blocks) >= size
            ):
                break
        if not nodes:
            return None
        for block in self._some_waiting(nodes, busy, waiting_limit):
            blocks[block] = None
            reserved |= self._of_block(block)
        if not blocks or not self.may_gain(nodes, blocks):
            return None
        work = self._number_of_demands(blocks) * len(nodes) * effort
        return Proposal(
            approach,
            tuple(nodes),
            tuple(blocks),
            frozenset(reserved),
            work,
            effort,
        )

    def may_gain(
        self, nodes: Iterable[NodeIndex], blocks: Iterable[int]
    ) -> bool:
        """Whether the bound leaves room for one demand more, if these blocks are placed anew on these nodes.

        At the prices of the relaxation, all that is placed there is worth no more than what the nodes are worth beyond
        what those pay that stay, and what the demands are worth beyond what they pay. So it is worth more than now by
        no more than what is not paid for, what those have to gain that wait, and what those lose now that stand there.

        A demand of a higher level is worth less there than all below that could make room for it: where one waits, the
        neighbourhood is always tried. Where none does, a gain is one of the last level.
        """
        appraisal, placements = self._appraisal, self.incumbent.placements
        if appraisal is None or not self._counts_weight_alone:
            return True
        demands = [
            demand for block in blocks for demand in self.bonds.blocks[block]
        ]
        homes = [
            placements[demand].node
            for demand in demands
            if demand in placements
        ]
        touched = {*nodes, *homes}
        if any(self._shared_pools[node] for node in touched):
            # What several nodes share is not counted to any of them.
            return True
        if any(
            self.problem.demands[demand].weight > self._highest_of_last_level
            for demand in demands
            if demand not in placements
        ):
            return True
        room = sum(
            appraisal.unpaid(node, self.incumbent.on_node(node))
            for node in touched
        )
        for demand in demands:
            profit = appraisal.profits.get(demand, 0)
            room += max(0, -profit if demand in placements else profit)
        return room >= _ONE_MORE

    def _some_approach(self) -> _Approach:
        """Draw an approach, in proportion to what it gained for its work so far."""
        approaches = list(self._experience)
        gains = np.array(
            [experience.gain for experience in self._experience.values()]
        )
        drawn = self.random.choice(len(approaches), p=gains / gains.sum())
        return approaches[int(drawn)]

    def learn(self, proposal: Proposal, *, better: bool) -> None:
        """Remember whether a proposal led to a better answer."""
        experience = self._experience[proposal.approach]
        experience.successes += better
        experience.work += proposal.work

    def _is_hopeless(self, block: int) -> bool:
        return any(
            self.problem.demands[demand].is_defective
            for demand in self.bonds.blocks[block]
        )

    def _serving_nodes(self) -> list[NodeIndex]:
        """The nodes that could serve any of the demands."""
        samples = {
            self.capabilities.shape(demand): demand
            for block in self._blocks
            for demand in self.bonds.blocks[block]
        }
        return [
            node
            for node in indices(self.problem.nodes)
            if any(
                self.capabilities.could_serve(node, demand)
                for demand in samples.values()
            )
        ]

    def _number_of_demands(self, blocks: Iterable[int]) -> int:
        return sum(len(self.bonds.blocks[block]) for block in blocks)

    def _of_node(self, node: NodeIndex) -> set[Hashable]:
        """What a neighbourhood with a node reserves."""
        return {
            ("node", node),
            *(("pool", pool) for pool in self._shared_pools[node]),
        }

    def _of_block(self, block: int) -> set[Hashable]:
        """What a neighbourhood with a block reserves: also the nodes where it stands."""
        reserved: set[Hashable] = {("block", block)}
        for demand in self.bonds.blocks[block]:
            reserved.update(
                ("rule", role.rule)
                for role in self.problem.demands[demand].roles
            )
            if demand in self.incumbent.placements:
                reserved |= self._of_node(
                    self.incumbent.placements[demand].node
                )
        return reserved

    def _who_waits(self) -> list[int]:
        """Return the blocks of which somebody is not placed who is worth anything."""
        placed, demands = self.incumbent.placements, self.problem.demands
        return [
            block
            for block in self._blocks
            if any(
                demand not in placed and demands[demand].weight > 0
                for demand in self.bonds.blocks[block]
            )
        ]

    def _some_waiting(
        self, nodes: Sequence[NodeIndex], busy: Set[Hashable], size: int
    ) -> list[int]:
        """Draw blocks that wait and that one of the nodes could serve.

        One half is of those that most is to be gained by, one half of all.
        """
        if not size:
            return []
        shuffled = [
            self._waiting[index]
            for index in self.random.permutation(len(self._waiting)).tolist()
        ]
        promising = [
            self._waiting[index]
            for index in self._drawn(
                [self._promises[block] for block in self._waiting]
            )
        ]
        node_set = set(nodes)
        types = list(
            {
                self.capabilities.node_types[node]: node for node in nodes
            }.values()
        )
        chosen: dict[int, None] = {}
        for pool, limit in ((promising, size // 2), (shuffled, size)):
            freed_count = self._number_of_demands(chosen)
            for block in pool:
                if freed_count >= limit:
                    break
                if (
                    block not in chosen
                    and self._could_go(block, node_set, types)
                    and busy.isdisjoint(self._of_block(block))
                ):
                    chosen[block] = None
                    freed_count += len(self.bonds.blocks[block])
        return list(chosen)

    def _could_go(
        self, block: int, nodes: Set[NodeIndex], types: Sequence[NodeIndex]
    ) -> bool:
        """Return whether any of a block's demands could stand on any of the nodes, with one node of each type."""
        return any(
            any(self.capabilities.could_serve(node, demand) for node in types)
            and bool(self.bonds.candidates(demand, nodes))
            for demand in self.bonds.blocks[block]
        )

    def _promise(self, block: int) -> float:
        """Return how much is gained by placing a block: at the prices of the relaxation, or by weight."""
        members = self.bonds.blocks[block]
        if self._appraisal is None:
            return float(
                max(self.problem.demands[demand].weight for demand in members)
            )
        known = self._appraisal.profits
        profit = sum([known.get(demand, 0) for demand in members])
        # Whoever would pay a little more than it is worth may still fit exactly where others do not.
        tolerance = _TOLERANCE * APPRAISAL_UNIT
        return max(0, profit) + tolerance * exp(min(0, profit) / tolerance)

    def _drawn(self, weights: Sequence[float]) -> list[int]:
        """Return the places of weights in an order at random, in which larger weights tend to come first.

        As if one after the other was drawn, each in proportion to its weight (Efraimidis and Spirakis 2006). All have a
        little weight.
        """
        shares = np.array(weights, dtype=np.float64)
        shares += max(_LITTLE_WEIGHT * shares.mean(), 1.0) if len(shares) else 0
        arrivals = self.random.exponential(size=len(shares)) / shares
        return [int(place) for place in np.argsort(arrivals, kind="stable")]

    # Ways to choose nodes: each gives out more than are needed.

    def _nodes_far_from_bound(self) -> _Draft:
        """Nodes that are worth more than the demands on them pay, each the more likely the more that is.

        These are the nodes where the bound and the answer differ: others cannot be better used at these prices.
        """
        appraisal = self._appraisal
        if appraisal is None:
            return self._nodes_in_turn()
        unpaid = [
            appraisal.unpaid(node, self.incumbent.on_node(node))
            for node in self._nodes
        ]
        order = [self._nodes[place] for place in self._drawn(unpaid)]
        alike = set(self._alike[order[0]])
        similar_nodes = [node for node in order if node in alike]
        different = [node for node in order if node not in alike]
        return _Draft([*similar_nodes, *different])

    def _nodes_in_turn(self) -> _Draft:
        """Nodes in an order at random, each first once before any is again; those that are alike come together."""
        if not self._queue:
            self._queue = self._shuffled(self._nodes)
        first = self._queue.pop()
        alike = set(self._alike[first])
        following = [node for node in reversed(self._queue) if node in alike]
        in_line = {first, *following}
        similar_nodes = [
            node for node in self._alike[first] if node not in in_line
        ]
        different = [node for node in self._nodes if node not in alike]
        return _Draft(
            [
                first,
                *following,
                *self._shuffled(similar_nodes),
                *self._shuffled(different),
            ]
        )

    def _nodes_for_waiting(self) -> _Draft:
        """Nodes that could serve a block that waits, in one domain if that is asked for."""
        if not self._waiting:
            return self._nodes_in_turn()
        [first, *_] = self._drawn(
            [self._promises[block] for block in self._waiting]
        )
        block = self._waiting[first]
        demand = self.bonds.blocks[block][0]
        allowed = self.bonds.candidates(demand, set(self._nodes))
        nodes = [
            node
            for node in sorted(allowed)
            if self.capabilities.could_serve(node, demand)
        ]
        for role in self.problem.demands[demand].roles:
            if role.carries and isinstance(role.rule, OneDomain):
                nodes = self._of_one_domain(role.rule, nodes)
        return _Draft(self._shuffled(nodes), block)

    def _of_one_domain(
        self, rule: OneDomain, nodes: Sequence[NodeIndex]
    ) -> list[NodeIndex]:
        """Those of the nodes that are in a domain, which is drawn."""
        names = [self.problem.nodes[node].name for node in nodes]
        domains = grouped(
            (rule.domains[name], node)
            for name, node in zip(names, nodes, strict=True)
            if name in rule.domains
        )
        if not domains:
            return []
        return list(domains.values())[int(self.random.integers(len(domains)))]

    def _shuffled(self, nodes: Sequence[NodeIndex]) -> list[NodeIndex]:
        return [
            nodes[index]
            for index in self.random.permutation(len(nodes)).tolist()
        ]


# ----------------------------------------------------------------------------
# The search: free neighbourhoods, solve them, keep what is better; again and again.


class _Reach(NamedTuple):
    """About so many demands are freed at once, and so much the solver may do about it (see `Stop.effort`)."""

    size: int
    effort: float


_REACHES: Final = (_Reach(24, 0.1), _Reach(40, 0.2))
"""Small neighbourhoods as long as they help: they are decided in a third of the time. Then large ones."""

_FEWEST_SIDE_BY_SIDE: Final = 8
_MOST_SIDE_BY_SIDE: Final = 32
_NODES_FOR_A_NEIGHBOURHOOD: Final = 12
"""Neighbourhoods that have nothing in common are solved at a time: one for every twelve nodes, within these limits, by
however many processes. So the answer after a number of steps does not depend on how many processes there are. With more
neighbourhoods, processes wait less for the last one; but each is solved without what the others bring."""

_DRAWS: Final = 3
"""So many are drawn at most for each neighbourhood that is solved: many have nothing to gain, or meet others."""

_PATIENCE: Final = 3
"""So often all could have had a turn in large neighbourhoods without any gain before the search gives up."""


class NeighbourhoodSearch:
    """Improves an answer to some demands of a problem.

    Parameters
    ----------
    subset
        The demands. Others take nothing that these could take.
    tiers
        What counts, most important first.
    placements
        The answer to begin with.
    options
        The seed, the jobs and where they are done.
    aim
        An answer is better if one of so many tiers is, the first ones, without loss in those before it; None for all.
        Later tiers come with it.
    extra
        Rules beyond those of the problem, which the placements keep.
    appraisal
        What demands and nodes are worth; None if that is not known.

    Attributes
    ----------
    steps
        How many neighbourhoods were solved.
    failures
        Selectors that failed on a device, by what they say.
    """

    def __init__(  # noqa: PLR0913 - the answer, what may change, and how to choose
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        placements: Sequence[Placement],
        options: Options,
        *,
        aim: int | None = None,
        extra: ExtraRules | None = None,
        appraisal: Appraisal | None = None,
    ) -> None:
        self.subset = subset
        self.problem = subset.problem
        self.tiers = tiers
        self.aim = len(tiers) if aim is None else aim
        self.options = options
        self.incumbent = Incumbent(self.problem, placements)
        self.extra = extra
        self.bonds = Bonds(
            self.problem, extra.together(self.problem) if extra else ()
        )
        self.selection = NeighbourhoodSelection(
            self.incumbent,
            self.bonds,
            subset.demands,
            options.seed,
            _REACHES[-1].size,
            appraisal,
            counts_weight_alone=all(
                tier.weights is not None for tier in tiers[: self.aim]
            ),
        )
        self._eligibility = Parcel(self.problem.eligibility)
        self.steps = 0
        self.failures: dict[str, AllocationError] = {}
        self._side_by_side = min(
            max(
                len(self.problem.nodes) // _NODES_FOR_A_NEIGHBOURHOOD,
                _FEWEST_SIDE_BY_SIDE,
            ),
            _MOST_SIDE_BY_SIDE,
        )

    def run(self, stop: Stop) -> Iterator[tuple[Placement, ...]]:
        """Search, and give out each better answer, until nothing helps any more.

        Raises
        ------
        Stopped
            It is time to stop.
        """
        for reach in _REACHES:
            patience = _PATIENCE if reach is _REACHES[-1] else 1
            in_vain = 0
            while (
                in_vain < patience * self.selection.turns(reach.size)
                and self.steps != self.options.steps
            ):
                stop.check()
                proposals = self._proposals(reach)
                gains = self._round(proposals, reach, stop)
                in_vain += max(1, len(proposals))
                if any(gains):
                    in_vain = 0
                    yield self.incumbent.in_order()

    def _proposals(self, reach: _Reach) -> list[Proposal]:
        """Neighbourhoods that can be solved side by side."""
        # What a namespace may still use is known to one neighbourhood at a time.
        limited = self.problem.budgets or (self.extra and self.extra.is_limited)
        proposal_limit = 1 if limited else self._side_by_side
        if self.options.steps is not None:
            proposal_limit = min(
                proposal_limit, self.options.steps - self.steps
            )
        proposals: list[Proposal] = []
        for _ in range(_DRAWS * proposal_limit):
            if len(proposals) == proposal_limit:
                break
            proposal = self.selection.propose(proposals, reach.size)
            if proposal is not None:
                proposals.append(proposal)
        return proposals

    def _round(
        self, proposals: Sequence[Proposal], reach: _Reach, stop: Stop
    ) -> list[bool]:
        """Solve these neighbourhoods, and take over what is better; whether each of them was."""
        areas: list[Neighbourhood] = []
        answers = dict(
            run_all(
                self._tasks(proposals, reach, areas, stop),
                Backend(self.options.backend),
                self.options.jobs,
                as_made=True,
            )
        )
        gains = []
        for place, area in enumerate(areas):
            answer = answers[place]
            self.failures.update(
                (str(failure), failure) for failure in answer.failures
            )
            gain = self._take_over(area, answer.placements)
            self.selection.learn(proposals[place], better=gain)
            gains.append(gain)
        self.steps += len(proposals)
        return gains

    def _tasks(
        self,
        proposals: Sequence[Proposal],
        reach: _Reach,
        areas: list[Neighbourhood],
        stop: Stop,
    ) -> Iterator[NeighbourhoodTask]:
        """Make the tasks of neighbourhoods one by one; fewer if it is time to stop.

        Parameters
        ----------
        areas
            Filled in here, task by task: the neighbourhoods.
        """
        end = inf if stop.seconds() == inf else time.time() + stop.seconds()
        for place, proposal in enumerate(proposals):
            # What is under way is still solved: `run` asks again whether to stop before the next round.
            if stop.reached():
                break
            area = neighbourhood(
                self.incumbent, self.bonds, proposal.blocks, proposal.nodes
            )
            areas.append(area)
            yield NeighbourhoodTask(
                area.packed(self._eligibility),
                area.hint,
                self.tiers,
                self.aim,
                self._extra(area),
                self._options(place),
                reach.effort * proposal.effort,
                end,
            )

    def _extra(self, area: Neighbourhood) -> ExtraRules | None:
        """The further rules as they are beside all that is not freed."""
        if self.extra is None:
            return None
        freed, placed = set(area.freed), self.incumbent.placements
        beside = (
            placement
            for demand, placement in placed.items()
            if demand not in freed
        )
        return self.extra.beside(self.problem, beside)

    def _options(self, index: int) -> Options:
        """With a seed for each step, so that the solver does not go wrong in the same way again."""
        seed = (self.options.seed + self.steps + index) % MAX_SEED
        return Options(seed=seed, strict_cel=self.options.strict_cel)

    def _take_over(
        self, area: Neighbourhood, answer: Sequence[Placement] | None
    ) -> bool:
        """Take over the answer to a neighbourhood, if it is not worse; whether it is better."""
        after = None if answer is None else area.after(answer)
        if after is None:
            return False
        costs = self._costs(area, area.before)
        self._exchange(area.before, after)
        new_costs = self._costs(area, after)
        if new_costs > costs:
            self._exchange(after, area.before)
        return new_costs < costs

    def _exchange(
        self, withdrawn: Iterable[Placement], entered: Iterable[Placement]
    ) -> None:
        for placement in withdrawn:
            self.incumbent.withdraw(placement.demand)
        for placement in entered:
            self.incumbent.enter(placement)

    def _costs(
        self, area: Neighbourhood, placements: Sequence[Placement]
    ) -> list[int]:
        """What the answer costs by tier: of what adds up, the part of those who are freed."""
        freed = DemandSubset(self.problem, area.freed)
        answer = (
            ()
            if all(tier.adds_up for tier in self.tiers)
            else self.incumbent.in_order()
        )
        return [
            tier.cost(freed, placements)
            if tier.adds_up
            else tier.cost(self.subset, answer)
            for tier in self.tiers
        ]


# ----------------------------------------------------------------------------
# A component that is too large or too mixed for one model: searched first, and decided
# by the exact model at last.

_SMALL: Final = 16_000
"""Up to so many candidates, the exact model may decide in no time."""

_TINY: Final = 8_000
"""Up to so many candidates, the exact model is as fast as any other search."""

_FIRST_EFFORT: Final = 1.0
"""What it may take for that (see `Stop.effort`)."""


_RELAXING: Final = 0.2
"""The part of the time that the ladder of relaxations may take before there is a good answer."""

_RELAXING_SECONDS: Final = 4.0
_RELAXING_IN_SHORT: Final = 0.25
"""It may always take so many seconds, up to this part of the time: the search goes by its prices."""

_WORTHWHILE: Final = 0.005
"""While processors are needed for the search, rungs are climbed that are likely to bring so much, as a part of all
demands."""

_RELAXING_AT_LAST: Final = 0.6
"""The part of the time that is left when nothing helps the search any more; the bound may still become better."""


def relaxation_stop(stop: Stop) -> Stop:
    """Return when the ladder of relaxations has to make way for the search for answers."""
    seconds = stop.seconds()
    in_short = min(_RELAXING_SECONDS, _RELAXING_IN_SHORT * seconds)
    return stop.within(max(_RELAXING * seconds, in_short))


@contextmanager
def climbing_on(
    components: Sequence[SearchedComponent], stop: Stop
) -> Iterator[None]:
    """Climb on while answers are searched for in other processes; what is proven by the end of the block counts.

    Meanwhile this process has nothing to do, and what a linear program takes of a processor is much less than what it
    takes of the time.
    """
    ending = Cancelled(lambda: bool(stop.cancelled))
    until = replace(stop, cancelled=ending)
    proven: list[tuple[SearchedComponent, Bound]] = []

    def climb() -> None:
        for component in components:
            proven.extend(
                (component, bound)
                for bound in component.more_bounds(until, _WORTHWHILE)
            )

    with ThreadPoolExecutor(max_workers=1) as threads:
        climbing = threads.submit(climb)
        try:
            yield
        finally:
            ending.cancel()
            wait([climbing])
    climbing.result()
    for component, bound in proven:
        component.take_over(bound)
    for component in components:
        component.appraise(stop)


class FindSites(Protocol):
    """Works out where the demands of a component could go, if that is not known yet."""

    def __call__(
        self, demands: Sequence[DemandIndex], stop: Stop
    ) -> Mapping[DemandIndex, tuple[CandidateSite, ...]]:
        """Raises `Stopped` if there is no time for it, or if there are too many candidates for a model."""


class SearchedComponent(Component):
    """Demands that large-neighbourhood search places, as `Component`.

    Parameters
    ----------
    find_sites
        For the exact model, if the subset has no sites.

    Attributes
    ----------
    failures
        Selectors that failed on a device, which was left out.
    appraisal
        What demands and nodes are worth at the prices of the relaxation; None before `climb`.
    """

    def __init__(
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        placements: Sequence[Placement],
        find_sites: FindSites,
    ) -> None:
        self._relaxed: Bound | None = None
        super().__init__(subset, tiers, placements)
        self._ladder: RelaxationLadder | None = None
        self.appraisal: Appraisal | None = None
        self._find_sites = find_sites
        self.size = max(self.size, len(subset.demands))
        self.failures: tuple[AllocationError, ...] = ()

    @property
    def is_large(self) -> bool:
        """Whether the exact model is not likely to decide it in no time."""
        return not self.subset.sites or self.size > _SMALL

    @property
    def needs_start(self) -> bool:
        """Whether the exact model takes so long that a good answer to start from comes sooner."""
        return not self.subset.sites or self.size > _TINY

    @property
    def relaxation(self) -> str:
        """What was left out for the bound; empty if there is none by a relaxation."""
        return self._relaxed.why if self._relaxed else ""

    @property
    def prices(self) -> Sequence[LevelPrices]:
        """What proved the bound."""
        return self._relaxed.prices if self._relaxed else ()

    def limits(self) -> Mapping[int, int]:
        """Return how many demands the optimum places at most, by weight, of weights that are a level alone."""
        if not self._relaxed:
            return {}
        weights = [
            self.subset.problem.demands[placement.demand].weight
            for placement in self.placements
        ]
        reached = [
            sum(map(level.of, weights)) for level in self._relaxed.levels
        ]
        level_limits = self._relaxed.most_of_optimum(reached)
        return {
            level.unit: units
            for level, units in zip(
                self._relaxed.levels, level_limits, strict=True
            )
            if level.lowest == level.highest
        }

    def improve(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Solve a tier with the tiers before it, which must be proven, fixed; later ones are improved with it.

        Relax, improve, prove: a bound that leaves couplings out, better answers by neighbourhoods, and the exact model
        for what is still apart.
        """
        with suppress(Stopped):
            if not self.is_large:
                self._improve(
                    level, options, stop.limited(_FIRST_EFFORT), watch
                )
            if not is_proven(self, level):
                self.climb(relaxation_stop(stop))
            if not is_proven(self, level):
                self._search([level], options, stop, watch)
            if not is_proven(self, level):
                self.climb(stop.within(_RELAXING_AT_LAST * stop.seconds()))
            if not is_proven(self, level) and options.steps is None:
                if not self.subset.sites:
                    self.subset = replace(
                        self.subset,
                        sites=self._find_sites(self.subset.demands, stop),
                    )
                self._improve(level, options, stop, watch)

    def recall(self, prices: Sequence[LevelPrices], stop: Stop) -> None:
        """Prove what the prices of an earlier answer prove here, and appraise demands by these prices."""
        ladder = RelaxationLadder(self._own_problem(), self.tiers, stop)
        bound = ladder.bound_by(prices)
        if bound is not None:
            self._relaxed = bound
            self.relax(bound.costs)
            self._appraise(ladder)

    def climb(
        self, stop: Stop, tell: Callable[[], object] | None = None
    ) -> None:
        """Climb the ladder of relaxations, from where it was left, for bounds and for what demands are worth.

        Parameters
        ----------
        tell
            Called after each bound.
        """
        if self._ladder is None:
            self._ladder = RelaxationLadder(
                self._own_problem(), self.tiers, stop
            )
        if not self.is_at_the_top:
            for bound in self.more_bounds(stop):
                self.take_over(bound)
                if tell is not None:
                    tell()
            self.appraise(stop)

    @property
    def is_at_the_top(self) -> bool:
        """Whether there is no better relaxation."""
        return self._ladder is not None and self._ladder.is_at_the_top

    def more_bounds(
        self, stop: Stop, least_gain: float = 0.0
    ) -> Iterator[Bound]:
        """Climb on, and give out what is proven: nothing else of the component changes.

        Parameters
        ----------
        least_gain
            As `RelaxationLadder.bounds` takes it.
        """
        if self._ladder is not None:
            self._ladder.allow(stop)
            yield from self._ladder.bounds(least_gain)

    def take_over(self, bound: Bound) -> None:
        """Count a bound, if it is better than what is known."""
        if self._relaxed is None or bound.costs > self._relaxed.costs:
            self._relaxed = bound
            self.relax(bound.costs)

    def appraise(self, stop: Stop) -> None:
        """Keep what demands and nodes are worth at the last prices, if there are any."""
        if self._ladder is not None:
            self._ladder.allow(stop)
            self._appraise(self._ladder)

    def _appraise(self, ladder: RelaxationLadder) -> None:
        with suppress(Stopped):
            appraisal = ladder.appraisal()
            if appraisal is not None:
                self.appraisal = appraisal.renumbered(self.subset.demands)

    def _own_problem(self) -> Problem:
        """Return the problem with these demands alone."""
        problem = self.subset.problem
        if len(self.subset.demands) == len(problem.demands):
            return problem
        demands = [problem.demands[demand] for demand in self.subset.demands]
        return replace(problem, demands=tuple(demands))

    def _learn(
        self, level: int, bound: int, placements: Sequence[Placement] | None
    ) -> None:
        super()._learn(level, bound, placements)
        self.relax(self._relaxed.costs if self._relaxed else ())

    def improve_all(
        self, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Search for better answers in all tiers at once, whether or not those before a tier are proven."""
        with suppress(Stopped):
            self._search(range(len(self.tiers)), options, stop, watch)

    def _weight_tiers(self) -> int:
        """How many tiers the weight has: where it is a matter of more or less placed, it is in all of them."""
        return sum(tier.weights is not None for tier in self.tiers)

    def _search(
        self,
        levels: Sequence[int],
        options: Options,
        stop: Stop,
        watch: Watch | None,
    ) -> None:
        """Search neighbourhoods until nothing helps any more, or the bounds of these tiers are met."""
        first = levels[0]
        search = NeighbourhoodSearch(
            self.subset,
            self.tiers,
            self.placements,
            options,
            aim=max(levels[-1] + 1, self._weight_tiers()),
            appraisal=self.appraisal,
        )
        try:
            for answer in search.run(stop):
                self._learn(first, self.bounds[first], answer)
                if watch:
                    watch(self.cost(first), self.bounds[first])
                if all(is_proven(self, level) for level in levels):
                    break
        finally:
            self.failures = tuple(search.failures.values())
