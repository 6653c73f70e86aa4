"""Divides the demands by the way in which they are solved: over classes, by packing, or by the per-device model.

Demand classes and bin classes that have to do with each other form components
(`dralloc.solve.optimum.class_components`). First of all, joint demands are left to the per-device model if what they
share could be devices that several nodes can use. A component is left to it if

- it shares a device or a counter with a demand that classes cannot express (see
  `dralloc.solve.optimum.classes.demand_classes.DemandClasses`), or
- generations of a pool disagree about one of its devices, or sums do not decide what can be in use beside it, or
- namespaces have budgets of what its requirements use, and that depends on which devices serve them, or
- gangs in it need a topology domain, and devices can be used from nodes of several domains, or
- it has bins with more patterns than can be listed, and a packing instance cannot express it (see
  `dralloc.solve.optimum.packing.instance`).
"""

from __future__ import annotations

from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Sequence,
    Set,
)
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, assert_never

from dralloc.objects.choices import Options
from dralloc.objects.errors import AllocationError
from dralloc.problem import Problem
from dralloc.problem.indices import DemandIndex
from dralloc.solve.optimum.candidates import CandidateSurvey
from dralloc.solve.optimum.class_components import (
    ClassComponent,
    class_components,
)
from dralloc.solve.optimum.classes.bins import Bin, BinClassifier, find_bins
from dralloc.solve.optimum.classes.budgeted_amounts import (
    BudgetedAmounts,
    budgeted_amounts,
)
from dralloc.solve.optimum.classes.component import with_tickets
from dralloc.solve.optimum.classes.count_model import Counted
from dralloc.solve.optimum.classes.demand_classes import (
    DemandClass,
    DemandClasses,
)
from dralloc.solve.optimum.classes.serving_modes import classify_demands
from dralloc.solve.optimum.classes.state_space import StateSpace
from dralloc.solve.optimum.classes.usable_devices import (
    UsableDevices,
    usable_devices,
)
from dralloc.solve.optimum.packing.instance import PackingInstance
from dralloc.solve.optimum.sharing import touched
from dralloc.solve.optimum.stopping import Stop

__all__ = ["divide"]

_FEW_CLASSES: Final = 100
"""So many classes are always worth a look."""

_LEAST_MEMBERS: Final = 2.5
"""With fewer members on average, more classes are not."""


@dataclass(frozen=True, slots=True)
class Division:
    """The components over classes, the demands for the per-device model, and the selectors that failed.

    Parameters
    ----------
    counted
        Components whose bins have few patterns.
    packed
        Components whose bins have too many.
    per_device
        Demands for the per-device model.
    failures
        For the user.
    """

    counted: tuple[Counted, ...]
    packed: tuple[PackingInstance, ...]
    per_device: tuple[DemandIndex, ...]
    failures: tuple[AllocationError, ...]


def divide(
    problem: Problem,
    survey: Callable[[Sequence[DemandIndex]], CandidateSurvey],
    options: Options | None = None,
    stop: Stop | None = None,
) -> Division:
    """Divide a problem.

    Parameters
    ----------
    survey
        Works out the candidates of demands that classes cannot express.
    options
        Of these ``strict_cel`` and the thresholds count.

    Raises
    ------
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set.
    Stopped
        It is time to stop.
    """
    options, stop = options or Options(), stop or Stop()
    problem = with_tickets(problem)
    demand_classes = classify_demands(problem, stop)
    if not demand_classes.classes or _are_all_different(demand_classes):
        demands = [
            *demand_classes.unclassified,
            *_members(demand_classes.classes),
        ]
        return Division((), (), tuple(sorted(demands)), ())
    usable = usable_devices(
        problem, demand_classes, stop, strict_cel=options.strict_cel
    )
    # Only now is it known which devices several nodes can use.
    demand_classes = _without_scattered(problem, demand_classes, usable)
    bins = find_bins(problem, demand_classes, usable, stop)
    classifier = BinClassifier(problem, demand_classes, usable)
    class_of = [classifier.enter(bin_) for bin_ in stop.hundreds(bins)]
    regions = tuple(classifier.regions)
    spaces = [
        StateSpace(bin_class, usable.profiles, regions)
        for bin_class in stop.each(classifier.classes.values())
    ]
    # What demands of the per-device model could take must not be counted, too: bins that they reach into are unfit.
    by_model = survey(demand_classes.unclassified)
    unfit = {
        id(class_of[bin_]) for bin_ in _unfit(problem, usable, bins, by_model)
    }
    amounts: BudgetedAmounts = {}
    if problem.budgets:
        amounts = budgeted_amounts(problem, demand_classes, usable)
    parts = _DividedDemands(list(demand_classes.unclassified))
    for component in stop.each(class_components(demand_classes, spaces, stop)):
        formulation = None
        if component.is_apart(unfit):
            formulation = component.formulate(
                problem, demand_classes, options.thresholds, amounts, stop
            )
        parts.enter(component, formulation)
    # At the end, as any of the components may have been left to the per-device model.
    parts.keep_budgets_together(problem, demand_classes.with_budgets)
    return Division(
        tuple(parts.counted),
        tuple(parts.packed),
        tuple(sorted(parts.per_device)),
        tuple(usable.failures.values()),
    )


@dataclass(slots=True)
class _DividedDemands:
    """A division as far as it is known."""

    per_device: list[DemandIndex]
    counted: list[Counted] = field(default_factory=list)
    packed: list[PackingInstance] = field(default_factory=list)

    def enter(
        self,
        component: ClassComponent,
        formulation: Counted | PackingInstance | None,
    ) -> None:
        """Enter a component as it is formulated; without that its demands are for the per-device model."""
        match formulation:
            case None:
                self.per_device += _members(component.classes)
            case Counted():
                self.counted.append(formulation)
            case PackingInstance():
                self.packed.append(formulation)
            case _:
                assert_never(formulation)

    def keep_budgets_together(
        self, problem: Problem, with_budgets: Set[str]
    ) -> None:
        """Leave all that has budgets to the per-device model if it has some of it: a budget is decided at once.

        Parameters
        ----------
        with_budgets
            The namespaces that have a budget.
        """
        namespaces = {
            problem.demands[demand].key.namespace for demand in self.per_device
        }
        if namespaces.isdisjoint(with_budgets):
            return
        for component in self.counted:
            if component.has_budgets:
                self.per_device += component.demands
        self.counted = [
            component for component in self.counted if not component.has_budgets
        ]


def _members(classes: Iterable[DemandClass]) -> list[DemandIndex]:
    members: list[DemandIndex] = []
    for demand_class in classes:
        members += demand_class.members
    return members


def _are_all_different(demand_classes: DemandClasses) -> bool:
    """Whether there are about as many classes as demands, so that nothing is won by counting."""
    members = sum(demand_class.size for demand_class in demand_classes.classes)
    return len(demand_classes.classes) > max(
        _FEW_CLASSES, members / _LEAST_MEMBERS
    )


def _unfit(
    problem: Problem,
    usable: UsableDevices,
    bins: Sequence[Bin],
    by_model: CandidateSurvey,
) -> Iterator[int]:
    """The bins that demands of the exact model reach into, and those of which not only sums of one version decide."""
    owners: dict[Hashable, int] = {}
    if not (
        by_model.sites or problem.several_versions or not problem.is_additive
    ):
        return
    for bin_index, bin_ in enumerate(bins):
        for device in bin_.devices:
            view = problem.devices[device]
            if by_model.sites:
                owners["slot", view.slot] = bin_index
                consumed = (counter for counter, _ in view.consumes)
                for counter in chain(consumed, usable.charged[device]):
                    owners["counter", counter] = bin_index
            if view.slot in problem.several_versions or not view.is_additive:
                yield bin_index
    for resource in touched(problem, by_model):
        if resource in owners:
            yield owners[resource]


def _without_scattered(
    problem: Problem, demand_classes: DemandClasses, usable: UsableDevices
) -> DemandClasses:
    """Leave out the classes whose demands need not be on one node for what they share, and their gangs.

    Also a class that no bin can serve may be one: while no node holds all of its demands, several can.
    """
    joint = [
        demand_class
        for demand_class in demand_classes.classes
        if len(demand_class.weights) > 1
    ]
    if not joint:
        return demand_classes
    roaming_types = _roaming_types(problem, usable)
    scattered = [
        demand_class
        for demand_class in joint
        if _is_scattered(demand_class, demand_classes, roaming_types)
    ]
    if not scattered:
        return demand_classes
    # By identity: classes hold lists, and have no hash.
    scattered_ids = set(map(id, scattered))
    gangs = {
        demand_class.gang.gangs
        for demand_class in scattered
        if demand_class.gang
    }
    classes: list[DemandClass] = []
    unclassified = [*demand_classes.unclassified]
    for demand_class in demand_classes.classes:
        gang = demand_class.gang
        if id(demand_class) in scattered_ids or (gang and gang.gangs in gangs):
            unclassified += demand_class.members
        else:
            classes.append(demand_class)
    return replace(
        demand_classes, classes=classes, unclassified=sorted(unclassified)
    )


def _roaming_types(problem: Problem, usable: UsableDevices) -> set[int]:
    """Return the types of items that devices can be which several nodes can use."""
    roaming = {
        usable.profile_of[device]
        for device in usable.order
        if len(usable.nodes_of[device]) > 1
        and not problem.devices[device].binds_to_node
    }
    types: set[int] = set()
    for profile in roaming:
        types.update(type_ for type_, _ in usable.profiles[profile])
    return types


def _is_scattered(
    demand_class: DemandClass,
    demand_classes: DemandClasses,
    roaming_types: Set[int],
) -> bool:
    """Whether a mode of joint demands does not hold all of them on one node by what they share."""
    for mode in demand_class.modes:
        item_groups = demand_classes.requirements[mode.requirement].item_groups
        if all(
            item_groups[group_index].type in roaming_types
            for group_index in mode.shared
        ):
            return True
    return False
