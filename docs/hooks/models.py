"""The READMEs of models and benchmarks as pages."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Final

from tables import table

__all__ = ["benchmarks", "index", "pages"]

ROOT: Final = Path(__file__).resolve().parents[2]
_LINK: Final = re.compile(r"\]\((?!https?:|#)([^)#]+)(#[^)]*)?\)")
_INDEX: Final = """# Models

Ready-made clusters to load and to learn from. Each is a directory below `models/` of the repository: the objects as YAML,
`expected.yaml` with the outcome that the tests hold it to, and for some `study.ipynb` ([notebooks](../how-to/notebooks.md)).

"""
_NO_BENCHMARKS: Final = """# Benchmarks

`python -m benchmarks` runs named workloads at several sizes and prints what each phase took.
`python -m benchmarks --help` lists them.
"""


@lru_cache
def pages() -> dict[str, str]:
    """Each model's README by its place in the site."""
    found = sorted((ROOT / "models").glob("*/README.md"))
    return {f"models/{readme.parent.name}.md": _linked(readme) for readme in found}


def index() -> str:
    """The list of models."""
    rows = ((f"[{Path(name).stem}]({Path(name).name})", text.splitlines()[0][2:]) for name, text in pages().items())
    return _INDEX + table(["model", "what it is"], rows)


def benchmarks() -> str:
    """What was measured, where that is written down."""
    readme = ROOT / "benchmarks" / "README.md"
    return _linked(readme) if readme.exists() else _NO_BENCHMARKS


def _linked(readme: Path) -> str:
    """The text with links to other models as links to their pages; other files of the repository are only named."""

    def replaced(found: re.Match[str]) -> str:
        target = (readme.parent / found[1]).resolve()
        model = target.parent if target.name == "README.md" else target
        inside = model.parent == ROOT / "models" and (model / "README.md").exists()
        if not inside:
            return "]"
        here = "models/" if readme.parent.parent.name != "models" else ""
        return f"]({here}{model.name}.md{found[2] or ''})"

    text = _LINK.sub(replaced, readme.read_text())
    return re.sub(r"\[([^\]]+)\](?![(\[])", lambda found: found[1] if "\n" not in found[1] else found[0], text)
