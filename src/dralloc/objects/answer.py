"""What every answer can do: show itself as tables, as text, in a notebook."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar, Final

from dralloc.objects.brief import shortened
from dralloc.objects.notebook import cell_of
from dralloc.objects.report import Part, Table, as_text
from dralloc.objects.schema import Document

__all__ = ["Answer", "Documented"]

_REPR: Final = 300


class Answer(ABC):
    """Something that tells itself in a `headline` and in `parts`; everything else follows from these.

    ``print(answer)`` is a readable report in full, ``repr(answer)`` one line. A notebook shows tables, bounded in rows,
    and pictures if matplotlib is installed.
    """

    @property
    @abstractmethod
    def headline(self) -> str:
        """The answer in one line."""

    @abstractmethod
    def parts(self) -> list[Part]:
        """The answer as tables and lines."""

    def names(self) -> Iterable[str]:
        """What it is about, by name: the first column of its first table, each name once."""
        tables = (part for part in self.parts() if isinstance(part, Table))
        first = next((table for table in tables if table.rows), None)
        cells = (row[0] for row in first.rows) if first else ()
        return dict.fromkeys(cell for cell in cells if cell)

    def __str__(self) -> str:
        return as_text(self.parts())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {shortened(self.headline, _REPR)}>"

    def _repr_html_(self) -> str:
        return cell_of(self)


class Documented(Answer):
    """An answer that has a form in JSON, too: its `document`, whose JSON Schema ``dralloc schema`` prints."""

    document: ClassVar[type[Document]]

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data, ready for JSON."""
        return self.document.of(self).to_dict()
