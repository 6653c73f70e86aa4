"""The list of notebooks, with what each says about itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

__all__ = ["page"]

ROOT: Final = Path(__file__).resolve().parents[2]
_INTRO: Final = """# Notebooks

Studies beside the models that they are about, to read in this order. They need the extra `notebook`:

```sh
pip install -e '.[notebook]'
jupyter lab models
```

Outputs are not kept in the repository. This runs all of them in full and writes the results beside them:

```sh
python -m models.notebooks
```

`DRALLOC_NOTEBOOK_SIZE=small` makes them quick; the tests run them so.
"""


def page() -> str:
    """The page: the first cell of each notebook is its introduction."""
    found = {path: json.loads(path.read_text()) for path in (ROOT / "models").glob("*/study.ipynb")}
    parts = [_section(path, book) for path, book in sorted(found.items(), key=lambda item: _place(item[1]))]
    return "\n".join([_INTRO, *parts])


def _place(book: dict[str, object]) -> int:
    metadata = book["metadata"]
    assert isinstance(metadata, dict)
    return int(metadata["dralloc"]["chapter"])


def _section(path: Path, book: dict[str, object]) -> str:
    cells = book["cells"]
    assert isinstance(cells, list)
    title, _, rest = "".join(cells[0]["source"]).partition("\n")
    return f"#{title}\n\n`{path.relative_to(ROOT)}`\n{rest}\n"
