"""First fit: exactly the answers of upstream's allocator, demand after demand, node after node."""

from __future__ import annotations

from dralloc.solve.first_fit.batch import completed, first_fit

__all__ = ["completed", "first_fit"]
