"""Components whose bins can be filled in more ways than can be listed: bundles of requests that must share a node.

A demand asks for *pieces*: one device of a type each. The units of a bin (a GPU with its partitions, a shared device)
give pieces without regard to each other, so a unit is easy to know completely, even where the bin is not. From that:

- the *relaxation* lets a demand take its pieces from anywhere: few integer variables, and a proven bound;
- a *filling* puts demands into bins greedily, steered by the prices that pieces have in the relaxation;
- the *master* puts an answer together from what many fillings did with each bin: a linear program, in which hardly
  more bins are split between several columns than there are demand classes (as many as it has rows beside those of
  the bins), and then the same in integers over those bins;
- *dives* give the master the columns that it lacks: each is the best that a bin can serve at the master's prices;
- the *exact model* decides over pieces and bins at once, for what is left to prove.

Every answer is built from fillings and therefore keeps the rules; only the relaxation and the exact model prove bounds.
"""

__all__: list[str] = []
