"""The journal: what a run is about to do, on disk before it does it. Lines of JSON, only ever added to.

A run that ended without its last entry was killed. What it left behind on the cluster follows from the entries and from
what the API server holds now; the journal itself claims nothing about what was done.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import orjson

from dralloc.live.apply.units import WriteUnit, WrittenClaim
from dralloc.objects.errors import ApplyError
from dralloc.objects.names import ClaimKey

__all__ = ["Entry", "JournalFile", "JournalStep", "WriteJournal", "default_path"]

_END: Final = b"\n"


class JournalStep(StrEnum):
    """What is about to be done."""

    BEGIN = "begin"
    PLAN = "plan"
    FENCE = "fence"
    FINALIZER = "finalizer"
    ALLOCATION = "allocation"
    RELEASE = "release"
    RETRACT = "retract"
    LIFT = "lift"
    END = "end"


Entry = Mapping[str, Any]
_TELLING: Final = (JournalStep.RETRACT, JournalStep.LIFT, JournalStep.END)
"""What is undone, and may be undone twice: where it cannot be noted, it is done all the same."""


class WriteJournal:
    """The entries of one run, in order. Lost with the process, it is for runs that write nothing."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def add(self, step: JournalStep, **about: Any) -> None:
        """Note what comes next; it is kept before this returns. With the beginning of a run, the last one is over."""
        if step is JournalStep.BEGIN:
            self.entries = []
        self.entries.append({"step": step.value, **about})

    def of(self, step: JournalStep) -> Iterator[Entry]:
        """The entries about one step."""
        return (entry for entry in self.entries if entry["step"] == step)

    @property
    def run(self) -> str:
        """The run that it is about."""
        return str(self.entries[0]["run"]) if self.entries else ""

    @property
    def unfinished(self) -> bool:
        """Whether the run did not come to its end."""
        return bool(self.entries) and self.entries[-1]["step"] != JournalStep.END

    @property
    def units(self) -> list[WriteUnit]:
        """What the last plan wants to write."""
        plans = [entry for entry in self.entries if "units" in entry]
        return [WriteUnit.of(entry) for entry in plans[-1]["units"]] if plans else []

    @property
    def fenced(self) -> list[str]:
        """The parts of the fence that may have been taken."""
        return [
            str(part) for entry in self.of(JournalStep.FENCE) for part in entry["parts"]
        ]

    @property
    def intended(self) -> list[WrittenClaim]:
        """The claims that may have been written, each with the last allocation that it was to get."""
        noted = (
            entry
            for entry in self.entries
            if entry["step"] in (JournalStep.FINALIZER, JournalStep.ALLOCATION)
        )
        claims = (
            WrittenClaim(ClaimKey(*entry["claim"]), entry["uid"], entry["allocation"])
            for entry in noted
        )
        return list({claim.uid: claim for claim in claims}.values())


@dataclass
class JournalFile(WriteJournal):
    """A journal in a file, which belongs to one cluster and to one run at a time.

    Raises
    ------
    ApplyError
        The file cannot be written, or holds something else.
    """

    path: Path

    def __post_init__(self) -> None:
        super().__init__()
        try:
            text = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise ApplyError(f"{self.path}: {error.strerror or error}") from None
        # The last line may be cut off by what ended the run: it was not kept, so nothing was done about it.
        *lines, self._rest = text.split(_END)
        try:
            self.entries = [orjson.loads(line) for line in lines]
        except orjson.JSONDecodeError:
            raise ApplyError(f"{self.path}: is no journal of dralloc") from None

    def add(self, step: JournalStep, **about: Any) -> None:
        """Note what comes next; the line is on the disk before this returns."""
        super().add(step, **about)
        mode = "wb" if step is JournalStep.BEGIN else "ab"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self._rest and step is not JournalStep.BEGIN:
                os.truncate(self.path, self.path.stat().st_size - len(self._rest))
                self._rest = b""
            with self.path.open(mode) as file:
                file.write(orjson.dumps(self.entries[-1]) + _END)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            if step not in _TELLING:
                raise ApplyError(
                    f"{self.path}: cannot be written: {error.strerror or error}"
                ) from None


def default_path(host: str) -> Path:
    """Where the journal of a cluster is, by the address of its API server."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    name = "".join(
        one if one.isalnum() else "-" for one in host.partition("//")[2] or host
    )
    return state / "dralloc" / f"{name}.journal"
