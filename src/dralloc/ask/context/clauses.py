"""Selectors taken apart: what a request or class demands of a device, clause by clause."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from dralloc.compile.match import Criteria
from kubecel import CelError, compile_selector

__all__ = ["Clause", "clauses_of", "split"]


@dataclass(frozen=True, slots=True)
class Clause:
    """A selector, or one operand of its outermost ``&&``.

    Parameters
    ----------
    of_class
        Name of the class whose selector it is; empty if it is the request's own.
    selector
        The selector's number.
    text
        The CEL expression.
    whole
        The selector as it is written, of which it is a part if it is not all of it.
    """

    of_class: str
    selector: int
    text: str
    whole: str

    def __str__(self) -> str:
        owner = f"selector of class {self.of_class}:" if self.of_class else "selector"
        return (
            f"{owner} {self.whole}"
            if self.text == self.whole
            else f"{self.text} (part of {owner} {self.whole})"
        )


def clauses_of(criteria: Criteria) -> tuple[Clause, ...]:
    """The clauses of class and request, in the order in which they are looked at."""
    found: list[Clause] = []
    if criteria.device_class is not None:
        name = criteria.device_class.metadata.name
        for number, selector in enumerate(criteria.device_class.spec.selectors):
            if selector.cel is not None:
                found += _clauses(name, number, selector.cel.expression)
    for number, expression in enumerate(criteria.selectors):
        found += _clauses("", number, expression)
    return tuple(found)


def _clauses(of_class: str, number: int, expression: str) -> Iterator[Clause]:
    return (Clause(of_class, number, part, expression) for part in split(expression))


_TOKENS: Final = re.compile(
    r"""//[^\n]*|[rR]?[bB]?"{3}[\s\S]*?"{3}|[rR]?[bB]?'{3}[\s\S]*?'{3}|[rR][bB]?"[^"\n]*"|[rR][bB]?'[^'\n]*'"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|&&|\|\||\.\?|[?()\[\]{}]"""
)


@lru_cache(maxsize=1024)
def split(expression: str) -> tuple[str, ...]:
    """The operands of the outermost ``&&`` of an expression; the expression itself if it is no conjunction."""
    parts, depth, start = [], 0, 0
    for token in _TOKENS.finditer(expression):
        text = token[0]
        if text in ("(", "[", "{"):
            depth += 1
        elif text in (")", "]", "}"):
            depth -= 1
        elif depth == 0 and text in ("||", "?"):
            return (expression,)
        elif depth == 0 and text == "&&":
            parts.append(expression[start : token.start()].strip())
            start = token.end()
    parts.append(expression[start:].strip())
    return (
        tuple(parts) if len(parts) > 1 and all(map(_compiles, parts)) else (expression,)
    )


def _compiles(expression: str) -> bool:
    try:
        compile_selector(expression)
    except CelError:
        return False
    return True
