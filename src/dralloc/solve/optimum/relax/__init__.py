"""Relaxations: bounds for any problem, by leaving out what is hard about it.

What stays are rows that every answer keeps (`dralloc.solve.optimum.relax.offers`): devices that one claim has for
itself are as many as there are, counters and capacities are drawn on up to what is left, and so are CPU, memory and
places of each node; of those who need more than half of a counter or a capacity, one gets it
(`dralloc.solve.optimum.relax.halves`); on a shared device there are shares that fit beside each other
(`dralloc.solve.optimum.relax.patterns`). Who goes to a node finds there, for each request of its claims, one
alternative with enough devices (`dralloc.solve.optimum.relax.demand_kinds`); where all devices of some requests need a
common value, devices that carry one; where those of a request need different ones, devices with these; a claim for
``All`` has all that the node has; of a claim that several demands use, each of them needs a part, where the others are
(`dralloc.solve.optimum.relax.claim_users`). Gangs are placed as far as their quorum says or not at all, in one domain
if they need one; a gang or a domain that has no room for that, if it was alone, is left out, and no more of a gang are
placed than have room alone, where that is known (`dralloc.solve.optimum.room`). Of rules between pods there is how many
demands a domain holds at most (`dralloc.solve.optimum.relax.domain_limits`), and of caps what demands use at least
(`dralloc.solve.optimum.relax.caps`). Everything else is left out of the problem: who has to be near whom, and in which
order pods come, constraints over several claims, that devices for several requests differ, admin access, compatibility
groups, groups of gangs, and that demands are placed as a whole.

A bound takes two steps. A linear program guesses a price for each row (`dralloc.solve.optimum.relax.guide`): in
floats, over regions of nodes that are about alike, with demands in lots that are about equal, as large as there is
time for. Then a sum in exact integers, over every node and every demand as they are, says what these prices prove
(`dralloc.solve.optimum.relax.prices`, with the proof). So a bad guess costs sharpness, and never the truth.

Weights are bounded level by level, most important first (`dralloc.solve.optimum.relax.levels`): each with all that is
possible of those above, so that the bounds of the levels together are those of the sum. Where an answer has less, what
follows for each level and for all of them is in `dralloc.solve.optimum.relax.bounds`; what ranks of alternatives and
packing goals cost then, in `dralloc.solve.optimum.relax.least_costs`.

Of few demands and nodes, the same rows are also an integer program, with demands and gangs as a whole
(`dralloc.solve.optimum.relax.node_model`): it proves more, and says who goes to which node.
"""

from __future__ import annotations

from dralloc.solve.optimum.relax.bounds import Bound
from dralloc.solve.optimum.relax.ladder import (
    RelaxationLadder,
    relaxed_bounds,
)

__all__ = ["Bound", "RelaxationLadder", "relaxed_bounds"]
