"""A problem in which some of the allocated claims may move."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from dralloc.ask.whatif.moves.pods_there import PodThere, counting
from dralloc.objects.names import ClaimKey
from dralloc.problem import Demand, Problem
from dralloc.problem.holdings import ClaimLedger, Holding
from dralloc.problem.inter_pod import Role
from dralloc.problem.subproblem import places

__all__ = ["Migration", "MovableClaim", "MoveOption"]


@dataclass(frozen=True, slots=True)
class MovableClaim:
    """An allocated claim that may move; or what a pod takes of its node beside devices, which moves with the pod.

    Parameters
    ----------
    home
        Index of the node where it is used.
    holdings
        What it holds, under its key.
    devices
        The devices of these, by index, as the node sees them.
    roles
        What a pod that stays is to rules between pods.
    """

    key: ClaimKey
    home: int
    holdings: tuple[Holding, ...]
    devices: tuple[int, ...]
    roles: tuple[Role, ...] = ()


@dataclass(frozen=True, slots=True)
class MoveOption:
    """Some movable claims that move at the same time.

    Parameters
    ----------
    movers
        Who moves, by index; what they have in common with others stays where it is.
    pods
        The pods that go with them, by index.
    demands
        What they ask for: placed all or none.
    group
        Of the options of a group at most one is taken.
    weight
        What it is worth.
    """

    movers: tuple[int, ...]
    demands: tuple[Demand, ...]
    group: int
    weight: int = 0
    pods: tuple[int, ...] = ()


@dataclass(frozen=True)
class Migration:
    """Who may move.

    Parameters
    ----------
    problem
        What is pending, beside everything that is in use but for what the movable claims hold.
    movers, move_options
        Who may move, and how.
    pods
        The pods of the movers that have a node, with what they take of it.
    """

    problem: Problem
    movers: tuple[MovableClaim, ...]
    move_options: tuple[MoveOption, ...]
    pods: tuple[MovableClaim, ...] = ()

    @cached_property
    def holders(self) -> tuple[MovableClaim, ...]:
        """All that may give back what it holds: the movable claims, and then their pods."""
        return (*self.movers, *self.pods)

    def holders_of(self, option: MoveOption) -> tuple[int, ...]:
        """Who gives back what it holds with an option, by index."""
        return (*option.movers, *(len(self.movers) + pod for pod in option.pods))

    def leaving(self, options: Iterable[MoveOption]) -> list[ClaimKey]:
        """Under which keys something is held that is given back with these options."""
        return [
            self.holders[number].key
            for option in options
            for number in self.holders_of(option)
        ]

    @cached_property
    def ledger(self) -> ClaimLedger:
        """What is held as long as nobody has moved. Copy before changing."""
        ledger = ClaimLedger(self.problem)
        ledger.hold(holding for holder in self.holders for holding in holder.holdings)
        return ledger

    def without(self, holders: Iterable[int]) -> ClaimLedger:
        """What is held once some holders have given back what they hold."""
        ledger = self.ledger.copy()
        ledger.release(self.holders[number].key for number in holders)
        return ledger

    def there(self, gone: Iterable[int] = ()) -> list[PodThere]:
        """The pods that are to rules between pods what they are as long as nobody has moved but some holders."""
        left = frozenset(gone)
        return [
            (holder.roles, self.problem.nodes[holder.home].name)
            for number, holder in enumerate(self.holders)
            if holder.roles and number not in left
        ]

    @cached_property
    def before(self) -> Problem:
        """What is pending beside all that is held, and all pods, as long as nobody has moved."""
        applied = self.ledger.applied()
        return replace(applied, demands=counting(applied.demands, self.there()))

    def only(self, groups: Collection[int]) -> Migration:
        """The migration in which just these groups may move; other pods that rules are about stay where they are."""
        move_options = [
            option for option in self.move_options if option.group in groups
        ]
        movers = sorted({number for option in move_options for number in option.movers})
        going = {number for option in move_options for number in option.pods}
        pods = [
            number
            for number, pod in enumerate(self.pods)
            if number in going or pod.roles
        ]
        mover_at, pod_at = map(places, (movers, pods))
        renumbered = (
            replace(
                option,
                movers=tuple(mover_at[number] for number in option.movers),
                pods=tuple(pod_at[number] for number in option.pods),
            )
            for option in move_options
        )
        holders = (*movers, *(len(self.movers) + number for number in pods))
        return Migration(
            self.without(holders).applied(),
            tuple(self.movers[number] for number in movers),
            tuple(renumbered),
            tuple(self.pods[number] for number in pods),
        )
