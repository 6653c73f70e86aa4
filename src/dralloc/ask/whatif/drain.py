"""Drains nodes: finds new places for the claims of some nodes, or says why there are none.

The reason why not all of them can go is looked for in `dralloc.ask.whatif.obstacle`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Unpack

from dralloc.ask.explain.conflict import Conflict
from dralloc.ask.whatif.defragment import Itinerary
from dralloc.ask.whatif.document import DrainDocument
from dralloc.ask.whatif.moves.cluster_migration import (
    ClaimGroup,
    ClaimUsers,
    ClusterMigration,
)
from dralloc.ask.whatif.moves.rearrange import rearrange
from dralloc.ask.whatif.obstacle import Obstacle
from dralloc.objects.choices import Choices, NodelessWords, spelled_out
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import DrallocError, no_node
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Line, Part, Table
from dralloc.show.question import Provisional
from dralloc.solve.optimum.stopping import Stop
from dralloc.solve.work import phase

__all__ = ["Drain", "drain"]


@dataclass(frozen=True, repr=False)
class Drain(Provisional):
    """The new places of the claims of drained nodes. ``print(drain)`` is a readable report.

    Parameters
    ----------
    nodes
        The nodes that are drained.
    claims
        The claims that depend on them.
    itinerary
        The ordered plan: everybody who can go if all can, else as many as possible.
    most
        Proven limit of how many can go.
    stuck
        Claims that stay in this plan.
    together
        Claims that cannot all go, though without those of one group of pods the others could; empty if all can go.
    conflict
        If a single pod or claim is the reason: the rules that are in its way.
    left_out
        Claims of a DaemonSet's pods, which end with the node, and of pods that are not settled.
    """

    document = DrainDocument

    nodes: tuple[str, ...]
    claims: tuple[ClaimKey, ...]
    itinerary: Itinerary
    most: int
    stuck: tuple[ClaimKey, ...] = ()
    together: tuple[ClaimKey, ...] = ()
    conflict: Conflict | None = None
    left_out: tuple[ClaimKey, ...] = ()

    @property
    def possible(self) -> bool:
        """Whether all of the claims can go."""
        return not self.stuck

    @property
    def gone(self) -> int:
        """The number of them that go."""
        return len(self.claims) - len(self.stuck)

    @property
    def conclusion(self) -> str:
        """Say how many of the claims can go."""
        return f"{', '.join(self.nodes)}: {self._verdict()}"

    def names(self) -> Iterable[str]:
        """Return the claims that move, in the order of the plan."""
        return self.itinerary.names()

    def body(self) -> list[Part]:
        """The answer as tables and lines."""
        parts: list[Part] = [
            Line(self.headline, "bold"),
            self.itinerary.table(),
        ]
        parts += self.itinerary.remarks()
        parts += self._reason()
        if self.left_out:
            listed = ", ".join(map(str, self.left_out))
            parts.append(
                Line(
                    f"\nNot counted, because a DaemonSet's pod or one that is not settled uses it: {listed}."
                )
            )
        return parts

    def _verdict(self) -> str:
        claim_count = len(self.claims)
        if not claim_count:
            return (
                "no claim depends on it"
                if len(self.nodes) == 1
                else "no claim depends on them"
            )
        if self.possible:
            return (
                f"all {claim_count} claims fit on other nodes"
                if claim_count > 1
                else "the claim fits on another node"
            )
        proof = (
            "no more do"
            if self.gone == self.most
            else f"at most {self.most} do"
        )
        return (
            f"{self.gone} of {claim_count} claims fit on other nodes, {proof}"
        )

    @property
    def _are_several(self) -> bool:
        """Whether those that cannot all go could go apart; claims of one group move together in any case."""
        together = frozenset(self.together)
        groups = self.itinerary.movable.groups
        return (
            sum(not together.isdisjoint(group.claims) for group in groups) > 1
        )

    @property
    def _together_fit_nowhere(self) -> str:
        names = ", ".join(map(str, self.together))
        together = frozenset(self.together)
        groups = self.itinerary.movable.groups
        if any(
            group.parts and not together.isdisjoint(group.claims)
            for group in groups
        ):
            return f"Claims {names} have a constraint in common and do not all fit on other nodes"
        return (
            f"Claims {names} move together and fit on no other node"
            if len(self.together) > 1
            else f"Claim {names} fits on no other node"
        )

    def _reason(self) -> Iterator[Part]:
        rows = [
            (str(key), "\n".join(self.itinerary.held(key)))
            for key in self.stuck
        ]
        yield Table("Stay in this plan", ("claim", "devices"), rows)
        if self._are_several:
            rows = [
                (str(key), "\n".join(self.itinerary.held(key)))
                for key in self.together
            ]
            yield Table(
                "Minimal conflict: they do not all fit, any one less would",
                ("claim", "devices"),
                rows,
            )
        elif self.together and self.conflict is None:
            yield Line(f"\n{self._together_fit_nowhere}.")
        if self.conflict is not None:
            yield Line(f"\n{self._together_fit_nowhere}:")
            yield from self.conflict.parts()


@without_garbage_collection()
@spelled_out(NodelessWords)
def drain(
    cluster: Cluster,
    *nodes: str,
    choices: Choices | None = None,
    **words: Unpack[NodelessWords],
) -> Drain:
    """Find out where the claims that depend on some nodes can go.

    The nodes are cordoned; pods on them start anew elsewhere, with new allocations of their claims. What pods on other
    nodes use stays. A claim that can be used from elsewhere, too, stays if it can. Claims that pods share move
    together.

    Parameters
    ----------
    nodes
        Names of the nodes that nobody is to use any more.
    choices, words
        As in `dralloc.allocate`, without goals, nodes, gangs, caps and fairness.

    Raises
    ------
    DrallocError
        There is no such node, or no node is given.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.drain(dralloc.example(), "node-1")
    <Drain: node-1: the claim fits on another node>
    """
    nodes = tuple(dict.fromkeys(nodes))
    options = Choices.of(
        choices, words, unused=("nodes", "gang", "caps", "fair", "keep", "goal")
    )
    timings: dict[str, float] = {}
    with phase(timings, "compile"):
        users = ClaimUsers(
            cluster_of(cluster)
            .including(options.include)
            .with_gates(options.features)
        )
        _check_names(users, nodes)
        tied = _tied_claims(users, nodes)
        # Pods of a DaemonSet end with their node. Groups that are not settled wait for something, or are about to go.
        free = [
            (group, keys)
            for group, keys in tied
            if keys and users.is_settled(group) and not _has_daemon(group)
        ]
        claims = tuple(key for _, keys in free for key in keys)
        # A move is worth the claims that are tied to the nodes. What is pending waits: it would take the room of those
        # who leave.
        movable = ClusterMigration(
            users,
            tuple(group for group, _ in free),
            frozenset(claims),
            frozenset(nodes),
            pending=False,
            choices=options,
        ).united()
        migration = movable.migration
    stop = Stop.after(options.time_limit)
    with phase(timings, "drain"):
        outcome = movable.as_far_as_seen(rearrange(migration, None, options))
    itinerary = Itinerary(movable, outcome)
    with phase(timings, "check"):
        itinerary.check()
    moved = {migration.movers[mover].key for mover in outcome.moved}
    stuck = tuple(key for key in claims if key not in moved)
    together: tuple[ClaimKey, ...] = ()
    conflict = None
    if stuck:
        with phase(timings, "conflict"):
            together, conflict = Obstacle(movable, options, stop).find(
                proven=outcome.tiers[0].proven
            )
    return Drain(
        nodes=nodes,
        claims=claims,
        itinerary=itinerary,
        most=outcome.tiers[0].bound,
        stuck=stuck,
        together=together,
        conflict=conflict,
        left_out=tuple(
            key for _, keys in tied for key in keys if key not in movable.must
        ),
        unmodelled=movable.unmodelled,
        timings=timings,
    )


def _tied_claims(
    users: ClaimUsers, nodes: Sequence[str]
) -> list[tuple[ClaimGroup, list[ClaimKey]]]:
    """Return the groups of users, each with those of its claims that can be used from these nodes only."""
    drained = frozenset(users.by_name[name] for name in nodes)

    def is_tied(key: ClaimKey) -> bool:
        reach = users.reach(key)
        # What can be used from no node, as its own has gone, depends on none of these.
        return bool(reach) and drained.issuperset(reach)

    tied = []
    for group in users.groups():
        keys = list(filter(is_tied, group.claims))
        tied.append((group, keys))
    return tied


def _check_names(users: ClaimUsers, nodes: Sequence[str]) -> None:
    if not nodes:
        raise DrallocError("drain needs the name of a node")
    for name in nodes:
        if name not in users.by_name:
            raise DrallocError(no_node(name, users.by_name))


def _has_daemon(group: ClaimGroup) -> bool:
    """Whether a DaemonSet ties a pod of the group to its node."""
    return any(
        owner.kind == "DaemonSet"
        for pod in group.pods
        for owner in pod.metadata.owner_references
    )
