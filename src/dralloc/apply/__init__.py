"""Brings an answer into a live cluster: journalled, fenced, conditional, read back and checked.

- `dralloc.apply.units`: the plan of writes: claims with their allocations, and the pods that are released after them;
- `dralloc.apply.journal`: what is about to be done, on disk before it is;
- `dralloc.apply.fence`: what keeps others from allocating the same devices meanwhile;
- `dralloc.apply.executor`: one write after the other, each on the state that was seen;
- `dralloc.apply.binding`: what became of the pods that were released;
- `dralloc.apply.selection`: the cluster as a run sees it;
- `dralloc.apply.audit`: the independent checker, asked about what is planned and about what the server holds;
- `dralloc.apply.run`: all of it in order, again where others were first.
"""

from __future__ import annotations

from dralloc.apply.audit import Question
from dralloc.apply.executor import Executor
from dralloc.apply.fence import Fence, NodeTaintFence, TaintRuleFence
from dralloc.apply.journal import JournalFile, WriteJournal
from dralloc.apply.outcome import ApplyOutcome
from dralloc.apply.run import ApplyRun
from dralloc.apply.selection import Selection

__all__ = [
    "ApplyOutcome",
    "ApplyRun",
    "Executor",
    "Fence",
    "JournalFile",
    "NodeTaintFence",
    "Question",
    "Selection",
    "TaintRuleFence",
    "WriteJournal",
]
