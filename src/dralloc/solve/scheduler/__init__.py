"""What kube-scheduler does with pods, one after the other.

- `dralloc.solve.scheduler.run`: all pods of a cluster: the queue, ties, and what is tried again;
- `dralloc.solve.scheduler.scheduler`: the state between attempts, and one attempt after the other;
- `dralloc.solve.scheduler.groups`, `dralloc.solve.scheduler.groups`: pods of a PodGroup, which come together;
- `dralloc.solve.scheduler.scheduler`: in what versions differ;
- `dralloc.solve.scheduler.attempt`: how one attempt filters and scores nodes;
- `dralloc.solve.scheduler.plugins`: the plugins of the default profile, in their order;
- `dralloc.solve.scheduler.plugins`: profiles of a KubeSchedulerConfiguration.
"""

from __future__ import annotations

from dralloc.solve.scheduler.attempt import Attempt
from dralloc.solve.scheduler.plugin import Profile
from dralloc.solve.scheduler.plugins import profiles_of, read_profiles
from dralloc.solve.scheduler.run import SchedulingRun, schedule
from dralloc.solve.scheduler.scheduler import Release, Scheduler

__all__ = [
    "Attempt",
    "Profile",
    "Release",
    "Scheduler",
    "SchedulingRun",
    "profiles_of",
    "read_profiles",
    "schedule",
]
