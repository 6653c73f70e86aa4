"""Allocates devices to Kubernetes ResourceClaims, many at once, and proves how good the answer is.

>>> import dralloc
>>> cluster = dralloc.example()
>>> dralloc.compare(cluster)
<Comparison: 2 claims: first fit places 1, the optimum 2 (proven optimal)>
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from dralloc.objects.notebook import Cell, register

if TYPE_CHECKING:
    from dralloc.ask import whatif as whatif
    from dralloc.ask.allocate import allocate, compare, export_model
    from dralloc.ask.capacity import CapacityReport, capacity
    from dralloc.ask.explain import Explanation, PendingReport, explain
    from dralloc.ask.stranded import Stranding, stranded
    from dralloc.ask.whatif import (
        defragment,
        drain,
        fewest_nodes,
        headroom,
        partition_layout,
        preempt,
    )
    from dralloc.lab.simulate import (
        Arrival,
        PoissonArrivals,
        Simulated,
        simulate,
    )
    from dralloc.lab.study import study
    from dralloc.lint.validate import Validation, Violation, validate
    from dralloc.objects import errors as errors
    from dralloc.objects.builder import ClusterBuilder, example
    from dralloc.objects.choices import Choices, Goal, Mode, Options
    from dralloc.objects.cluster import Cluster
    from dralloc.objects.errors import ChoiceError, DrallocError, InputError
    from dralloc.objects.features import Features
    from dralloc.objects.limits import Limits
    from dralloc.objects.load import load
    from dralloc.objects.user_rules import Across, Cap
    from dralloc.show import plot as plot
    from dralloc.show.comparison import Comparison
    from dralloc.show.page import report
    from dralloc.show.plan import Plan
    from dralloc.solve.policies import (
        OfferedNode,
        OrderedPolicy,
        Policy,
        WaitingPod,
    )

__all__ = [
    "Across",
    "Arrival",
    "Cap",
    "CapacityReport",
    "ChoiceError",
    "Choices",
    "Cluster",
    "ClusterBuilder",
    "Comparison",
    "DrallocError",
    "Explanation",
    "Features",
    "Goal",
    "InputError",
    "Limits",
    "Mode",
    "OfferedNode",
    "Options",
    "OrderedPolicy",
    "PendingReport",
    "Plan",
    "PoissonArrivals",
    "Policy",
    "Simulated",
    "Stranding",
    "Validation",
    "Violation",
    "WaitingPod",
    "allocate",
    "capacity",
    "compare",
    "defragment",
    "drain",
    "example",
    "explain",
    "export_model",
    "fewest_nodes",
    "headroom",
    "load",
    "partition_layout",
    "preempt",
    "report",
    "simulate",
    "stranded",
    "study",
    "validate",
]

__version__: str

_NAMES: Final = {
    "ask.allocate": ("allocate", "compare", "export_model"),
    "ask.capacity": ("CapacityReport", "capacity"),
    "objects.builder": ("ClusterBuilder", "example"),
    "objects.choices": ("Choices", "Goal", "Mode", "Options"),
    "objects.cluster": ("Cluster",),
    "show.comparison": ("Comparison",),
    "objects.errors": ("ChoiceError", "DrallocError", "InputError"),
    "ask.explain": ("Explanation", "PendingReport", "explain"),
    "objects.features": ("Features",),
    "objects.limits": ("Limits",),
    "objects.load": ("load",),
    "show.page": ("report",),
    "show.plan": ("Plan",),
    "lab.simulate": ("Arrival", "PoissonArrivals", "Simulated", "simulate"),
    "solve.policies": ("OfferedNode", "OrderedPolicy", "Policy", "WaitingPod"),
    "ask.stranded": ("Stranding", "stranded"),
    "lab.study": ("study",),
    "lint.validate": ("Validation", "Violation", "validate"),
    "objects.user_rules": ("Across", "Cap"),
    "ask.whatif": (
        "defragment",
        "drain",
        "fewest_nodes",
        "headroom",
        "partition_layout",
        "preempt",
    ),
}
"""What each module offers here."""

_MODULES: Final = {
    "errors": "objects.errors",
    "plot": "show.plot",
    "whatif": "ask.whatif",
}
"""Modules that can be taken from here, too: ``from dralloc import plot``."""

_HOMES: Final = {
    name: module for module, names in _NAMES.items() for name in names
}


class _Package(ModuleType):
    """Imports what it offers when that is first used: the solver and the grammar of CEL take seconds."""

    def __getattr__(self, name: str) -> Any:
        value: object
        if name == "__version__":
            value = import_module("importlib.metadata").version(__name__)
        elif name in _HOMES:
            value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        elif name in _MODULES:
            value = import_module(f"{__name__}.{_MODULES[name]}")
        else:
            raise AttributeError(
                f"module {__name__!r} has no attribute {name!r}"
            )
        setattr(self, name, value)
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        """Let functions of scripts and notebooks, which name the package, be sent to other processes: by its name."""
        return import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


def _notebook_cell() -> Cell:
    from dralloc.show.page import cell  # noqa: PLC0415 - only a notebook needs it

    return cell


register(_notebook_cell)
sys.modules[__name__].__class__ = _Package
