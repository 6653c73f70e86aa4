"""Linear rows in exact integers that fit the solver's int64, and weights as tiers of small numbers."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from math import gcd
from typing import Final, NamedTuple, TypeAlias

from dralloc.objects.errors import ModelError
from dralloc.solve.optimum.solvers import cp_model, literals

__all__ = [
    "ALL_WEIGHTS",
    "SAFE_SUM",
    "Literal",
    "SignedLiteral",
    "SignedTerm",
    "Term",
    "WeightTier",
    "add_at_least",
    "add_at_most",
    "add_at_most_one",
    "fix_cost",
    "reduced",
    "sum_of",
    "weight_tiers",
]

# ----------------------------------------------------------------------------
# The weight of what is placed as tiers of small numbers.
#
# Strict priorities are weights: each is worth more than all below it together. As one
# number that is soon beyond the solver's integers; but where all weights above a line
# are worth more than everything below it, the sums above can be solved first, and then
# the sums below.

_MERGED: Final = 2**31
"""Up to such sums priorities are one tier. More would fit, but linear programs have floats."""


class WeightTier(NamedTuple):
    """The weights from ``lowest`` to ``highest`` (None: all above), in units of which each is a multiple."""

    lowest: int
    highest: int | None
    unit: int

    def of(self, weight: int) -> int:
        """Return the weight as this tier counts it: 0 if it belongs to another tier."""
        if weight < self.lowest:
            return 0
        if self.highest is not None and weight > self.highest:
            return 0
        return weight // self.unit


ALL_WEIGHTS: Final = WeightTier(0, None, 1)
"""The only tier, if one is enough."""


def weight_tiers(weights: Iterable[int]) -> tuple[WeightTier, ...]:
    """The tiers, most important first: as few as small sums allow, and none that others below could outweigh."""
    tally = Tally(weights)
    unit = gcd(*tally) or 1
    # Small sums need no common factor.
    is_small = tally.total() * max(tally, default=0) <= _MERGED
    only_tier = ALL_WEIGHTS if is_small else WeightTier(0, None, unit)
    if _total_weight(tally, list(tally)) <= _MERGED:
        return (only_tier,)
    merged: list[list[int]] = []
    for block in _blocks(tally):
        if merged and _total_weight(tally, [*merged[-1], *block]) <= _MERGED:
            merged[-1] += block
        else:
            merged.append(block)
    if len(merged) > 1:
        return tuple(
            WeightTier(block[-1], block[0], gcd(*block)) for block in merged
        )
    return (only_tier,)


def _blocks(tally: Tally[int]) -> list[list[int]]:
    """The weights from the largest on, where sums of a block differ by more than all those after it are together."""
    blocks: list[list[int]] = [[]]
    divisor = 0
    remaining = sum(weight * count for weight, count in tally.items())
    for weight in sorted(filter(None, tally), reverse=True):
        # Sums of a block differ by its divisor at least, where they differ: a larger weight may be left out for two.
        if divisor > remaining:
            blocks.append([])
            divisor = 0
        blocks[-1].append(weight)
        divisor = gcd(divisor, weight)
        remaining -= weight * tally[weight]
    return blocks


def _total_weight(tally: Tally[int], weights: Sequence[int]) -> int:
    """Return the sum of these weights in their unit."""
    return sum(weight * tally[weight] for weight in weights) // (
        gcd(*weights) or 1
    )


# ----------------------------------------------------------------------------
# Linear rows in exact integers that fit the solver's int64.

# In quotes, because the solver is not imported yet.
Literal: TypeAlias = "cp_model.IntVar"
"""A boolean variable."""

SignedLiteral: TypeAlias = "literals.Literal"
"""A boolean variable or its negation."""

Term = tuple[Literal, int]
"""A variable with its coefficient."""

SignedTerm = tuple[SignedLiteral, int]
"""A variable or its negation with its coefficient."""

SAFE_SUM: Final = 3 * 2**61
"""Above 0.75 * 2**63 the solver calls a row invalid."""


def sum_of(terms: Sequence[Term]) -> cp_model.LinearExpr:
    """The sum of terms."""
    return cp_model.LinearExpr.weighted_sum(
        [variable for variable, _ in terms], [factor for _, factor in terms]
    )


def reduced(
    terms: Iterable[SignedTerm], limit: int
) -> tuple[list[SignedTerm], list[SignedLiteral], int]:
    """The row ``sum(coefficient * literal) <= limit`` with the smallest numbers that mean the same.

    Every coefficient and the limit must be 0 or more. Coefficients above the limit become literals that must be
    false; the rest is divided by the greatest common divisor, which rounds the limit down without losing a solution.

    Returns
    -------
    The terms (none if the row cannot bind), the literals that must be false, the limit.
    """
    merged: dict[int, SignedTerm] = {}
    for literal, amount in terms:
        before = merged.get(literal.index)
        merged[literal.index] = (literal, amount + (before[1] if before else 0))
    impossible = [
        literal for literal, amount in merged.values() if amount > limit
    ]
    possible = [
        (literal, amount)
        for literal, amount in merged.values()
        if 0 < amount <= limit
    ]
    if not possible or sum(amount for _, amount in possible) <= limit:
        return [], impossible, limit
    divisor = gcd(*(amount for _, amount in possible))
    divided = [(literal, amount // divisor) for literal, amount in possible]
    return divided, impossible, limit // divisor


def add_at_most(
    model: cp_model.CpModel,
    terms: Iterable[SignedTerm],
    limit: int,
    row_name: str,
    when: Literal | None = None,
) -> None:
    """Add ``sum(coefficient * literal) <= limit``, if ``when`` is true.

    Raises
    ------
    ModelError
        The numbers do not fit the solver; the message starts with ``row_name``.
    """
    possible, impossible, limit = reduced(terms, limit)
    for literal in impossible:
        if when is None or when.index == literal.index:
            model.add_bool_and([~literal])
        else:
            model.add_implication(when, ~literal)
    if not possible:
        return
    row = model.add(_weighted_sum(possible, row_name) <= limit)
    if when is not None:
        row.only_enforce_if(when)


def fix_cost(
    model: cp_model.CpModel, terms: Sequence[Term], limit: int, tier_name: str
) -> None:
    """Let a tier cost no more, as `add_at_most`; its variables may also be integers from 0.

    Raises
    ------
    ModelError
        The numbers do not fit the solver; the message starts with ``tier_name``.
    """
    if all(variable.is_boolean for variable, _ in terms):
        add_at_most(model, terms, limit, tier_name)
        return
    variables, costs = zip(*terms, strict=True)
    unit = gcd(*costs) or 1
    if (
        sum(cost // unit * variable.domain.max() for variable, cost in terms)
        > SAFE_SUM
    ):
        raise ModelError(
            f"{tier_name}: what it may cost is beyond the solver's int64"
        )
    cost_in_units = cp_model.LinearExpr.weighted_sum(
        variables, [cost // unit for cost in costs]
    )
    model.add(cost_in_units <= limit // unit)


def add_at_least(
    model: cp_model.CpModel,
    terms: Sequence[SignedTerm],
    least: int,
    row_name: str,
    when: SignedLiteral,
) -> None:
    """Add ``sum(coefficient * literal) >= least`` if ``when`` is true. Every coefficient must be 0 or more.

    Raises
    ------
    ModelError
        The numbers do not fit the solver; the message starts with ``row_name``.
    """
    positive = [(literal, amount) for literal, amount in terms if amount]
    divisor = gcd(*(amount for _, amount in positive)) or 1
    least = -(-least // divisor)
    # No literal has to count for more than is asked for: smaller numbers, same row.
    capped = [
        (literal, min(amount // divisor, least)) for literal, amount in positive
    ]
    row = model.add(_weighted_sum(capped, row_name) >= least)
    row.only_enforce_if(when)


def _weighted_sum(
    terms: Sequence[SignedTerm], row_name: str
) -> cp_model.LinearExprT:
    total = sum(amount for _, amount in terms)
    if total > SAFE_SUM:
        raise ModelError(
            f"{row_name}: amounts add up to {total} after removing common factors, beyond the solver's int64"
        )
    return cp_model.LinearExpr.weighted_sum(
        [literal for literal, _ in terms], [amount for _, amount in terms]
    )


def add_at_most_one(
    model: cp_model.CpModel, literals: Sequence[Literal]
) -> None:
    """Add that at most one is true, where a literal that is listed twice counts twice."""
    distinct = {literal.index: literal for literal in literals}
    if len(distinct) < len(literals):
        add_at_most(
            model, ((literal, 1) for literal in literals), 1, "at most one"
        )
    elif len(literals) > 1:
        model.add_at_most_one(literals)
