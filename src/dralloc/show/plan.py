"""An answer as users hold it: placements, allocations, figures, a report."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.write import allocated_claims, allocations
from dralloc.objects.answer import Documented
from dralloc.objects.api import AllocationResult, ResourceClaim
from dralloc.objects.choices import (
    Choices,
    ChoiceWords,
    Mode,
    ObjectiveWord,
    spelled_out,
)
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import Finding
from dralloc.objects.names import ClaimKey, DeviceID
from dralloc.objects.report import (
    Line,
    Part,
    Table,
    amount,
    folded,
    percent,
    tier_text,
    timing_line,
)
from dralloc.objects.save import write_text
from dralloc.problem import Claim, Demand
from dralloc.problem.solution import Grant, Placement, Solution, Status, Tier
from dralloc.show.documents import PlanDocument
from dralloc.show.metrics import Metrics, Spending, measure
from dralloc.show.placed import Placed, Unplaced
from dralloc.show.question import (
    WHO,
    NotAsked,
    empty_remark,
    reach,
    unasked,
    unasked_table,
    unmodelled_table,
    unread,
)
from dralloc.show.saved import read_plan
from dralloc.show.tiers import tiers_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Plan"]


@dataclass(frozen=True, repr=False)
class Plan(Documented):
    """A checked answer. ``print(plan)`` is a readable report.

    Parameters
    ----------
    mode
        How it was found: a `Mode`, or the name of a policy.
    compiled
        The problem that it answers, and the objects behind it.
    solution
        The answer in the problem's numbers.
    timings
        Seconds by phase.

    Examples
    --------
    >>> import dralloc
    >>> plan = dralloc.allocate(dralloc.example())
    >>> plan
    <Plan: optimal: 2 of 2 placed, proven optimal>
    >>> {str(claim): allocation.devices.results[0].device for claim, allocation in plan.allocations.items()}
    {'default/any': 'small', 'default/large': 'large'}
    """

    document = PlanDocument

    mode: Mode | str
    compiled: CompiledCluster
    solution: Solution
    timings: Mapping[str, float]

    @property
    def rules(self) -> Mode:
        """The mode whose rules the answer keeps: policies keep those of first fit."""
        return self.mode if isinstance(self.mode, Mode) else Mode.FIRST_FIT

    @cached_property
    def allocations(self) -> Mapping[ClaimKey, AllocationResult]:
        """The ``status.allocation`` of each placed claim."""
        return allocations(self.compiled, self.solution)

    @cached_property
    def metrics(self) -> Metrics:
        """Figures of the answer."""
        return measure(
            self.compiled.problem, self.solution, self.compiled.products
        )

    @property
    def claims(self) -> Iterator[ResourceClaim]:
        """The placed claims with their new status, as the API server would store them."""
        return allocated_claims(self.compiled, self.solution)

    @property
    def demands(self) -> tuple[Demand, ...]:
        """The demands in order: pods with their claims, and claims that no pod uses."""
        return tuple(self.compiled.problem.demands)

    @property
    def placed(self) -> Iterator[Placed]:
        """The demands that got everything, in order."""
        for placement in self.solution.placements:
            demand = self.demands[placement.demand]
            claims = {
                claim.key: self.allocations[claim.key]
                for claim in demand.claims
            }
            yield Placed(demand.key, self.node_of(placement), claims)

    @property
    def bindings(self) -> Mapping[ClaimKey, str]:
        """The node of each pod that mode scheduler binds, in order, also of those that ask for no devices."""
        return dict(self.solution.bindings)

    @property
    def not_asked(self) -> tuple[NotAsked, ...]:
        """The pods of the input that are not to be placed, by reason."""
        return tuple(unasked(self.compiled))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Remarks about the input, what of it is not modelled, and whether it asked for anything at all."""
        return (
            *self.compiled.findings,
            *unread(self.unmodelled),
            *empty_remark(self.compiled),
        )

    @property
    def unmodelled(self) -> tuple[Finding, ...]:
        """The fields of the input that could change the answer, and do not (`dralloc.compile.modelled`)."""
        return self.compiled.unmodelled({self.rules})

    @property
    def warnings(self) -> tuple[str, ...]:
        """The warnings about the answer, for instance devices left out because a selector fails on them."""
        return self.solution.warnings

    @cached_property
    def unplaced(self) -> tuple[Unplaced, ...]:
        """The pods and claims that got nothing, in order."""
        placed = {placement.demand for placement in self.solution.placements}
        budgets = (
            self.compiled.problem.budgets if self.mode is Mode.OPTIMAL else ()
        )
        capped = {
            budget.namespace for budget in budgets if budget.most is not None
        }
        # A member beyond the minimum of its gang may be left out of a gang that is admitted:
        # then the gang is not the reason.
        admitted = {self.demands[demand_index].gang for demand_index in placed}
        unplaced: list[Unplaced] = []
        for demand_index, demand in enumerate(self.demands):
            if demand_index in placed:
                continue
            claims = tuple(claim.key for claim in demand.claims)
            unplaced.append(
                Unplaced(
                    key=demand.key,
                    claims=claims,
                    error=str(self.solution.errors.get(demand_index, "")),
                    gang="" if demand.gang in admitted else demand.gang,
                    capped=demand.key.namespace in capped,
                )
            )
        return tuple(unplaced)

    @property
    def reasons(self) -> Mapping[ClaimKey, str]:
        """Why each of them got nothing, in words."""
        nodes = self.compiled.problem.nodes
        return {
            demand.key: demand.reason if nodes else "there are no nodes"
            for demand in self.unplaced
        }

    def where_to_ask_why(self, pending: Sequence[ClaimKey]) -> Iterator[Line]:
        """Yield the question that says more of the first of what is pending than one line can."""
        if not pending or not self.compiled.problem.nodes:
            return
        first = next(
            demand for demand in self.demands if demand.key == pending[0]
        )
        option = "--claim" if self.compiled.is_claim(first) else "--pod"
        mode = "" if self.rules is Mode.FIRST_FIT else f" --mode {self.rules}"
        question = f"dralloc explain ... {option} {first.key}{mode}"
        yield Line(f"\nWhy, node by node, and what would help: {question}")

    @property
    def status(self) -> Status:
        """The status of the answer: what is proven of it."""
        return self.solution.status

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The objective, most important tier first; empty for first fit. With several priorities, one tier for each."""
        return self.solution.tiers

    @property
    def objective(self) -> int:
        """The sum of the weights of the placed demands, of which one is worth more than all of lower priorities."""
        return self.metrics.weight

    @property
    def bound(self) -> int | None:
        """The proven limit of this sum; None for first fit, which proves nothing."""
        return self.compiled.worth.bound(self.tiers) if self.tiers else None

    @property
    def gap(self) -> float | None:
        """The gap of the first tier that is not proven, 0 if all are proven; None for first fit."""
        if not self.tiers:
            return None
        unproven = self._first_unproven
        return 0.0 if unproven is None else unproven.gap

    @property
    def _first_unproven(self) -> Tier | None:
        """The most important tier that is not proven; None if there is none."""
        return next((tier for tier in self.tiers if not tier.proven), None)

    @property
    def most_placed(self) -> int | None:
        """How many demands the optimum places at most, of all priorities together; None for first fit.

        Room for one priority is missing to another, so that it may be far less than the bounds of all tiers together.
        """
        return self.solution.most_placed

    @property
    def verdict(self) -> str:
        """The status in words."""
        if not self.demands:
            return "nothing to place"
        if self.mode is not Mode.OPTIMAL:
            return "nothing proven"
        if self.status is Status.OPTIMAL:
            return f"proven optimal{self._reach}"
        return f"not proven: {self._bound_in_words}, gap {percent(self.gap)}{self._reach}"

    @property
    def _bound_in_words(self) -> str:
        """The bound of the first tier that is not proven, by its name, as the gap is that tier's."""
        tier = self._first_unproven
        if tier is None or tier.name == "weight":
            return f"bound {self.bound}"
        side = "most" if tier.sense > 0 else "least"
        words = f"{tier.name} at {side} {tier_text(tier.name, tier.bound)}"
        # Plans in files may not tell it.
        if (
            tier.name.startswith(f"{ObjectiveWord.PODS}@")
            and self.most_placed is not None
        ):
            words += f", all at most {self.most_placed}"
        return words

    @property
    def status_text(self) -> str:
        """The status, with the rules that it is true for if these are not all."""
        return f"{self.status.value}{self._reach}"

    @property
    def _reach(self) -> str:
        return reach(self.unmodelled) if self.tiers else ""

    @property
    def headline(self) -> str:
        """The number of placed demands, and what is proven."""
        placed = (
            f"{len(self.solution.placements)} of {len(self.demands)} placed, "
            if self.demands
            else ""
        )
        return f"{self.mode}: {placed}{self.verdict}"

    def node_of(self, placement: Placement) -> str:
        """Name of the node of a placement."""
        return self.compiled.problem.nodes[placement.node].name

    def to_frame(self) -> pd.DataFrame:
        """Return a row per granted device, unplaced claims without node and device; needs the extra ``notebook``."""
        from pandas import DataFrame  # noqa: PLC0415 - an optional dependency

        columns = [
            "demand",
            "claim",
            "node",
            "request",
            "rank",
            "driver",
            "pool",
            "device",
        ]
        return DataFrame(self._rows(), columns=columns)

    def _rows(self) -> Iterator[tuple[str | int | None, ...]]:
        for placement, claim, grant in self.grants():
            alternative = claim.requests[grant.request].alternatives[
                grant.alternative
            ]
            device = self.compiled.problem.devices[grant.device].id
            demand = self.demands[placement.demand]
            start = str(demand.key), str(claim.key), self.node_of(placement)
            yield (*start, str(alternative.name), alternative.rank, *device)
        for demand_left in self.unplaced:
            for key in demand_left.claims:
                yield (
                    str(demand_left.key),
                    str(key),
                    None,
                    None,
                    None,
                    None,
                    None,
                    None,
                )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the answer to a file, as ``dralloc allocate -o json`` prints it; `load` and ``--plan`` read it.

        Raises
        ------
        DrallocError
            The file cannot be written.
        """
        write_text(json.dumps(self.to_dict(), indent=2) + "\n", Path(path))

    @classmethod
    @spelled_out(ChoiceWords)
    def load(
        cls,
        path: str | PathLike[str],
        cluster: Cluster,
        *,
        choices: Choices | None = None,
        **words: Unpack[ChoiceWords],
    ) -> Plan:
        """Read an answer from a file, as an answer to the cluster that it is about.

        Devices are checked again; the nodes of pods, gangs and what is proven are taken as the file has them.

        Parameters
        ----------
        path
            What `save` wrote, or ``dralloc allocate`` printed with ``-o json`` or ``-o yaml``.
        cluster
            The cluster as it was asked about: with the demands pending.
        choices, words
            As in `dralloc.allocate`, where they say what is asked for: feature gates, nodes, what is included.

        Raises
        ------
        DrallocError
            It cannot be read, is no plan, or does not fit into the cluster.

        Examples
        --------
        >>> import dralloc, tempfile
        >>> cluster = dralloc.example()
        >>> with tempfile.NamedTemporaryFile(suffix=".json") as file:
        ...     dralloc.allocate(cluster).save(file.name)
        ...     plan = dralloc.Plan.load(file.name, cluster)
        >>> plan
        <Plan: optimal: 2 of 2 placed, proven optimal>
        >>> dralloc.allocate(plan.after)
        <Plan: optimal: nothing to place>
        """
        compiled = compile_cluster(cluster, Choices.of(choices, words))
        mode, solution = read_plan(Path(path), compiled)
        return cls(mode, compiled, solution, {})

    @property
    def after(self) -> Cluster:
        """The cluster as if the plan were carried out: its claims are allocated, and its pods have their nodes."""
        nodes = dict(self.bindings)
        for placement in self.solution.placements:
            demand = self.demands[placement.demand]
            if not self.compiled.is_claim(demand):
                nodes[demand.key] = self.node_of(placement)
        return self.compiled.cluster.settled(self.claims, nodes)

    def grants(self) -> Iterator[tuple[Placement, Claim, Grant]]:
        """Yield every granted device with its claim and placement, in order."""
        for placement in self.solution.placements:
            claims = self.demands[placement.demand].claims
            for claim, grants in zip(claims, placement.grants, strict=True):
                for grant in grants:
                    yield placement, claim, grant

    def uses(self) -> Iterator[tuple[Placement, Claim, Grant]]:
        """Yield the same for everybody who uses a claim: it is granted once, to the first of those who share it."""
        granted = {
            claim.key: grants
            for placement in self.solution.placements
            for claim, grants in zip(
                self.demands[placement.demand].claims,
                placement.grants,
                strict=True,
            )
            if grants
        }
        for placement in self.solution.placements:
            for claim in self.demands[placement.demand].claims:
                for grant in granted.get(claim.key, ()):
                    yield placement, claim, grant

    def without_devices(self) -> Iterator[Placement]:
        """Yield the placements of those whose claims ask for no device: they have a node, and nothing to use there."""
        using = {placement.demand for placement, _, _ in self.uses()}
        yield from (
            placement
            for placement in self.solution.placements
            if placement.demand not in using
        )

    def bare_rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """Yield a row of who is placed, on which node, with which claims, for each of them."""
        for placement in self.without_devices():
            demand = self.demands[placement.demand]
            claims = ", ".join(claim.key.name for claim in demand.claims)
            yield str(demand.key), self.node_of(placement), claims, "", ""

    def names(self) -> Iterator[str]:
        """Yield the names of the pods and claims that are placed."""
        for placement in self.solution.placements:
            yield str(self.demands[placement.demand].key)

    def parts(self) -> list[Part]:
        """Return the answer as tables and lines."""
        parts: list[Part] = [
            Line(self.headline, "bold"),
            tiers_table(self.tiers, wide=self._first_unproven is None),
        ]
        placements = [
            (
                str(self.demands[placement.demand].key),
                self.node_of(placement),
                str(claim.key.name),
                str(
                    claim.requests[grant.request]
                    .alternatives[grant.alternative]
                    .name
                ),
                _without_node(
                    self.compiled.problem.devices[grant.device].id,
                    self.node_of(placement),
                ),
            )
            for placement, claim, grant in self.uses()
        ]
        parts.append(
            Table(
                "Placed",
                (WHO, "node", "claim", "request", "device"),
                folded([*placements, *self.bare_rows()], 3),
            )
        )
        parts.append(
            Table(
                "Not placed",
                (WHO, "reason"),
                [(str(key), why) for key, why in self.reasons.items()],
            )
        )
        parts += self.where_to_ask_why([demand.key for demand in self.unplaced])
        parts.append(unasked_table(self.compiled))
        used = [
            (row.title, amount(row.used), amount(row.total), percent(row.share))
            for row in self.metrics.utilisation
            if row.used
        ]
        parts.append(Table("In use", ("what", ">used", ">of", ">share"), used))
        parts += _spending_parts(self.metrics.spending)
        parts.append(unmodelled_table(self.unmodelled))
        parts.append(timing_line(self.timings))
        return parts


def _without_node(device: DeviceID, node: str) -> str:
    """Return a device of a placement; the pool goes without saying where it is called as the node."""
    return (
        f"{device.driver}/{device.device}"
        if device.pool == node
        else str(device)
    )


def _spending_parts(rows: Sequence[Spending]) -> Iterator[Part]:
    """Yield the use by namespaces, and the caps that it exceeds."""
    columns = ("namespace", "what", ">before", ">used", ">cap", ">of")
    yield Table("Namespaces", columns, [_spending(row) for row in rows])
    for row in rows:
        if row.exceeded and row.most is not None:
            cap = f"{row.namespace}={row.resource}:{amount(row.most)}"
            yield Line(
                f"cap {cap} is exceeded: {amount(row.used)} in use", "yellow"
            )


def _spending(row: Spending) -> tuple[str, ...]:
    cap = "" if row.most is None else amount(row.most)
    return (
        row.namespace,
        row.resource,
        amount(row.before),
        amount(row.used),
        cap,
        amount(row.total),
    )
