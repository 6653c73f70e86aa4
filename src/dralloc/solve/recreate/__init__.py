"""Ruin and recreate: better answers from many small changes, thousands a second.

A few pods leave a few nodes, and come back in another order, among pods that wait (Schrimpf et al. 2000; Christiaens
and Vanden Berghe 2020). Who comes back gets the first devices that fit; so this needs no model, knows
no special shape of hardware, and serves any mixture. What it cannot do is left to the optimum, which starts from its
answers: find moves that only help together, move those whom a group above their gang ties to others, and
prove anything.

`cells` packs what nodes have left into integers; `rooms` knows CPU and memory, `offers` what devices take, `devices`
which of them a demand gets, or, where integers do not tell, `device_search`; `common_supply` is about what several
nodes can use. `units` are what comes and goes together, `applicants` what each of them asks for, `rules` those between
pods, and `rule_groups` which of these have to do with each other. `answer` is an answer that pods leave and enter,
`change` a search through small changes. `parts` deals a problem out to parts, and `search` searches all of them side by
side, round after round. `orders` has answers to begin with, and `starts` is all of this together: what is cheap to have
before a model is built.
"""

__all__: list[str] = []
