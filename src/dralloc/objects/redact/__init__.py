"""Replaces the names in a cluster's objects, so that a snapshot can be shared and still gives the same answer.

`plan_redaction` collects the names, `Redaction.apply` replaces them, one object at a time. Each in a module of its own:
where names stand inside of longer texts, in CEL expressions and in identifiers; which name is replaced with what; and
the last look at what comes out.
"""

from __future__ import annotations

from dralloc.objects.redact.redaction import Redaction, plan_redaction

__all__ = [
    "Redaction",
    "plan_redaction",
]
