"""Why a claim is pending, what it conflicts with, and which change would admit it.

- `dralloc.explain.nodes`: first fit's answer for every node, with the first reason that rules it out;
- `dralloc.explain.conflict`: a minimal set of rules that cannot hold together;
- `dralloc.explain.suggestions`: changes that would admit the demand, each tried out;
- `dralloc.explain.competition`: what the optimum would have to give up for it.
"""

from __future__ import annotations

from dralloc.explain.explainer import explain
from dralloc.explain.explanation import Explanation

__all__ = ["Explanation", "explain"]
