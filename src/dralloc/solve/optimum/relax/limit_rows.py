"""Limits of domains (`dralloc.solve.optimum.relax.domain_limits`) as rows, on which a demand draws once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from dralloc.problem import NodeIndex, Problem, numbered
from dralloc.problem.indices import grouped
from dralloc.solve.optimum.relax.demand_kinds import ResourceRow
from dralloc.solve.optimum.relax.domain_limits import DomainLimit

__all__ = ["LimitRows", "limit_rows_of"]


class LimitRows(NamedTuple):
    """The row of its domain by node, as far as there is one; and the nodes to which nobody may go."""

    rows: Mapping[NodeIndex, int]
    closed: frozenset[NodeIndex]


def limit_rows_of(
    problem: Problem, limits: Sequence[DomainLimit], rows: list[ResourceRow]
) -> list[LimitRows]:
    """Enter a row for each domain, unless hardly any is ever full."""
    return [
        _rows_of(problem, limit_index, limit, rows)
        for limit_index, limit in enumerate(limits)
    ]


def _rows_of(
    problem: Problem,
    limit_index: int,
    limit: DomainLimit,
    rows: list[ResourceRow],
) -> LimitRows:
    nodes_of = grouped(
        (limit.domains.get(node.name), index)
        for index, node in numbered(problem.nodes)
    )
    has_rows = not limit.is_sparse
    row_of: dict[NodeIndex, int] = {}
    closed: list[NodeIndex] = []
    for domain, nodes in nodes_of.items():
        if domain is None:
            closed += nodes if limit.closed_outside else ()
            continue
        most = limit.limits.get(domain)
        if most == 0:
            closed += nodes
        elif most is not None and has_rows:
            row_of |= dict.fromkeys(nodes, len(rows))
            # A row of one node is merged with those of its region, and counts to what the node is worth.
            node = nodes[0] if len(nodes) == 1 else None
            role = "domain limit", limit_index
            rows.append(ResourceRow(node, role, most, (*role, domain)))
    return LimitRows(row_of, frozenset(closed))
