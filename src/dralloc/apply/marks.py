"""By what dralloc's own marks on a cluster are known."""

from __future__ import annotations

from typing import Final

__all__ = ["FENCE", "FINALIZER", "GATE", "RUN"]

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps an allocated claim from being deleted before it is deallocated (``Finalizer`` of resource.k8s.io)."""
GATE: Final = "dralloc.dev/batch"
"""The scheduling gate of pods that wait for dralloc."""
FENCE: Final = "dralloc.dev/fence"
"""Label of the DeviceTaintRules and cordoned nodes of a fence, with the run that it belongs to; key of its taint."""
RUN: Final = "dralloc.dev/run"
"""Annotation of a claim with the run that allocated it."""
