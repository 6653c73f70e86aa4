"""What MkDocs does with the pages: some are made from the code, formulas become MathML."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import commands
import gates
import models
import notebooks
import policies
import rules
from formulas import to_mathml
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).resolve().parents[2]

PAGES: Final[dict[str, Callable[[], str]]] = {
    "reference/cli.md": commands.page,
    "reference/rules.md": rules.page,
    "reference/features.md": gates.page,
    "how-to/notebooks.md": notebooks.page,
    "how-to/policies.md": policies.page,
    "models/index.md": models.index,
    "changelog.md": (ROOT / "CHANGELOG.md").read_text,
    "benchmarks.md": models.benchmarks,
}
"""Pages that are written at build time, by their place in the site."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Name every model in the navigation."""
    nav: list[Any] = config.nav or []
    section = next(entry["Models"] for entry in nav if isinstance(entry, dict) and "Models" in entry)
    section += [name for name in models.pages() if name not in section]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are written at build time."""
    for name, page in PAGES.items():
        files.append(File.generated(config, name, content=page()))
    for name, text in models.pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_content(html: str, **_: object) -> str:
    """Turn formulas into MathML, which browsers draw by themselves."""
    return to_mathml(html)
