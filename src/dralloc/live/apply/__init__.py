"""Brings an answer into a live cluster: journalled, fenced, conditional, read back and checked.

- `dralloc.live.apply.units`: the plan of writes, claims with the pods released after them;
- `dralloc.live.apply.journal`: what a run is about to do, on disk; `dralloc.live.apply.marks`: the names of marks;
- `dralloc.live.apply.executor`: one write after the other, each on the state that was seen;
- `dralloc.live.apply.pods`: pods as the API server holds them, what a release changes, and where they are bound;
- `dralloc.live.apply.fence`: what keeps others from allocating the same devices meanwhile;
- `dralloc.live.apply.run_names`: until when a run may write, and `dralloc.live.apply.fence_status`: what runs hold;
- `dralloc.live.apply.choice`: which fence the scheduler that runs is sure to honour;
- `dralloc.live.apply.selection`: the cluster as a run sees it, and the independent checker's answer about it;
- `dralloc.live.apply.run`: all of it in order, again where others were first;
- `dralloc.live.apply.outcome`: what that came to, to be shown; `dralloc.live.apply.documents`: its JSON.
"""

from __future__ import annotations

from dralloc.live.apply.executor import Executor
from dralloc.live.apply.fence import Fence, NodeTaintFence, TaintRuleFence
from dralloc.live.apply.journal import JournalFile, WriteJournal
from dralloc.live.apply.outcome import ApplyOutcome
from dralloc.live.apply.run import ApplyRun
from dralloc.live.apply.selection import Question, Selection

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
