"""First-fit reasons agree with the search, for every node."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings

from dralloc.ask.context.offers import Offers
from dralloc.ask.explain.nodes import Diagnosis
from dralloc.ask.explain.snapshot import DemandSnapshot, placed_before
from dralloc.ask.explain.wording import Wording
from dralloc.objects.errors import AllocationError
from dralloc.objects.names import ClaimKey
from dralloc.problem import DemandIndex, NodeIndex, Problem, indices
from dralloc.problem.solution import Grant, Placement
from dralloc.solve.first_fit import first_fit
from dralloc.solve.first_fit.search import DepthFirstSearch
from dralloc.solve.first_fit.search_ledger import SearchLedger
from examples import examples
from strategies import problems

PROBLEMS = examples(150)


def searched(
    problem: Problem,
    demand_index: DemandIndex,
    placements: tuple[Placement, ...],
    node: NodeIndex,
) -> bool | str:
    """What first fit's search finds on a node after these placements: whether the demand fits, or the error."""
    ledger = SearchLedger(problem)
    allocated: dict[ClaimKey, tuple[NodeIndex, tuple[Grant, ...]]] = {}
    for placement in placements:
        for claim_index, claim in enumerate(
            problem.demands[placement.demand].claims
        ):
            grants = placement.grants[claim_index]
            if grants or not claim.requests:
                allocated[claim.key] = placement.node, grants
            for grant in grants:
                alternative = claim.requests[grant.request].alternatives[
                    grant.alternative
                ]
                charge = problem.eligibility.charge(
                    alternative.index, grant.device
                )
                assert charge is not None
                ledger.take(grant.device, alternative, claim_index, charge)
        ledger.settle()
    demand = problem.demands[demand_index]
    shared = [
        allocated[claim.key]
        for claim in demand.claims
        if claim.key in allocated
    ]
    reachable = all(
        problem.usable_from(grant.device, home, node)
        for home, grants in shared
        for grant in grants
    )
    if node not in problem.candidate_nodes(demand) or not reachable:
        return False
    claims = [claim for claim in demand.claims if claim.key not in allocated]
    try:
        return DepthFirstSearch(problem, ledger, claims, node).run() is not None
    except AllocationError as error:
        return str(error)


@settings(max_examples=PROBLEMS)
@given(problems())
def test_a_node_fits_exactly_if_the_search_finds_something_there(
    problem: Problem,
) -> None:
    for demand_index in indices(problem.demands):
        placements = placed_before(problem, demand_index)
        snapshot = DemandSnapshot.after(
            placements, problem, demand_index, Offers(problem.eligibility)
        )
        diagnosis = Diagnosis(snapshot, Wording(snapshot.placed))
        for node in indices(problem.nodes):
            reason, outcome = (
                diagnosis.reason(node),
                searched(problem, demand_index, placements, node),
            )
            assert reason.fits is (outcome is True)
            if (
                isinstance(outcome, str)
                and outcome != "invalid resource pools were encountered"
            ):
                assert reason.causes[0].text == outcome
            assert all(cause.text for cause in reason.causes)


@settings(max_examples=PROBLEMS // 2)
@given(problems())
def test_what_is_placed_before_a_demand_is_that_of_the_batch(
    problem: Problem,
) -> None:
    alone = replace(
        problem,
        demands=tuple(replace(demand, gang="") for demand in problem.demands),
    )
    solution = first_fit(alone)
    for demand_index in indices(alone.demands):
        before = tuple(
            placement
            for placement in solution.placements
            if placement.demand < demand_index
        )
        assert placed_before(alone, demand_index) == before
