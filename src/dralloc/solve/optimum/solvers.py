"""OR-Tools, which is imported when the first model is built.

It brings pandas, and takes longer to import than most questions take to be answered that need no model: first fit,
kube-scheduler, what fits where, validation. They can be asked where it is not installed, too.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from dralloc.objects.errors import DrallocError
from dralloc.objects.limits import without_garbage_collection

__all__ = ["cp_model", "linear", "literals", "model_builder"]


class _Deferred(ModuleType):
    """Stands for a module until something of it is used."""

    def __getattr__(self, name: str) -> Any:
        try:
            # It makes many objects that stay, and more is in memory by now than what they could refer to.
            with without_garbage_collection():
                module = import_module(self.__name__)
        except ModuleNotFoundError as error:
            raise DrallocError(
                f"this question needs OR-Tools: pip install ortools ({error})"
            ) from None
        value = getattr(module, name)
        # Asked for again, it is found here.
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    from ortools.linear_solver.python import model_builder
    from ortools.linear_solver.python import model_builder_helper as linear
    from ortools.sat.python import cp_model
    from ortools.sat.python import cp_model_helper as literals
else:
    cp_model = _Deferred("ortools.sat.python.cp_model")
    linear = _Deferred("ortools.linear_solver.python.model_builder_helper")
    literals = _Deferred("ortools.sat.python.cp_model_helper")
    model_builder = _Deferred("ortools.linear_solver.python.model_builder")
