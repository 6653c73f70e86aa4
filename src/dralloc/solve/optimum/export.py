"""The exact model with its objective in a file, for other solvers: in CP-SAT's own format, or in MPS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import gcd
from pathlib import Path
from typing import Any, Final, NamedTuple

from ortools.sat.python import cp_model

from dralloc.objects.errors import ModelError
from dralloc.objects.save import write_text
from dralloc.problem import Problem
from dralloc.solve.optimum.component import build
from dralloc.solve.optimum.objective import placed_weight

__all__ = ["export"]

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
    for number, row in enumerate(rows):
        yield f" {_sense(row)} r{number}"
    columns: dict[int, list[str]] = {
        number: [] for number in range(len(proto.variables))
    }
    for number, coefficient in objective.items():
        columns[number].append(f" x{number} cost {coefficient}")
    for place, row in enumerate(rows):
        for number, coefficient in row.terms.items():
            columns[number].append(f" x{number} r{place} {coefficient}")
    yield "COLUMNS"
    yield " MARK0 'MARKER' 'INTORG'"
    for number, lines in columns.items():
        yield from lines or [f" x{number} cost 0"]
    yield " MARK1 'MARKER' 'INTEND'"
    yield "RHS"
    yield f" RHS cost {-int(proto.objective.offset)}"
    for place, row in enumerate(rows):
        bound = row.most if row.least is None else row.least
        yield f" RHS r{place} {bound}"
    yield "RANGES"
    for place, row in enumerate(rows):
        if row.least is None or row.most is None or row.least == row.most:
            continue
        yield f" RNG r{place} {row.most - row.least}"
    yield "BOUNDS"
    for number, variable in enumerate(proto.variables):
        domain = list(variable.domain)
        yield f" LO BND x{number} {domain[0]}"
        yield f" UP BND x{number} {domain[-1]}"
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
        ends = [_reach(proto, number, terms[number]) for number in terms]
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


def _reach(proto: Any, number: int, coefficient: int) -> tuple[int, int]:
    domain = list(proto.variables[number].domain)
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
