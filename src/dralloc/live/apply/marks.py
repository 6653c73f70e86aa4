"""The names of dralloc's marks on a cluster: its finalizer, gate, taint, label and annotations."""

from __future__ import annotations

from typing import Final

__all__ = ["FENCE", "FINALIZER", "GATE", "RUN", "TOKEN"]

FINALIZER: Final = "resource.kubernetes.io/delete-protection"
"""Keeps an allocated claim from being deleted before it is deallocated (``Finalizer`` of resource.k8s.io)."""
GATE: Final = "dralloc.dev/batch"
"""The scheduling gate of pods that wait for dralloc."""
FENCE: Final = "dralloc.dev/fence"
"""Key of the taint of a fence; label of the DeviceTaintRules among them, with the run that they belong to."""
RUN: Final = "dralloc.dev/run"
"""Annotation of a claim with the run that allocated it, or adopted it for a pod that it releases."""
TOKEN: Final = "dralloc.dev/token"
"""Annotation of a claim with the number of the leader that has marked it, so that earlier ones are refused."""
