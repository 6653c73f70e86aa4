"""First fit: exactly the answers of upstream's allocator, demand after demand, node after node."""

from __future__ import annotations

from dralloc.solve.first_fit.batch import first_fit
from dralloc.solve.first_fit.completion import completed

__all__ = ["completed", "first_fit"]
