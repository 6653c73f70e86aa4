"""The command line."""

from __future__ import annotations

from dralloc.cli.main import app, kubectl, main

__all__ = ["app", "kubectl", "main"]
