"""The pictures in the documentation.

``python -m docs.pictures report`` takes those of the report with Chromium. Each carries what the report says in its
metadata. A test compares that with what the report says now, so that a picture of an old answer is found out without a
browser.

``python -m docs.pictures search`` searches for the optimum of a mixed cluster for 90 seconds, by two processes, and
draws how value and bound come closer. No test compares that: it depends on the machine.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from matplotlib import pyplot as plt
from PIL import Image
from PIL.PngImagePlugin import PngInfo

import dralloc
from benchmarks.workloads.mixed import mixed
from dralloc import plot
from dralloc.objects.report import as_text
from dralloc.show.page.render import Circumstances, render
from dralloc.solve.optimum import Progress

__all__ = ["BROWSER", "DESCRIPTION", "SCHEMES", "described", "take"]

ROOT: Final = Path(__file__).resolve().parents[1]
MODEL: Final = "models/h100-mig"
IMAGES: Final = ROOT / "docs" / "images"
DESCRIPTION: Final = "Description"
"""The keyword of the text in a picture, one of those that the PNG specification names."""

SCHEMES: Final = {"light": 1, "dark": 0}
"""Chromium's numbers of colour schemes."""

BROWSER: Final = (
    shutil.which("chromium")
    or shutil.which("chromium-browser")
    or shutil.which("google-chrome")
)
_QUIET: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
    "--no-first-run",
    "--window-size=1280,2800",
)


def described(comparison: dralloc.Comparison) -> str:
    """What the report says: its headline and its first table. Where an optimum is not the only one, that may differ."""
    return as_text(comparison.parts()[:2])


def take(comparison: dralloc.Comparison, directory: Path) -> list[Path]:
    """Write the report's pictures, one for each colour scheme, to a directory."""
    if BROWSER is None:
        raise SystemExit("there is no Chromium to take pictures with")
    taken = []
    for scheme, number in SCHEMES.items():
        picture = directory / f"h100-mig-report-{scheme}.png"
        with TemporaryDirectory() as place:
            page, shot = Path(place) / "page.html", Path(place) / "page.png"
            page.write_text(
                render(comparison, Circumstances(MODEL, timed=False))
            )
            colours = f"--blink-settings=preferredColorScheme={number}"
            where = (
                f"--user-data-dir={place}/profile",
                f"--screenshot={shot}",
                page.as_uri(),
            )
            subprocess.run(
                [BROWSER, *_QUIET, colours, *where],
                check=True,
                capture_output=True,
                timeout=120,
            )
            about = PngInfo()
            about.add_text(DESCRIPTION, described(comparison))
            Image.open(shot).convert("RGB").quantize(128).save(
                picture, pnginfo=about, optimize=True
            )
        taken.append(picture)
    return taken


def search(directory: Path) -> list[Path]:
    """Draw the search for the optimum of the workload ``mixed`` with 1,000 nodes, over 90 seconds.

    Without priorities, so that one line tells of all pods.
    """
    records: list[Progress] = []
    dralloc.allocate(
        mixed(1000, seed=1, without=["priorities"]),
        time_limit=90,
        jobs=2,
        progress=records.append,
    )
    plot.progress(records, title="Pods placed, and at most").set_xlim(left=0)
    picture = directory / "mixed-search.svg"
    plt.rcParams["svg.hashsalt"] = picture.name
    plt.savefig(picture, metadata={"Date": None}, facecolor="white")
    return [picture]


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["report"]:
            taken = take(dralloc.compare(dralloc.load(ROOT / MODEL)), IMAGES)
        case ["search"]:
            taken = search(IMAGES)
        case _:
            raise SystemExit("python -m docs.pictures report|search")
    print(*taken, sep="\n", file=sys.stderr)
