"""A component of the problem on its way through the tiers, by the exact model.

First the table of rules from which the model is assembled; then the component, which solves the model tier by tier; at
last the way of the whole model into a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from math import gcd, inf
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from dralloc.objects.choices import Options
from dralloc.objects.errors import ModelError
from dralloc.objects.save import write_text
from dralloc.problem import DemandIndex, Problem
from dralloc.problem.inter_pod import can_come_in_turn, spreads_in_turn
from dralloc.problem.solution import Placement
from dralloc.solve.optimum import constraints
from dralloc.solve.optimum.answered import (
    Answered,
    is_next,
    is_proven,
)
from dralloc.solve.optimum.attribute_constraints import attribute_constraints
from dralloc.solve.optimum.candidates import CandidateSite, survey
from dralloc.solve.optimum.equal_demands import (
    equal_demands,
    equal_demands_in_order,
    in_order,
)
from dralloc.solve.optimum.full_devices import all_but_full
from dralloc.solve.optimum.inter_pod import inter_pod_rules, spread_in_turn
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.objective import (
    DemandSubset,
    Objective,
    add_caps,
    placed_weight,
)
from dralloc.solve.optimum.relax.component import (
    ComponentRelaxation,
    Relaxable,
    count_bound,
)
from dralloc.solve.optimum.rows import fix_cost
from dralloc.solve.optimum.search import Watch, minimise
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.stopping import Stop, Stopped
from dralloc.solve.optimum.variables import create_variables
from dralloc.solve.work import phase

__all__ = [
    "RULES",
    "Component",
    "Part",
    "Solvable",
    "TimeSharing",
    "build",
    "build_for",
    "export",
]

# ----------------------------------------------------------------------------
# The exact model: its rules, in the order in which they add rows.

RULES: Final[Sequence[Callable[[Model], None]]] = (
    *constraints.PLACES_AND_AMOUNTS,
    all_but_full,
    attribute_constraints,
    constraints.gangs,
    inter_pod_rules,
    constraints.shared_claims,
    add_caps,
    equal_demands_in_order,
)


def build(problem: Problem, *, strict_cel: bool = False) -> Model:
    """Build one model of all demands that have anywhere to go, to be inspected or exported.

    Raises
    ------
    ModelError
        Amounts of a counter or a capacity do not fit the solver's int64.
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set.
    """
    return build_for(
        problem, survey(problem, strict_cel=strict_cel).sites, Stop()
    )


def build_for(
    problem: Problem,
    sites: Mapping[DemandIndex, tuple[CandidateSite, ...]],
    stop: Stop,
    *,
    named: bool = False,
    in_turn: bool = True,
) -> Model:
    """Build the model of the demands that the sites are given for.

    Parameters
    ----------
    named
        Whether it is decided who gets which of equal devices; so it is where it matters to budgets.
    in_turn
        Whether all rules between pods must have one order; if not, those of affinity have one, and each of spread.

    Raises
    ------
    Stopped
        It is time to stop: what there is of the model is of no use.
    """
    cp = cp_model.CpModel()
    named = named or bool(problem.budgets)
    variables = create_variables(cp, problem, sites, stop, named=named)
    model = Model(problem, sites, cp, variables)
    for rule in RULES:
        rule(model)
    if in_turn:
        spread_in_turn(model)
    return model


# ----------------------------------------------------------------------------
# Components, and how they share the time.

_LEAST_SECONDS: Final = 0.01
"""Less time than this is not worth a run."""


class Solvable(Answered, Protocol):
    """Demands that are solved together; ``size`` says how much time they should get beside others."""

    size: int

    def improve(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Solve a tier with the tiers before it, which must be proven, fixed."""


class Part(Solvable, Relaxable, Protocol):
    """A part of a problem: answers to it may come from elsewhere, too, and bounds from relaxations."""

    def consider(self, placements: Sequence[Placement]) -> None:
        """Take an answer over if it is better."""


class Component:
    """Demands that are solved by the per-device model; without sites they stay as they are.

    Parameters
    ----------
    subset
        What is to be placed, and where it can go.
    tiers
        What is minimised, one after the other.
    placements
        An answer to begin with.
    rules
        Adds rules to the model beyond those of the problem.
    """

    def __init__(
        self,
        subset: DemandSubset,
        tiers: Sequence[Objective],
        placements: Sequence[Placement],
        rules: Callable[[Model], None] | None = None,
    ) -> None:
        self.subset = subset
        self.rules = rules
        self.tiers = tiers
        self.placements = tuple(placements)
        self.bounds = [tier.floor(subset, self.placements) for tier in tiers]
        self.relaxation = ComponentRelaxation(subset, tiers)
        self.size = 0
        for sites in subset.sites.values():
            for site in sites:
                candidates = [choice.candidates for choice in site.choices()]
                self.size += sum(map(len, candidates))
        self._known_costs: dict[int, int] = {}
        self._model: Model | None = None
        self._fixed = 0
        # Whether the model asks for one order of all rules between pods: it need not where each has its own pods.
        self._in_turn = not spreads_in_turn(
            subset.problem.demands[demand] for demand in subset.sites
        )

    def cost(self, level: int) -> int:
        """Return what the best answer costs in a tier."""
        # With a better answer there are other costs: those that are noted here are of this one.
        known_costs = self._known_costs
        if level not in known_costs:
            cost = self.tiers[level].cost(self.subset, self.placements)
            known_costs[level] = cost
        return known_costs[level]

    def improve(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        """Solve a tier with the tiers before it, which must be proven, fixed."""
        if self.subset.sites:
            with suppress(Stopped):
                self._improve(level, options, stop, watch)

    def _improve(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> None:
        self._learn(level, *self._decide(level, options, stop, watch))

    def _decide(
        self, level: int, options: Options, stop: Stop, watch: Watch | None
    ) -> tuple[int, tuple[Placement, ...] | None]:
        """Solve a tier, and return a bound and an answer, if there is one. Nothing of what is known changes here."""
        if self._model is None:
            self._model = build_for(
                self.subset.problem,
                self.subset.sites,
                stop,
                in_turn=self._in_turn,
            )
            if self.rules:
                self.rules(self._model)
        model = self._model
        # The model is kept from run to run, but each has its own time.
        model.variables.stop = stop
        for fixed in range(self._fixed, level):
            tier = self.tiers[fixed]
            fix_cost(
                model.cp,
                tier.terms(model),
                self.cost(fixed),
                f"tier {tier.name}",
            )
        self._fixed = level
        model.hint(in_order(equal_demands(model, stop), self.placements))
        # As long as an order may be missing, nobody is told of answers.
        told = watch if self._in_turn else None
        outcome = minimise(
            model.cp, self.tiers[level].terms(model), options, stop, told
        )
        values = outcome.values
        placements: tuple[Placement, ...] | None = None
        if values is not None:
            placements = model.placements(
                lambda variable: values[variable.index]
            )
        if placements is None or self._in_turn or self._can_come(placements):
            return outcome.bound, placements
        # Now the rows are needed of which there are so many; what was proven without them stays.
        self._model, self._fixed, self._in_turn = None, 0, True
        try:
            bound, placements = self._decide(level, options, stop, watch)
        except Stopped:
            return outcome.bound, None
        return max(outcome.bound, bound), placements

    def _can_come(self, placements: Sequence[Placement]) -> bool:
        """Whether there is one order in which all rules between pods hold; False also if it is not found."""
        problem = self.subset.problem
        return can_come_in_turn(
            (
                problem.demands[placement.demand],
                problem.nodes[placement.node].name,
            )
            for placement in placements
        )

    def consider(self, placements: Sequence[Placement]) -> None:
        """Take an answer over if it is better."""
        self._learn(0, self.bounds[0], placements)

    def _learn(
        self, level: int, bound: int, placements: Sequence[Placement] | None
    ) -> None:
        """Keep the better of two answers, and of each tier's bounds."""
        self.bounds[level] = max(self.bounds[level], bound)
        if placements is not None:
            costs = [tier.cost(self.subset, placements) for tier in self.tiers]
            if costs < [
                self.cost(tier_index) for tier_index in range(len(costs))
            ]:
                self.placements = tuple(placements)
                self._known_costs = dict(enumerate(costs))
        for tier_index, tier in enumerate(self.tiers):
            floor = tier.floor(self.subset, self.placements)
            self.bounds[tier_index] = max(self.bounds[tier_index], floor)
        count_bound(self)


@dataclass(frozen=True, slots=True)
class TimeSharing:
    """Components that are solved beside each other, each in its share of the time.

    Parameters
    ----------
    stop
        When to stop with all of them.
    watch
        As `Watch`, with the tier and the component before.
    timings
        Where the seconds of each tier are added up.
    """

    options: Options
    stop: Stop
    watch: Callable[[int, Solvable, int, int], None] | None = None
    timings: dict[str, float] = field(default_factory=dict)

    def improve(
        self, levels: Sequence[int], components: Sequence[Solvable]
    ) -> None:
        """Solve tiers, most important first, until each is proven or given up, or the time is over.

        What its share was not enough for goes on with what the others have left of theirs: as long as there is time, no
        proof is missing for lack of it. Half of what is left is for the tier itself, where other components wait for
        their turn with later ones; else all of it, as it takes long to begin again.
        """
        waiting, least_share = components, 0.0
        while waiting and not self.stop.reached():
            cut_short: list[Solvable] = []
            for position, level in enumerate(levels):
                with phase(self.timings, components[0].tiers[level].name):
                    short = self._improve_level(level, waiting, least_share)
                    cut_short += self._before_later_tiers(
                        levels[position + 1 :], components
                    )._improve_level(level, short, _LEAST_SECONDS)
            waiting, least_share = cut_short, _LEAST_SECONDS

    def _before_later_tiers(
        self, later: Sequence[int], components: Sequence[Solvable]
    ) -> TimeSharing:
        """The same with half of the time, if some component waits for its turn with a later tier."""
        if any(
            is_next(component, level)
            for level in later
            for component in components
        ):
            half = self.stop.within(self.stop.seconds() / 2)
            return replace(self, stop=half)
        return self

    def _improve_level(
        self, level: int, components: Sequence[Solvable], least_share: float
    ) -> list[Solvable]:
        """Solve one tier, the small components first: what they leave of their time is for the large ones.

        Returns
        -------
        The components whose share was not enough, or not worth a run.
        """
        todo = [
            component for component in components if is_next(component, level)
        ]
        todo.sort(key=lambda component: component.size)
        to_come = sum(component.size for component in todo)
        # However small a component is beside others: half of the time is for all of them in equal parts.
        equal_part = self.stop.seconds() / (2 * max(1, len(todo)))
        least_share = max(least_share, equal_part)
        cut_short = []
        for component in todo:
            by_size = self.stop.seconds()
            if by_size < inf and to_come:
                by_size *= component.size / to_come
            to_come -= component.size
            share = max(by_size, least_share)
            share_stop = self.stop.within(share)
            if share >= _LEAST_SECONDS:
                watch = (
                    partial(self.watch, level, component)
                    if self.watch
                    else None
                )
                component.improve(level, self.options, share_stop, watch)
            if is_proven(component, level):
                continue
            if share < _LEAST_SECONDS or share_stop.reached():
                cut_short.append(component)
        return cut_short


# ----------------------------------------------------------------------------
# The exact model with its objective in a file, for other solvers: in CP-SAT's own
# format, or in MPS.

_ENDLESS: Final = 2**62
"""What CP-SAT takes as no bound."""


def export(problem: Problem, path: Path, *, strict_cel: bool = False) -> None:
    """Write the model of all demands that have anywhere to go; its objective is the weight that is not placed.

    Of several tiers of weights it is the first. Symmetry is broken, and variables are named, as in the search.

    Parameters
    ----------
    path
        ``*.mps`` for MPS, else CP-SAT's exchange format: ``CpModelProto``, as text if the name ends in ``.txt``.

    Raises
    ------
    ModelError
        Amounts do not fit, the file cannot be written, or MPS has no words for a constraint.
    AllocationError
        A selector failed on a device, and ``strict_cel`` is set.
    """
    model = build(problem, strict_cel=strict_cel)
    terms = placed_weight(problem)[0].terms(model)
    unit = gcd(*(coefficient for _, coefficient in terms)) or 1
    literals = [literal for literal, _ in terms]
    coefficients = [coefficient // unit for _, coefficient in terms]
    model.cp.minimize(cp_model.LinearExpr.weighted_sum(literals, coefficients))
    if path.suffix == ".mps":
        write_text("\n".join(_mps(model.cp.proto)) + "\n", path)
    else:
        model.write(path)


class _LinearRow(NamedTuple):
    """A sum over variables between two bounds; None for no bound."""

    terms: dict[int, int]
    least: int | None
    most: int | None


def _mps(proto: Any) -> Iterator[str]:
    """Yield the lines of a model in free MPS."""
    rows = [
        row
        for constraint in proto.constraints
        for row in _rows(proto, constraint)
    ]
    objective: dict[int, int] = {}
    for variable, coefficient in zip(
        proto.objective.vars, proto.objective.coeffs, strict=True
    ):
        _add(objective, variable, int(coefficient))
    yield "NAME dralloc"
    yield "ROWS"
    yield " N cost"
    for index, row in enumerate(rows):
        yield f" {_sense(row)} r{index}"
    # MPS lists a model by columns, with all entries of a column after each other.
    columns: dict[int, list[str]] = {
        column: [] for column in range(len(proto.variables))
    }
    for column, coefficient in objective.items():
        columns[column].append(f" x{column} cost {coefficient}")
    for row_index, row in enumerate(rows):
        for column, coefficient in row.terms.items():
            columns[column].append(f" x{column} r{row_index} {coefficient}")
    yield "COLUMNS"
    yield " MARK0 'MARKER' 'INTORG'"
    for column, lines in columns.items():
        yield from lines or [f" x{column} cost 0"]
    yield " MARK1 'MARKER' 'INTEND'"
    yield "RHS"
    # The right-hand side of the objective is its constant with the sign turned.
    yield f" RHS cost {-int(proto.objective.offset)}"
    for row_index, row in enumerate(rows):
        bound = row.most if row.least is None else row.least
        yield f" RHS r{row_index} {bound}"
    # Of a row with two bounds, the right-hand side is the lower one, and the range leads to the upper one.
    yield "RANGES"
    for row_index, row in enumerate(rows):
        if row.least is None or row.most is None or row.least == row.most:
            continue
        yield f" RNG r{row_index} {row.most - row.least}"
    yield "BOUNDS"
    for column, variable in enumerate(proto.variables):
        domain = list(variable.domain)
        yield f" LO BND x{column} {domain[0]}"
        yield f" UP BND x{column} {domain[-1]}"
    yield "ENDATA"


def _sense(row: _LinearRow) -> str:
    if row.least is None:
        return "L"
    return "E" if row.least == row.most else "G"


def _add(terms: dict[int, int], literal: int, coefficient: int) -> int:
    """Add a literal, a variable or its negation, to terms; returns the constant that comes with it."""
    if literal >= 0:
        terms[literal] = terms.get(literal, 0) + coefficient
        return 0
    negated = -literal - 1
    terms[negated] = terms.get(negated, 0) - coefficient
    return coefficient


def _rows(proto: Any, constraint: Any) -> Iterator[_LinearRow]:
    """Yield the rows that say the same as a constraint.

    One that only holds where literals do is loosened by as much as its terms can reach where one of them does not.
    """
    for terms, least, most in _plain_rows(constraint):
        ends = [_reach(proto, variable, terms[variable]) for variable in terms]
        lowest, highest = (
            sum(low for low, _ in ends),
            sum(high for _, high in ends),
        )
        enforced = list(constraint.enforcement_literal)
        if not enforced:
            yield _LinearRow(terms, least, most)
            continue
        if least is not None and least > lowest:
            yield _loosened(terms, enforced, least, least - lowest, above=True)
        if most is not None and most < highest:
            yield _loosened(terms, enforced, most, highest - most, above=False)


def _loosened(
    terms: dict[int, int],
    enforced: Sequence[int],
    bound: int,
    slack: int,
    *,
    above: bool,
) -> _LinearRow:
    """A row that only binds where all of some literals hold."""
    loosened, constant = dict(terms), 0
    sign = -1 if above else 1
    for literal in enforced:
        # Where the literal does not hold, the sum may be off by the slack.
        constant += _add(loosened, literal, sign * slack)
    limit = bound + sign * slack * len(enforced) - constant
    return (
        _LinearRow(loosened, limit, None)
        if above
        else _LinearRow(loosened, None, limit)
    )


def _reach(proto: Any, variable: int, coefficient: int) -> tuple[int, int]:
    domain = list(proto.variables[variable].domain)
    ends = sorted((coefficient * domain[0], coefficient * domain[-1]))
    return ends[0], ends[1]


def _plain_rows(constraint: Any) -> Iterator[_LinearRow]:
    """Yield the rows of a constraint as if it always held."""
    if constraint.has_linear():
        linear = constraint.linear
        terms: dict[int, int] = {}
        constant = 0
        for literal, coefficient in zip(
            linear.vars, linear.coeffs, strict=True
        ):
            constant += _add(terms, literal, coefficient)
        # A domain lists the two ends of each interval of allowed values.
        domain = list(linear.domain)
        if len(domain) != 2:
            raise ModelError("MPS has no words for a sum with gaps")
        least, most = domain
        yield _LinearRow(
            terms,
            None if least < -_ENDLESS else least - constant,
            None if most > _ENDLESS else most - constant,
        )
    elif constraint.has_exactly_one():
        yield _counting(constraint.exactly_one.literals, 1, 1)
    elif constraint.has_at_most_one():
        yield _counting(constraint.at_most_one.literals, None, 1)
    elif constraint.has_bool_or():
        yield _counting(constraint.bool_or.literals, 1, None)
    elif constraint.has_bool_and():
        for literal in constraint.bool_and.literals:
            yield _counting([literal], 1, None)
    else:
        raise ModelError("MPS has no words for a constraint of this model")


def _counting(
    literals: Iterable[int], least: int | None, most: int | None
) -> _LinearRow:
    terms: dict[int, int] = {}
    constant = sum(_add(terms, literal, 1) for literal in literals)
    return _LinearRow(
        terms,
        None if least is None else least - constant,
        None if most is None else most - constant,
    )
