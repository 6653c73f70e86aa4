"""Allocates devices to Kubernetes ResourceClaims, many at once, and proves how good the answer is.

>>> import dralloc
>>> cluster = dralloc.load("models/h100-mig")
>>> print(dralloc.compare(cluster))  # doctest: +SKIP
"""

from __future__ import annotations

from dralloc.allocate import allocate, compare
from dralloc.budget import Cap
from dralloc.choices import Goal, Mode
from dralloc.cluster import Cluster
from dralloc.comparison import Comparison
from dralloc.errors import DrallocError, InputError
from dralloc.explain import Explanation, explain
from dralloc.features import Features
from dralloc.load import load
from dralloc.plan import Plan
from dralloc.solvers.cpsat import Options
from dralloc.stranded import Stranding, stranded
from dralloc.study import study
from dralloc.validate import Violation, validate

__all__ = [
    "Cap",
    "Cluster",
    "Comparison",
    "DrallocError",
    "Explanation",
    "Features",
    "Goal",
    "InputError",
    "Mode",
    "Options",
    "Plan",
    "Stranding",
    "Violation",
    "allocate",
    "compare",
    "explain",
    "load",
    "stranded",
    "study",
    "validate",
]
