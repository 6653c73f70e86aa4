"""Two checkouts beside each other: the same benchmark in turns, in processor seconds of its whole process.

A machine that others use is fast at one moment and slow at the next. The runs of a pair follow each other, so both
meet about the same machine, and the median of the pairs' ratios says more than seconds of either side.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

from dralloc.objects.errors import DrallocError

__all__ = ["PairedRuns", "measure_pairs"]

HERE = Path(__file__).parents[1]

_FIRST_COMMAND: Final = "run cluster-plain --size 2"
"""Goes before all that is measured, so that modules are compiled: it takes longer than many of the benchmarks."""


@dataclass(frozen=True)
class PairedRuns:
    """The runs of one benchmark: pairs of processor seconds, in the other checkout and in this one."""

    command: str
    pairs: tuple[tuple[float, float], ...]

    @property
    def before(self) -> float:
        """The median of the seconds in the other checkout."""
        return median(before for before, _ in self.pairs)

    @property
    def now(self) -> float:
        """The median of the seconds in this checkout."""
        return median(now for _, now in self.pairs)

    @property
    def ratio(self) -> float:
        """The median of the pairs' ratios: above 1 if this checkout is slower."""
        return median(now / before for before, now in self.pairs)

    def to_dict(self) -> dict[str, Any]:
        """The runs as plain data."""
        return {**asdict(self), "ratio": self.ratio}


def measure_pairs(other: Path, command: str, pairs: int) -> PairedRuns:
    """Run a benchmark in turns in another checkout and in this one.

    Parameters
    ----------
    command
        The arguments of ``python -m benchmarks``, the same for both.

    Raises
    ------
    DrallocError
        A run fails.
    """
    with TemporaryDirectory() as bytecode:
        for checkout in (other, HERE):
            _run(checkout, _FIRST_COMMAND, bytecode)
        seconds = [
            (
                _processor_seconds(other, command, bytecode),
                _processor_seconds(HERE, command, bytecode),
            )
            for _ in range(pairs)
        ]
    return PairedRuns(command, tuple(seconds))


def _run(
    checkout: Path, command: str, bytecode: str
) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout / "src"),
        "PYTHONPYCACHEPREFIX": bytecode,
        # Hashes of texts are the same in both, and so are the orders that follow from them.
        "PYTHONHASHSEED": "0",
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *shlex.split(command)],
        cwd=checkout,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def _processor_seconds(checkout: Path, command: str, bytecode: str) -> float:
    before = getrusage(RUSAGE_CHILDREN)
    run = _run(checkout, command, bytecode)
    if run.returncode:
        raise DrallocError(
            f"{checkout}: python -m benchmarks {command}: exit code {run.returncode}: {run.stderr[-500:]}"
        )
    after = getrusage(RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (
        after.ru_stime - before.ru_stime
    )
