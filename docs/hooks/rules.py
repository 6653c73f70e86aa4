"""The reference of the validation rules, from the rules themselves."""

from __future__ import annotations

from collections import Counter

from tables import table

from dralloc.validate import RULES, Level

__all__ = ["page"]

_INTRO = """# Validation rules

What `dralloc validate` checks: {total} rules. The id of a rule is in every finding, also in JSON and SARIF, and never
changes. [How to use them](../how-to/validate.md).

| level | rules | meaning |
|---|---|---|
| error | {error} | the API server refuses it (Kubernetes 1.37) |
| warning | {warning} | it is accepted, and will hurt |
| info | {info} | worth knowing |
"""


def page() -> str:
    """The page."""
    counts = Counter(rule.level for rule in RULES)
    intro = _INTRO.format(total=len(RULES), **{level.value: counts[level] for level in Level})
    return "\n".join([intro, *(_section(level) for level in Level)])


def _section(level: Level) -> str:
    rows = ((f"`{rule.id}`", rule.help, rule.origin) for rule in RULES if rule.level is level)
    return f"## Level {level.value}\n\n" + table(["rule", "says", "source"], rows)
