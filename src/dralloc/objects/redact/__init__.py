"""Replaces the names in a cluster's objects, so that a snapshot can be shared and still gives the same answer.

`plan_redaction` collects the names, `Redaction.apply` replaces them, one object at a time.
"""

from __future__ import annotations

from dralloc.objects.redact.redaction import Redaction, plan_redaction

__all__ = ["Redaction", "plan_redaction"]
