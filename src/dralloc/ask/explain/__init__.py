"""Why a claim is pending, what it conflicts with, and which change would admit it.

- `dralloc.ask.explain.nodes`: first fit's answer for every node, with the first reason that rules it out;
- `dralloc.ask.explain.oracle`: a minimal set of rules that cannot hold together;
- `dralloc.ask.explain.suggestions`: changes that would admit the demand, each tried out;
- `dralloc.ask.explain.explanation`: what the optimum would have to give up for it.
"""

from __future__ import annotations

from dralloc.ask.explain.explainer import PendingReport, explain
from dralloc.ask.explain.explanation import Explanation

__all__ = ["Explanation", "PendingReport", "explain"]
