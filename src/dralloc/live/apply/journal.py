"""The journal: what a run is about to do, on disk before it does it. Lines of JSON, only ever added to.

A run that ended without its last entry was killed. What it left behind on the cluster follows from the entries and from
what the API server holds now; the journal itself claims nothing about what was done.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from errno import ENOSPC
from io import FileIO
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote
from weakref import finalize

import orjson

from dralloc.live.apply.units import AdoptedClaim, WriteUnit, WrittenClaim
from dralloc.objects.errors import ApplyError
from dralloc.objects.names import ClaimKey

__all__ = ["JournalFile", "JournalStep", "WriteJournal", "default_path"]

_END: Final = b"\n"
_FIRST: Final = b'{"step":"begin"'
"""How a journal begins."""


class JournalStep(StrEnum):
    """A step that is about to be taken."""

    BEGIN = "begin"
    RESUME = "resume"
    PLAN = "plan"
    FENCE = "fence"
    FINALIZER = "finalizer"
    ALLOCATION = "allocation"
    ADOPT = "adopt"
    GIVE_BACK = "give back"
    RELEASE = "release"
    RETRACT = "retract"
    LIFT = "lift"
    END = "end"


_STEPS: Final = tuple(step.value for step in JournalStep)
Entry = Mapping[str, Any]
_TELLING: Final = (
    JournalStep.GIVE_BACK,
    JournalStep.RETRACT,
    JournalStep.LIFT,
    JournalStep.END,
)
"""What is undone, and may be undone twice: where it cannot be noted, it is done all the same."""


class WriteJournal:
    """The entries of one run, in order. Lost with the process, it is for runs that write nothing."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.is_undone = False
        """Whether its run is taken back, which happens even where it cannot be noted."""

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
        """The run that it is about; the last one that went on with it, if any did."""
        return self.runs[-1] if self.entries else ""

    @property
    def runs(self) -> list[str]:
        """The run that it is about, and those that went on with it."""
        return [str(entry["run"]) for entry in self.entries if "run" in entry]

    @property
    def unfinished(self) -> bool:
        """Whether the run did not come to its end."""
        return (
            bool(self.entries) and self.entries[-1]["step"] != JournalStep.END
        )

    @property
    def units(self) -> list[WriteUnit]:
        """The units that the last plan wants to write."""
        plans = [entry for entry in self.entries if "units" in entry]
        return (
            [WriteUnit.of(entry) for entry in plans[-1]["units"]]
            if plans
            else []
        )

    @property
    def all_units(self) -> list[WriteUnit]:
        """The units of all plans, the same one once for each plan that has it."""
        return [
            WriteUnit.of(unit)
            for entry in self.entries
            for unit in entry.get("units", ())
        ]

    @property
    def fenced(self) -> list[str]:
        """The parts of the fence that may have been taken."""
        return [
            str(part)
            for entry in self.of(JournalStep.FENCE)
            for part in entry["parts"]
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
            WrittenClaim(
                ClaimKey(*entry["claim"]), entry["uid"], entry["allocation"]
            )
            for entry in noted
        )
        return list({claim.uid: claim for claim in claims}.values())

    @property
    def adopted(self) -> Mapping[str, AdoptedClaim]:
        """The claims that may have been adopted, and were not written again after that, by UID."""
        claim_steps = (
            JournalStep.FINALIZER,
            JournalStep.ALLOCATION,
            JournalStep.ADOPT,
        )
        last_entries = {
            entry["uid"]: entry
            for entry in self.entries
            if entry["step"] in claim_steps
        }
        return {
            uid: AdoptedClaim(
                ClaimKey(*entry["claim"]), uid, entry.get("earlier", "")
            )
            for uid, entry in last_entries.items()
            if entry["step"] == JournalStep.ADOPT
        }


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
        self._let_go: Callable[[], object] = _nothing
        self.entries, self._rest = self._read()

    def _read(self) -> tuple[list[Entry], bytes]:
        """Return the entries of the file as it is now, and what is behind the last whole line."""
        try:
            text = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise ApplyError(
                f"{self.path}: {error.strerror or error}"
            ) from None
        # The last line may be cut off by what ended the run: it was not kept, so nothing was done about it.
        *lines, rest = text.split(_END)
        try:
            entries = [orjson.loads(line) for line in lines]
        except orjson.JSONDecodeError:
            entries = [None]
        # Whoever names another file by mistake keeps it: a journal is written anew.
        if not _are_of_a_journal(entries, rest):
            raise ApplyError(f"{self.path}: is no journal of dralloc")
        return entries, rest

    def add(self, step: JournalStep, **about: Any) -> None:
        """Note what comes next; the line is on the disk before this returns.

        The beginning of a run takes the place of the last run's entries. Who is killed in between leaves an empty file,
        in which nothing is lost: the last run had come to its end, and the new one has not done anything.
        """
        if step is JournalStep.BEGIN:
            self.hold()
            # Planning, and asking whether the plan is to be written, take time enough for another run to begin.
            if self.unfinished:
                raise ApplyError(
                    f"{self.path}: run {self.run} has begun meanwhile, and is unfinished; nothing is written"
                )
        super().add(step, **about)
        mode = "w" if step is JournalStep.BEGIN else "a"
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self._rest and step is not JournalStep.BEGIN:
                os.truncate(
                    self.path, self.path.stat().st_size - len(self._rest)
                )
            self._rest = b""
            line = orjson.dumps(self.entries[-1]) + _END
            with FileIO(self.path, mode) as file:
                _write_line(file, line)
        except OSError as error:
            if step not in _TELLING and not self.is_undone:
                raise ApplyError(
                    f"{self.path}: cannot be written: {error.strerror or error}"
                ) from None
        finally:
            if step is JournalStep.END:
                self.close()

    def close(self) -> None:
        """Let other processes have the journal."""
        self._let_go()

    def hold(self) -> None:
        """Keep other processes of this machine from the journal until the run ends, or this process, however it does.

        What others noted until now is read. A file that cannot be locked, as on some file systems, is held by nobody.

        Raises
        ------
        ApplyError
            Another process holds it: its run is at work.
        """
        self.close()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Only where there is none it is made: a full disk prevents no rollback.
            flags = (
                os.O_RDONLY if self.path.exists() else os.O_RDWR | os.O_CREAT
            )
            descriptor = os.open(self.path, flags, 0o666)
        except OSError as error:
            raise ApplyError(
                f"{self.path}: cannot be opened: {error.strerror or error}"
            ) from None
        self._let_go = finalize(self, os.close, descriptor)
        is_held = _is_locked_by_others(descriptor)
        self.entries, self._rest = self._read()
        if is_held:
            self.close()
            raise ApplyError(
                f"{self.path}: run {self.run} is at work: its process holds this file"
            )


def _are_of_a_journal(entries: Sequence[object], rest: bytes) -> bool:
    """Whether a file holds nothing but steps, or the beginning of the first one."""
    if entries:
        return all(
            isinstance(entry, dict) and entry.get("step") in _STEPS
            for entry in entries
        )
    # Machines that fail leave zeroes behind.
    text = b"".join(rest.rstrip(b"\0").split())
    return text.startswith(_FIRST) or _FIRST.startswith(text)


def _nothing() -> None:
    """Do nothing, in place of closing a file that was not opened."""


def _is_locked_by_others(descriptor: int) -> bool:
    """Lock a file for the time that it is open; returns whether another process has done so before."""
    if sys.platform == "win32":
        return False
    import fcntl  # noqa: PLC0415 - not everywhere

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _write_line(file: FileIO, line: bytes) -> None:
    """Add a line as a whole, or nothing: a part of it would be in the way of the next one."""
    start = file.seek(0, os.SEEK_END)
    try:
        if file.write(line) < len(line):
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            file.truncate(start)
        raise


def default_path(host: str) -> Path:
    """Return where the journal of a cluster is, by the address of its API server."""
    state = Path(
        os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    )
    # Addresses that differ have names that differ: a dot is no dash.
    name = quote(host.partition("//")[2] or host, safe="")
    return state / "dralloc" / f"{name}.journal"
