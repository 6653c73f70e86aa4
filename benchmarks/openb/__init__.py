"""The openb benchmark: a real trace of GPU pods, policies and the optimum with its bound, beside published figures."""

from __future__ import annotations

__all__: list[str] = []
