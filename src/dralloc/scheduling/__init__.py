"""What kube-scheduler does with pods, one after the other.

- `dralloc.scheduling.run`: all pods of a cluster: the queue, ties, and what is tried again;
- `dralloc.scheduling.scheduler`: the state between attempts, and one attempt after the other;
- `dralloc.scheduling.groups`, `dralloc.scheduling.group_cycle`: pods of a PodGroup, which come together;
- `dralloc.scheduling.release`: in what versions differ;
- `dralloc.scheduling.attempt`: how one attempt filters and scores nodes;
- `dralloc.scheduling.plugins`: the plugins of the default profile, in their order;
- `dralloc.scheduling.configuration`: profiles of a KubeSchedulerConfiguration.
"""

from __future__ import annotations

from dralloc.scheduling.attempt import Attempt
from dralloc.scheduling.configuration import profiles_of, read_profiles
from dralloc.scheduling.profile import Profile
from dralloc.scheduling.release import Release
from dralloc.scheduling.run import schedule
from dralloc.scheduling.scheduler import Scheduler

__all__ = ["Attempt", "Profile", "Release", "Scheduler", "profiles_of", "read_profiles", "schedule"]
