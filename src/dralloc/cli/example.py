"""``dralloc example``: clusters to try things with, as the documentation names them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from dralloc.cli.console import Session
from dralloc.objects.errors import DrallocError
from dralloc.objects.report import Table

__all__ = ["example_command"]

_PACKAGE: Final = Path(__file__).parents[1]
_CHECKOUT: Final = _PACKAGE.parents[1] / "models"
_EXAMPLES: Final = (
    "fair-share",
    "first-available",
    "gang",
    "gpu-nic",
    "h100-mig",
    "rails",
)


def example_command(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Where to write them; created if it does not exist.",
        ),
    ],
    *,
    session: Session,
) -> None:
    """Write the clusters of the documentation to a directory, to try commands with."""
    from dralloc.objects.save import write_text

    packed = _PACKAGE / "examples"
    source = packed if packed.is_dir() else _CHECKOUT
    rows = []
    for name in _EXAMPLES:
        files = [
            path
            for path in sorted((source / name).glob("*.yaml"))
            if path.name != "expected.yaml"
        ]
        target = directory / name
        try:
            target.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DrallocError(
                f"{target}: cannot be made: {error.strerror or error}"
            ) from None
        for path in files:
            write_text(path.read_text(), target / path.name)
        rows.append((str(target), ", ".join(path.name for path in files)))
    session.show([Table("Written", ("directory", "files"), rows)])
    session.tell(f"try: dralloc compare {directory / 'h100-mig'}")
