"""Which kinds of nodes would hold the demand if there were one more of them, empty."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dralloc.api import Node
from dralloc.api.node_names import HOSTNAME_LABEL
from dralloc.context.context import alternatives_in
from dralloc.context.node_rules import CORDONED, Exclusions
from dralloc.explain.change import Change
from dralloc.explain.situation import Situation
from dralloc.inventory.reach import NodeIndex

__all__ = ["new_nodes"]

_MOST = 8


def new_nodes(situation: Situation) -> Iterator[str]:
    """For each kind of node the name of one, if an empty node like it could take the demand."""
    lab, whole = situation.lab, situation.problem.demands[situation.lab.turn.number]
    if lab.turn.demand.claims != whole.claims or not whole.claims:
        return
    if not lab.exact and lab.gives_up(Change()):
        return
    for node in _kinds(situation):
        if _is_allowed(situation, node) and _holds(situation, node):
            yield situation.problem.nodes[node].name


def _kinds(situation: Situation) -> list[int]:
    """The first node of each kind: those that offer devices of equal keys, in the same order."""
    offers = situation.lab.turn.context.offers
    kinds: dict[object, int] = {}
    for number in range(len(situation.problem.nodes)):
        local = _local(situation, number)
        if local:
            kinds.setdefault(tuple(offers.device_key(device) for device in local), number)
    return list(kinds.values())[:_MOST]


def _local(situation: Situation, number: int) -> list[int]:
    """The devices that come with the node: those of slices that name it."""
    node = situation.problem.nodes[number]
    if situation.compiled is None:
        return []
    sources = situation.compiled.inventory.sources
    return [device for device in node.devices() if sources[device].slice.spec.node_name == node.name]


def _is_allowed(situation: Situation, number: int) -> bool:
    """Whether the pod could go to a new node with the labels of this one."""
    whole = situation.problem.demands[situation.lab.turn.number]
    rules = set(situation.lab.rules(number)) - {CORDONED}
    if rules or situation.compiled is None:
        return False
    new = renamed(_like(situation, number), f"{situation.problem.nodes[number].name}-new")
    return not Exclusions(situation.compiled).of_node(whole, new)


def renamed(node: Node, name: str) -> Node:
    """The node under another name, which its host name follows."""
    labels = {key: name if key == HOSTNAME_LABEL else value for key, value in node.metadata.labels.items()}
    return node.model_copy(update={"metadata": node.metadata.model_copy(update={"name": name, "labels": labels})})


def _holds(situation: Situation, number: int) -> bool:
    lab = situation.lab
    demand, lift = lab.wanted(Change()), lab.lift(Change())
    local = frozenset(_local(situation, number))
    ledger = lab.turn.context.ledger.copy()
    ledger.vacate(local)
    context = replace(lab.turn.context, ledger=ledger)
    reached = local.union(_reached_anywhere(situation, number))
    offered = [device for device in context.relevant(number, alternatives_in([demand])) if device in reached]
    found = lab.within(context.cut([number], offered, [demand], lift), demand, lift)
    return found is not None and found.node >= 0


def _reached_anywhere(situation: Situation, number: int) -> Iterator[int]:
    """The devices of a node's pools that a new node with its labels would reach, too."""
    if situation.compiled is None:
        return
    problem, sources = situation.problem, situation.compiled.inventory.sources
    new = NodeIndex([renamed(_like(situation, number), f"{problem.nodes[number].name}-new")])
    for device in problem.nodes[number].devices():
        source = sources[device]
        if new.of_slice(source.slice) and (problem.devices[device].nodes is None or new.of_device(source.device)):
            yield device


def _like(situation: Situation, number: int) -> Node:
    """The node's object."""
    assert situation.compiled is not None
    name = situation.problem.nodes[number].name
    return next(node for node in situation.compiled.cluster.nodes if node.metadata.name == name)
