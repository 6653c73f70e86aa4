"""Whether an answer keeps every rule of the problem that it answers.

It shares no code with the solvers. Its rules are plain loops over the grants, in four modules:

- `dralloc.check.problem.placed`: what the answer says, with every index looked up and every sum built once;
- `dralloc.check.problem.placed`: which demands are placed, on which nodes, with which gangs and shared claims; what
  namespaces use, and what the answer says about itself;
- `dralloc.check.problem.claims`: what each claim got: counts, ``All``, constraints; and what all claims together take
  of devices, capacities and counters;
- `dralloc.check.problem.inter_pod`: who may be near to whom, how evenly pods are spread, and whether pods can have come
  in one order that suits all of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dralloc.check.problem import claims, inter_pod, placed
from dralloc.check.problem.placed import View
from dralloc.objects.limits import without_garbage_collection
from dralloc.problem import Problem
from dralloc.problem.solution import Solution

__all__ = ["violations"]

Rule = Callable[[View], Iterator[str]]

RULES: tuple[Rule, ...] = (
    placed.each_demand_once_in_order,
    placed.on_candidate_nodes,
    placed.gangs_have_their_quorum,
    placed.groups_have_their_quorum,
    placed.shared_claims_are_allocated_once,
    placed.shared_claims_can_be_used,
    placed.nothing_with_a_defect,
    claims.every_request_served_once,
    claims.not_too_many_results,
    claims.devices_fit_their_requests,
    claims.no_device_twice,
    claims.all_means_all,
    claims.constraints_hold,
    claims.constraints_over_claims_hold,
    claims.dedicated_devices_have_one_owner,
    claims.capacities_suffice,
    claims.counters_suffice,
    claims.overdrawn_groups_are_closed,
    claims.counter_sets_have_a_common_group,
    inter_pod.nobody_is_too_near,
    inter_pod.spread_is_even,
    inter_pod.groups_are_in_one_domain,
    inter_pod.affinity_has_an_order,
    inter_pod.rules_have_one_order,
    placed.caps_are_kept,
    placed.fairness_is_true,
    placed.values_are_true,
    placed.bounds_and_status_agree,
)


@without_garbage_collection()
def violations(problem: Problem, solution: Solution) -> list[str]:
    """Every violation in a solution, each with the object, the rule and the numbers.

    A solution that refers to things the problem does not have is judged by that alone.
    """
    unknown = list(placed.unknown_references(problem, solution))
    if unknown:
        return unknown
    view = View(problem, solution)
    return [violation for rule in RULES for violation in rule(view)]
