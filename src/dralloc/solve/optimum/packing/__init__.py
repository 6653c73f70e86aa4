"""Bin packing by columns, for bins with too many patterns to list: bundles of requests that share a node.

A demand asks for *items*: one device of a type each. The units of a bin (a GPU with its partitions, a shared device)
give items without regard to each other, so a unit is easy to know completely, even where the bin is not. From that:

- the *relaxation* lets a demand take its items from anywhere: few integer variables, and a proven bound;
- a *constructive heuristic* packs demands into bins, steered by the prices that items have in the relaxation;
- the *restricted master problem* chooses among the columns that packings left for each bin: a linear program, in which
  hardly more bins are split between several columns than there are demand classes (as many as it has rows beside
  those of the bins), and then the same in integers over those bins;
- the *exact model* decides over items and bins at once, for what is left to prove.

Every answer is built from packings and therefore keeps the rules; only the relaxation and the exact model prove bounds.
"""

__all__: list[str] = []
