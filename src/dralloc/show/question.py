"""What was asked, and which pods of the input are no part of it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dralloc.compile.compiler import CompiledCluster
from dralloc.objects.errors import Finding
from dralloc.objects.names import ClaimKey
from dralloc.objects.report import Table
from dralloc.objects.unasked import Unasked

__all__ = [
    "WHO",
    "NotAsked",
    "asked",
    "empty_remark",
    "kinds_asked",
    "unasked",
    "unasked_table",
]

WHO: Final = "pod or claim"
"""Heads columns of what is to be placed: pods, and claims that no pod uses."""

_NAMED: Final = 3


def asked(compiled: CompiledCluster) -> str:
    """How many pods and claims are to be placed: ``40 pods and 2 claims``."""
    return " and ".join(
        f"{number} {kind if number > 1 else kind[:-1]}"
        for kind, number in _counts(compiled).items()
    )


def kinds_asked(compiled: CompiledCluster) -> str:
    """What is to be placed: ``pods``, ``claims`` or both."""
    return " and ".join(_counts(compiled)) or "pods"


def empty_remark(compiled: CompiledCluster) -> Iterator[Finding]:
    """Whether there is nothing to place, and what could be placed all the same."""
    if not compiled.problem.demands:
        waiting = Counter(
            why.include for why in compiled.unasked.values() if why.include
        )
        more = "".join(
            f"; --include {what} plans for {number} more"
            for what, number in waiting.items()
        )
        yield Finding(
            "",
            "",
            "",
            f"there is nothing to place: no pod and no claim is pending{more}",
        )


def _counts(compiled: CompiledCluster) -> dict[str, int]:
    demands = compiled.problem.demands
    claims = sum(map(compiled.is_claim, demands))
    return {
        kind: number
        for kind, number in (("pods", len(demands) - claims), ("claims", claims))
        if number
    }


@dataclass(frozen=True, slots=True)
class NotAsked:
    """Pods of the input that are not to be placed; `names` of them only if the reason leaves something to tell."""

    reason: Unasked
    pods: int
    names: tuple[ClaimKey, ...] = ()

    @property
    def row(self) -> tuple[str, str, str]:
        """The same as a row of a table."""
        hint = (
            f" (--include {self.reason.include} plans for them)"
            if self.reason.include
            else ""
        )
        more = (
            [f"and {len(self.names) - _NAMED} more"] if len(self.names) > _NAMED else []
        )
        return (
            f"{self.reason}{hint}",
            str(self.pods),
            ", ".join([*map(str, self.names[:_NAMED]), *more]),
        )


def unasked(compiled: CompiledCluster) -> Iterator[NotAsked]:
    """The pods that are not to be placed, by reason."""
    found: dict[Unasked, list[ClaimKey]] = defaultdict(list)
    for key, why in compiled.unasked.items():
        found[why].append(key)
    for why in Unasked:
        if why in found:
            yield NotAsked(
                why, len(found[why]), tuple(found[why]) if why.telling else ()
            )


def unasked_table(compiled: CompiledCluster) -> Table:
    """The same as a table."""
    return Table(
        "Not asked about",
        ("why", ">pods", "which"),
        [one.row for one in unasked(compiled)],
    )
