"""The reference of the feature gates, from the table that the commands use."""

from __future__ import annotations

from tables import table

from dralloc.features import Features

__all__ = ["page"]

_VERSIONS = ("1.34", "1.35", "1.36", "1.37")
_INTRO = """# Feature gates

All are on unless you say otherwise. `--kubernetes 1.34` switches them as that version does by default, and
`--feature NAME=true|false` switches one; in Python pass a `dralloc.Features`. Names may carry upstream's prefix `DRA`.
What each gate means: [`dralloc.Features`](python.md#dralloc.Features).

"""


def page() -> str:
    """The page."""
    by_version = [Features.of_kubernetes(version) for version in _VERSIONS]
    rows = (
        [f"`{name}`", *("on" if getattr(features, name) else "off" for features in by_version)]
        for name in Features.names()
    )
    return _INTRO + table(["gate", *_VERSIONS], rows)
