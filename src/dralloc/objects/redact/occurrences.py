"""Where names occur inside of longer texts: between characters that are neither letters nor digits."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Final

__all__ = ["Occurrences", "parts_of"]

_RUN: Final = re.compile(r"[^\W_]+")


class Occurrences:
    """Finds names in texts, from the left, the longest first."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names
        self._longest: dict[str, int] = {}
        """By the first run of letters and digits: of how many runs a name with this one consists at most."""
        for name in names:
            runs = _RUN.findall(name)
            if runs:
                self._longest[runs[0]] = max(
                    len(runs), self._longest.get(runs[0], 0)
                )

    def find(self, text: str) -> Iterator[slice]:
        """Yield the places of names in a text."""
        runs = [run.span() for run in _RUN.finditer(text)]
        at = 0
        while at < len(runs):
            start, end = runs[at]
            longest = self._longest.get(text[start:end], 0)
            at += 1
            for last in reversed(runs[at - 1 : at - 1 + longest]):
                if text[start : last[1]] in self._names:
                    yield slice(start, last[1])
                    at = runs.index(last) + 1
                    break

    def replaced(self, text: str, new: Callable[[str], str]) -> str:
        """Return the text with every name replaced."""
        parts, end = [], 0
        for occurrence in self.find(text):
            parts += [text[end : occurrence.start], new(text[occurrence])]
            end = occurrence.stop
        return "".join((*parts, text[end:]))


def parts_of(text: str) -> Iterator[str]:
    """Yield everything in a text that could occur in it as a name."""
    runs = [run.span() for run in _RUN.finditer(text)]
    for at, (start, _) in enumerate(runs):
        for _, end in runs[at:]:
            yield text[start:end]
