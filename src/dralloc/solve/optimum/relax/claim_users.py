"""Demands that use one claim: they are all where its devices are.

A claim is allocated once, on the node of whoever is placed first. Devices of one node are used there alone, and with
them all users of the claim are on that node; devices that several nodes reach are used on each of these. So users of a
claim are like a gang that is in one domain, of which any number may be placed.

Source: KEP-4381, "ResourceClaim": allocations have a node selector, and every pod that uses the claim has to go where
it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from networkx.utils import UnionFind

from dralloc.problem import Alternative, Claim, NodeIndex, Problem, numbered
from dralloc.problem.common import CommonDevices, common_devices
from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.inter_pod import Domains

__all__ = ["ClaimSharers", "users_of_claims"]

_MOST_NODES: Final = 200
"""On more nodes nothing is said of them: all would be asked about each node, and prices hardly tell nodes apart."""


class ClaimSharers(NamedTuple):
    """Demands that use one claim.

    Parameters
    ----------
    domains
        By node name: the domains of nodes, in one of which all of them have to be.
    """

    members: tuple[DemandIndex, ...]
    domains: Domains


def users_of_claims(problem: Problem) -> Iterator[ClaimSharers]:
    """Give out the users of each claim that has several, but for those who are in a gang, or use an earlier one, too.

    Left out are claims that could be used on all nodes at once.
    """
    if len(problem.nodes) > _MOST_NODES:
        return
    common = common_devices(problem)
    users_by_claim = grouped(
        (claim.key, (index, claim))
        for index, demand in numbered(problem.demands)
        if not (demand.is_defective or demand.gang)
        for claim in demand.claims
        if claim.requests and not claim.is_synthetic
    )
    seen: set[DemandIndex] = set()
    for users in users_by_claim.values():
        members = tuple([index for index, _ in users if index not in seen])
        if len(members) < 2:
            continue
        _, claim = users[0]
        domains = _domains(problem, common, claim)
        if len(set(domains.values())) > 1:
            seen.update(members)
            yield ClaimSharers(members, domains)


def _domains(
    problem: Problem, common: Iterable[CommonDevices], claim: Claim
) -> Domains:
    """Return the domains in one of which a claim can be used: a single node, or nodes that reach the same devices."""
    nodes_of_requests: list[list[frozenset[NodeIndex]]] = []
    for request in claim.requests:
        reaches = [
            devices.nodes
            for devices in common
            if _may_serve(problem, devices, request.alternatives)
        ]
        nodes_of_requests.append(reaches)
    forest: UnionFind[NodeIndex] = UnionFind()
    # A request that gets devices of one node ties the whole claim to it.
    if all(nodes_of_requests):
        for nodes in chain.from_iterable(nodes_of_requests):
            forest.union(*nodes)
    return {
        node.name: problem.nodes[forest[index]].name
        for index, node in numbered(problem.nodes)
    }


def _may_serve(
    problem: Problem,
    devices: CommonDevices,
    alternatives: Iterable[Alternative],
) -> bool:
    """Whether any of some devices may be had for any of some alternatives; one whose selector fails counts, too."""
    return any(
        problem.eligibility.selects(alternative.index, device) is not False
        for alternative in alternatives
        for device in devices.devices
    )
