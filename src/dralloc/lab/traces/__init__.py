"""Public traces as clusters with arrivals, read where the user has the files; and a month of a MIG cluster.

Each adapter reads the files as they were published and returns a cluster with nodes and templates, and the arrivals to
be let loose on it by `dralloc.simulate`. No file of a trace is part of dralloc. Sources, licences and columns:
the page "Public traces".
"""

from __future__ import annotations

from dralloc.lab.traces.alibaba_2023 import openb
from dralloc.lab.traces.alibaba_2025 import gpu_v2025
from dralloc.lab.traces.cluster_trace import ClusterTrace
from dralloc.lab.traces.generated_month import MigMonth, mig_month
from dralloc.lab.traces.microsoft_philly import philly
from dralloc.lab.traces.recorded_arrivals import recorded_pods

__all__ = [
    "ClusterTrace",
    "MigMonth",
    "gpu_v2025",
    "mig_month",
    "openb",
    "philly",
    "recorded_pods",
]
