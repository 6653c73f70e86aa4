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

if TYPE_CHECKING:
    from dralloc.ask.allocate import allocate, compare
    from dralloc.ask.explain import Explanation, explain
    from dralloc.ask.stranded import Stranding, stranded
    from dralloc.ask.whatif import (
        defragment,
        drain,
        fewest_nodes,
        headroom,
        partition_layout,
        preempt,
    )
    from dralloc.lab.study import study
    from dralloc.lint.validate import Validation, Violation, validate
    from dralloc.objects.across import Across
    from dralloc.objects.budget import Cap
    from dralloc.objects.choices import Choices, Goal, Mode, Options
    from dralloc.objects.cluster import Cluster
    from dralloc.objects.errors import ChoiceError, DrallocError, InputError
    from dralloc.objects.example import example
    from dralloc.objects.features import Features
    from dralloc.objects.limits import Limits
    from dralloc.objects.load import load
    from dralloc.show.comparison import Comparison
    from dralloc.show.plan import Plan
    from dralloc.solve.policies import OfferedNode, OrderedPolicy, Policy, WaitingPod

__all__ = [
    "Across",
    "Cap",
    "ChoiceError",
    "Choices",
    "Cluster",
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
    "Plan",
    "Policy",
    "Stranding",
    "Validation",
    "Violation",
    "WaitingPod",
    "allocate",
    "compare",
    "defragment",
    "drain",
    "example",
    "explain",
    "fewest_nodes",
    "headroom",
    "load",
    "partition_layout",
    "preempt",
    "stranded",
    "study",
    "validate",
]

__version__: str

_NAMES: Final = {
    "objects.across": ("Across",),
    "ask.allocate": ("allocate", "compare"),
    "objects.budget": ("Cap",),
    "objects.choices": ("Choices", "Goal", "Mode", "Options"),
    "objects.cluster": ("Cluster",),
    "show.comparison": ("Comparison",),
    "objects.errors": ("ChoiceError", "DrallocError", "InputError"),
    "objects.example": ("example",),
    "ask.explain": ("Explanation", "explain"),
    "objects.features": ("Features",),
    "objects.limits": ("Limits",),
    "objects.load": ("load",),
    "show.plan": ("Plan",),
    "solve.policies": ("OfferedNode", "OrderedPolicy", "Policy", "WaitingPod"),
    "ask.stranded": ("Stranding", "stranded"),
    "lab.study": ("study",),
    "lint.validate": ("Validation", "Violation", "validate"),
    "ask.whatif": (
        "defragment",
        "drain",
        "fewest_nodes",
        "headroom",
        "partition_layout",
        "preempt",
    ),
}
"""What each submodule offers here."""

_HOMES: Final = {name: module for module, names in _NAMES.items() for name in names}


class _Package(ModuleType):
    """Imports what it offers when that is first used: the solver and the grammar of CEL take seconds.

    Importing a submodule sets it as an attribute of its package. Where a function has the same name, as in
    ``dralloc.load``, the function is meant.
    """

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            value: object = import_module("importlib.metadata").version(__name__)
        elif name in _HOMES:
            value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        setattr(self, name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Let functions of scripts and notebooks, which name the package, be sent to other processes: by its name."""
        return import_module, (self.__name__,)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


sys.modules[__name__].__class__ = _Package
