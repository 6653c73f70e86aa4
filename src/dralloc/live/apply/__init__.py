"""Brings an answer into a live cluster: journalled, fenced, conditional, read back and checked.

- `dralloc.live.apply.units`: the plan of writes: claims with their allocations, and the pods released after them;
- `dralloc.live.apply.journal`: what is about to be done, on disk before it is;
- `dralloc.live.apply.fence`: what keeps others from allocating the same devices meanwhile;
- `dralloc.live.apply.executor`: one write after the other, each on the state that was seen;
- `dralloc.live.apply.binding`: what became of the pods that were released;
- `dralloc.live.apply.selection`: the cluster as a run sees it;
- `dralloc.live.apply.audit`: the independent checker, asked about what is planned and about what the server holds;
- `dralloc.live.apply.releases`, `dralloc.live.apply.choice`: which fence the scheduler that runs is sure to honour;
- `dralloc.live.apply.probe`: whether the scheduler knows of a fence;
- `dralloc.live.apply.status`: what runs hold on a cluster;
- `dralloc.live.apply.run`: all of it in order, again where others were first.
"""

from __future__ import annotations

from dralloc.live.apply.audit import Question
from dralloc.live.apply.executor import Executor
from dralloc.live.apply.fence import Fence, NodeTaintFence, TaintRuleFence
from dralloc.live.apply.journal import JournalFile, WriteJournal
from dralloc.live.apply.outcome import ApplyOutcome
from dralloc.live.apply.run import ApplyRun
from dralloc.live.apply.selection import Selection

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
