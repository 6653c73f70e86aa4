"""The import picture as a design structure matrix: ``python docs/imports.py FILE`` draws it.

A row for each room, in the order of the import contracts; a cell says how many modules of the row's room import the
column's. What is right of the diagonal follows the order; an import against it stands left of it, in red.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

import grimp

__all__ = ["matrix", "rooms"]

_CELL: Final = 15
_WIDTH: Final = 130
_NAME: Final = {"text-anchor": "end", "font-size": "9.5"}
_COUNT: Final = {"text-anchor": "middle", "font-size": "8", "fill": "#fff"}

Uses = Mapping[tuple[str, str], int]


def rooms() -> tuple[list[str], Uses]:
    """The rooms as the first contract has them, users first; how many modules of one import something of another."""
    contracts = tomllib.loads(
        Path("pyproject.toml").read_text(encoding="utf-8")
    )["tool"]["importlinter"]["contracts"]
    layers = next(
        contract["layers"]
        for contract in contracts
        if contract.get("containers") == ["dralloc"]
    )
    order = [
        f"dralloc.{room}" for layer in layers for room in layer.split(" | ")
    ]
    graph = grimp.build_graph("dralloc", cache_dir=None)
    importing = {
        (module, room)
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
        if (room := _room(imported)) != _room(module)
    }
    # The package itself only names what it offers.
    return order, Counter(
        (_room(module), room)
        for module, room in importing
        if {_room(module), room} <= set(order)
    )


def _room(module: str) -> str:
    return ".".join(module.split(".")[:2])


def matrix(order: Sequence[str], uses: Uses) -> str:
    """The matrix as SVG. Imports against the order are marked."""
    side = len(order) * _CELL
    picture = ET.Element(
        "svg",
        viewBox=f"0 0 {_WIDTH + side + 5} {side + 25}",
        xmlns="http://www.w3.org/2000/svg",
    )
    picture.set("font-family", "sans-serif")
    upward = sum(order.index(user) > order.index(used) for user, used in uses)
    says = f"{len(order)} rooms, {len(uses)} pairs with imports, {upward} of them upwards"
    ET.SubElement(picture, "title").text = says
    _text(picture, _WIDTH, side + 20, says, **{"font-size": "11"})
    for row, user in enumerate(order):
        y = row * _CELL
        _text(
            picture, _WIDTH - 6, y + 11, user.removeprefix("dralloc."), **_NAME
        )
        _square(picture, _WIDTH + y, y, "#8888", "")
        for column, used in enumerate(order):
            if count := uses.get((user, used), 0):
                x = _WIDTH + column * _CELL
                _square(
                    picture,
                    x,
                    y,
                    "#3f51b5" if column > row else "#d32f2f",
                    f"{user} imports {used}: {count}",
                )
                _text(picture, x + _CELL / 2, y + 11, str(count), **_COUNT)
    return ET.tostring(picture, encoding="unicode")


def _square(
    picture: ET.Element, x: float, y: float, fill: str, title: str
) -> None:
    size = str(_CELL - 1)
    square = ET.SubElement(
        picture, "rect", x=str(x), y=str(y), width=size, height=size, fill=fill
    )
    if title:
        ET.SubElement(square, "title").text = title


def _text(
    picture: ET.Element, x: float, y: float, text: str, **style: str
) -> None:
    ET.SubElement(
        picture, "text", {"x": str(x), "y": str(y), "fill": "#888", **style}
    ).text = text


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(matrix(*rooms()) + "\n", encoding="utf-8")
