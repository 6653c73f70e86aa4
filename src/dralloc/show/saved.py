"""Plans in files: the JSON of an answer, or the claims that it allocates, as an answer to a cluster again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import ValidationError

from dralloc.check import violations
from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.api import AllocationResult, Node, ResourceClaim
from dralloc.objects.api.selecting import selector_matches
from dralloc.objects.choices import Mode
from dralloc.objects.errors import AllocationError, DrallocError
from dralloc.objects.load import load
from dralloc.objects.names import ClaimKey, RequestName
from dralloc.objects.quantity import NANOS, parse_quantity
from dralloc.problem import Claim, Demand, NodeIndex, numbered
from dralloc.problem.solution import Grant, Placement, Solution, Status, Tier

__all__ = ["SavedPlan", "read_plan"]

_SHOWN: Final = 3


class SavedPlan(NamedTuple):
    """How an answer was found, and the answer in the numbers of a problem."""

    mode: Mode | str
    solution: Solution


class _Saved(NamedTuple):
    """A demand with its node, and what its claims get."""

    demand: ClaimKey
    node: str
    claims: Mapping[ClaimKey, AllocationResult]


def read_plan(path: Path, compiled: CompiledCluster) -> SavedPlan:
    """Read what ``Plan.save`` or ``dralloc allocate`` wrote, for the cluster that it was about.

    Parameters
    ----------
    path
        JSON (``-o json``) has everything. Of claims alone (``-o yaml``) the nodes of pods are those that the
        allocations select, which must be one each; how good the answer is, is not in them.

    Raises
    ------
    DrallocError
        It is no plan; it is not about this cluster, or breaks a rule there: names what.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise DrallocError(f"{path}: cannot be read: {error}") from None
    document = _document_of(text)
    reader = _PlanReader(path, compiled)
    # A text that is no such document holds objects: the plan is what its claims got.
    if document is None:
        placements = reader.placements(reader.of_claims())
        return SavedPlan("saved", reader.checked(Solution(placements)))
    placements = reader.placements(reader.of_document(document))
    solution = reader.checked(Solution(placements))
    mode = str(document.get("mode", "saved"))
    try:
        solution = replace(
            solution,
            status=Status(document.get("status", Status.FEASIBLE)),
            tiers=tuple(map(_tier, document.get("tiers", ()))),
            errors=dict(reader.errors(document)),
            warnings=tuple(document.get("warnings", ())),
            most_placed=_count(document.get("mostPlaced")),
            bindings=tuple(reader.bindings(document)),
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise reader.refusal_of_form(error) from None
    return SavedPlan(Mode(mode) if mode in set(Mode) else mode, solution)


def _document_of(text: str) -> dict[str, Any] | None:
    """The document that a text is; None if it is something else, such as objects."""
    try:
        document = json.loads(text)
    except ValueError:
        return None
    if isinstance(document, dict) and "placed" in document:
        return document
    return None


def _count(figure: object) -> int | None:
    """Return a number that may be unknown; raises ValueError if it is something else."""
    if figure is None or type(figure) is int:
        return figure
    raise ValueError(f"mostPlaced: {figure!r}: expected a whole number or null")


def _tier(fields: Mapping[str, Any]) -> Tier:
    # Amounts are in nanos here; those of version 1 are all in words.
    unit = NANOS if fields.get("unit") == "amount" else 1
    value, bound = (
        parse_quantity(figure).nanos
        if isinstance(figure, str)
        else figure * unit
        for figure in (fields["value"], fields["bound"])
    )
    return Tier(
        fields["name"], value, bound, fields["sense"], fields.get("why", "")
    )


@dataclass(frozen=True)
class _PlanReader:
    """Finds the numbers of a compiled cluster behind the names of a plan."""

    path: Path
    compiled: CompiledCluster

    def of_document(self, document: Mapping[str, Any]) -> Iterator[_Saved]:
        """Yield the placements in a document."""
        try:
            for entry in document["placed"]:
                claims = {
                    ClaimKey.parse(key): AllocationResult.model_validate(wire)
                    for key, wire in entry["claims"].items()
                }
                yield _Saved(
                    ClaimKey.parse(entry["demand"]), str(entry["node"]), claims
                )
        except (KeyError, TypeError, AttributeError, ValidationError) as error:
            raise self.refusal_of_form(error) from None

    def of_claims(self) -> Iterator[_Saved]:
        """Yield the placements in a file of objects, from its allocated claims."""
        allocated = {
            claim.key: claim
            for claim in load(self.path).claims
            if claim.is_allocated
        }
        if not allocated:
            raise self._refusal("has neither a plan nor allocated claims")
        for demand in self.compiled.problem.demands:
            keys = [claim.key for claim in demand.claims]
            if keys and allocated.keys() >= set(keys):
                claims = [allocated[key] for key in keys]
                allocations = {
                    claim.key: claim.status.allocation
                    for claim in claims
                    if claim.status.allocation is not None
                }
                yield _Saved(
                    demand.key, self._node_of(demand, claims), allocations
                )

    def _node_of(self, demand: Demand, claims: Iterable[ResourceClaim]) -> str:
        """The only node on which allocated claims can be used."""
        selectors = [
            claim.status.allocation.node_selector
            for claim in claims
            if claim.status.allocation is not None
        ]

        def is_selected(node: Node) -> bool:
            return all(
                selector is None or selector_matches(selector, node)
                for selector in selectors
            )

        nodes = self.compiled.cluster.nodes
        names = [node.metadata.name for node in filter(is_selected, nodes)]
        if len(names) == 1:
            return names[0]
        raise self._refusal(
            f"does not say to which node {demand.key} goes: save the plan as JSON, which does"
        )

    def placements(self, saved: Iterable[_Saved]) -> tuple[Placement, ...]:
        """The placements behind names, each claim granted once."""
        problem = self.compiled.problem
        demand_indices = {
            demand.key: demand_index
            for demand_index, demand in numbered(problem.demands)
        }
        nodes = {
            node.name: node_index
            for node_index, node in numbered(problem.nodes)
        }
        granted: set[ClaimKey] = set()
        placements: list[Placement] = []
        for demand_key, node, allocations in saved:
            demand_index = demand_indices.get(demand_key)
            if demand_index is None:
                raise self._refusal(
                    f"places {demand_key}, which is not pending in this cluster"
                )
            if node not in nodes:
                raise self._refusal(
                    f'places {demand_key} on node "{node}", which is not in this cluster'
                )
            grants: list[tuple[Grant, ...]] = []
            for claim in problem.demands[demand_index].claims:
                allocation = allocations.get(claim.key)
                if allocation is None:
                    raise self._refusal(
                        f"places {demand_key} without an allocation of its claim {claim.key}"
                    )
                # A claim that several demands use gets its devices with the first of them.
                is_new = claim.key not in granted
                granted.add(claim.key)
                grants.append(
                    tuple(self._grants(claim, allocation, nodes[node]))
                    if is_new
                    else ()
                )
            placements.append(
                Placement(demand_index, nodes[node], tuple(grants))
            )
        return tuple(sorted(placements, key=lambda placed: placed.demand))

    def _grants(
        self, claim: Claim, allocation: AllocationResult, node: NodeIndex
    ) -> Iterator[Grant]:
        """Yield the grants behind the results of a claim on a node."""
        problem, inventory = self.compiled.problem, self.compiled.inventory
        positions = {
            alternative.name: (request_index, choice)
            for request_index, request in enumerate(claim.requests)
            for choice, alternative in enumerate(request.alternatives)
        }
        seen = set(problem.nodes[node].devices())
        for result in allocation.devices.results:
            position = positions.get(RequestName.parse(result.request))
            slot = inventory.slots.get(result.device_id)
            versions = () if slot is None else problem.versions[slot]
            # While a pool is updated, a device has several versions: the node sees one of them.
            device = next(
                (version for version in versions if version in seen), None
            )
            if position is None or device is None:
                raise self._refusal(
                    f"gives {result.device_id} to request {result.request} of {claim.key}, "
                    f"which this cluster does not have on {problem.nodes[node].name}"
                )
            yield Grant(*position, device)

    def bindings(
        self, document: Mapping[str, Any]
    ) -> Iterator[tuple[ClaimKey, str]]:
        """Yield the pods that were bound, in order, with their nodes."""
        cluster = self.compiled.cluster
        nodes = {node.name for node in cluster.nodes}
        # Older files have none.
        for name, node in document.get("bindings", {}).items():
            key = ClaimKey.parse(name)
            if key not in cluster.pods_by_key or node not in nodes:
                raise self._refusal(
                    f'binds {name} to node "{node}", which are not both in this cluster'
                )
            yield key, node

    def errors(
        self, document: Mapping[str, Any]
    ) -> Iterator[tuple[int, AllocationError]]:
        """Yield why attempts ended with an error, by demand."""
        texts = {
            entry["demand"]: entry["error"]
            for entry in document.get("unplaced", ())
            if entry.get("error")
        }
        for demand_index, demand in numbered(self.compiled.problem.demands):
            text = texts.get(str(demand.key))
            if text is not None:
                yield demand_index, AllocationError(text)

    def checked(self, solution: Solution) -> Solution:
        """Return an answer that keeps the rules of devices; nodes and gangs are taken as the plan has them."""
        problem = self.compiled.problem
        demands = tuple(
            demand.by_itself(nodes=None, roles=()) for demand in problem.demands
        )
        broken_rules = violations(
            replace(problem, demands=demands, budgets=()), solution
        )
        if broken_rules:
            further = (
                f" and {len(broken_rules) - _SHOWN} more"
                if len(broken_rules) > _SHOWN
                else ""
            )
            raise self._refusal(
                f"does not fit into this cluster: {'; '.join(broken_rules[:_SHOWN])}{further}"
            )
        return solution

    def refusal_of_form(self, error: Exception) -> DrallocError:
        """The error of a document of another form than that of a plan."""
        return self._refusal(
            f"is no plan as dralloc allocate -o json writes it: {error}"
        )

    def _refusal(self, rule: str) -> DrallocError:
        return DrallocError(f"{self.path}: {rule}")
