"""Relaxations: bounds for any problem, by leaving out what is hard about it."""

from __future__ import annotations

from dralloc.solvers.cpsat.relax.ladder import Bound, relaxed_bounds

__all__ = ["Bound", "relaxed_bounds"]
