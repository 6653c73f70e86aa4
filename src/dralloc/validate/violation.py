"""What validation finds: violations of rules, at levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dralloc.errors import Finding, Level

__all__ = ["Violation"]


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that does not hold at one place.

    Parameters
    ----------
    level
        How bad it is.
    rule
        The id of the rule, e.g. ``slice-device-limit``.
    finding
        Where it was found and what is wrong there, as for findings of the loader.
    """

    level: Level
    rule: str
    finding: Finding

    def __str__(self) -> str:
        return f"{self.level}: {self.finding} ({self.rule})"

    @property
    def source(self) -> str:
        """Where the object was read."""
        return self.finding.source

    @property
    def subject(self) -> str:
        """Kind and name of the object."""
        return self.finding.subject

    @property
    def path(self) -> str:
        """The field, as the API server writes it; empty for the object as a whole."""
        return self.finding.path

    @property
    def message(self) -> str:
        """What is wrong."""
        return self.finding.rule

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "level": str(self.level),
            "rule": self.rule,
            "source": self.source,
            "object": self.subject,
            "path": self.path,
            "message": self.message,
        }
