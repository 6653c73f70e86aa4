"""``python -m benchmarks``."""

from __future__ import annotations

from benchmarks.cli import app

app()
