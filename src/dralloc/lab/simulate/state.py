"""Finished seeds in files, so that a simulation that was killed goes on where it was."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError

from dralloc.lab.simulate.answer import SimulatedRun
from dralloc.objects.errors import DrallocError
from dralloc.objects.save import write_text

__all__ = ["SeedFiles"]


class SeedFiles:
    """The files of a simulation, one for each seed that is finished.

    Parameters
    ----------
    folder
        Where they are; made if it is not there.
    identity
        Everything that a run depends on beside its seed. A file that was written for anything else is an error, so that
        nobody takes figures of one simulation for those of another one.

    Raises
    ------
    DrallocError
        The folder cannot be made.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self._folder = folder
        described = orjson.dumps(identity, option=orjson.OPT_SORT_KEYS)
        self._digest = sha256(described).hexdigest()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DrallocError(
                f"{folder}: cannot be made: {error.strerror or error}"
            ) from None

    def run(self, seed: int) -> SimulatedRun | None:
        """Return the run of a seed that is finished; None if it is not.

        Raises
        ------
        DrallocError
            The file cannot be read, or is about another simulation.
        """
        path = self._path(seed)
        if not path.exists():
            return None
        try:
            stored = orjson.loads(path.read_bytes())
            digest, run = stored["simulation"], stored["run"]
            if digest == self._digest:
                return self._runs.validate_python(run)
        except (
            OSError,
            orjson.JSONDecodeError,
            ValidationError,
            KeyError,
            TypeError,
        ):
            raise DrallocError(f"{path}: is no finished seed") from None
        raise DrallocError(
            f"{path}: is about another simulation: another cluster, policy or trace, or other choices"
        )

    def write(self, run: SimulatedRun) -> None:
        """Keep a finished seed.

        Raises
        ------
        DrallocError
            The file cannot be written.
        """
        stored = {
            "simulation": self._digest,
            "run": self._runs.dump_python(run, mode="json"),
        }
        write_text(orjson.dumps(stored).decode(), self._path(run.seed))

    def _path(self, seed: int) -> Path:
        return self._folder / f"seed-{seed}.json"

    @cached_property
    def _runs(self) -> TypeAdapter[SimulatedRun]:
        return TypeAdapter(SimulatedRun)
