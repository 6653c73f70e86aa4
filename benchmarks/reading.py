"""How long reading takes, beside the time in which orjson parses the same bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, TypeVar

import orjson

from benchmarks.measure import match, peak_rss_mib
from benchmarks.registry import Workload
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.load import load
from dralloc.objects.save import save

__all__ = ["Format", "ReadingFigures", "measure_reading"]
T = TypeVar("T")


class Format(StrEnum):
    """The formats, as suffixes of files."""

    JSON = "json"
    PACKED = "json.gz"
    YAML = "yaml"


@dataclass(frozen=True)
class ReadingFigures:
    """One run: seconds of the processor, which do not depend on what else the machine does.

    Parameters
    ----------
    mib
        How long the text is in JSON.
    whole
        ``orjson.loads`` over the text in JSON, which needs ten times its room.
    items
        ``orjson.loads`` over one object after the other, forgetting each.
    load
        From the file to the cluster.
    compile
        To the problem with everything that binds pods to nodes, and every selector looked at.
    """

    workload: str
    size: int
    format: Format
    mib: float
    whole: float
    items: float
    load: float
    compile: float
    peak_rss_mib: float

    @property
    def phases(self) -> dict[str, float]:
        """What is measured."""
        return {"load": self.load, "compile": self.compile, **self.parsing}

    @property
    def parsing(self) -> dict[str, float]:
        """What it is compared with."""
        return {"orjson, items": self.items, "orjson, whole": self.whole}

    def to_dict(self) -> dict[str, Any]:
        """The run as plain data."""
        return asdict(self)


@without_garbage_collection()
def measure_reading(
    workload: Workload, size: int, seed: int, format: Format
) -> ReadingFigures:
    """Write a workload to one file, read it, and parse the same objects in JSON."""
    with TemporaryDirectory() as room:
        path, plain = (
            Path(room) / f"objects.{format}",
            Path(room) / "plain.json",
        )
        for file in (path, plain):
            save(workload.objects(size, seed), file)
        seconds = {}
        cluster, seconds["load"] = timed(lambda: load(path))
        _, seconds["compile"] = timed(
            lambda: match(
                compile_cluster(cluster, **workload.words(size)).whole
            )
        )
        peak, text = peak_rss_mib(), plain.read_bytes()
    _, seconds["items"] = timed(lambda: parse_items(text))
    _, seconds["whole"] = timed(lambda: orjson.loads(text))
    return ReadingFigures(
        workload.name,
        size,
        format,
        len(text) / 2**20,
        peak_rss_mib=peak,
        **seconds,
    )


def parse_items(text: bytes) -> None:
    """Parse the items of a list, of which each has its line."""
    for line in text.split(b"\n")[1:-2]:
        orjson.loads(line.removesuffix(b","))


def timed(work: Callable[[], T]) -> tuple[T, float]:
    """What something gives, and the seconds of the processor that it takes."""
    started = process_time()
    return work(), process_time() - started
