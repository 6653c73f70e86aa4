"""Which objects use fields that some mode does not model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from dralloc.compile.modelled.row import Fate, FieldRow
from dralloc.compile.modelled.table import TABLE
from dralloc.objects.api import ApiObject
from dralloc.objects.api.device_template import common
from dralloc.objects.choices import Mode

__all__ = ["FieldUse", "used"]

_IGNORED: Final = tuple(row for row in TABLE if Fate.IGNORED in row.fates.values())


@dataclass(frozen=True, slots=True)
class FieldUse:
    """A field that some mode ignores and that objects use.

    Parameters
    ----------
    about
        The first of these objects.
    path
        Where in it the field is.
    objects
        How many they are.
    """

    row: FieldRow
    about: ApiObject
    path: str
    objects: int

    @property
    def modes(self) -> frozenset[Mode]:
        """Those that ignore the field."""
        return frozenset(mode for mode in Mode if self.row.fates[mode] is Fate.IGNORED)

    @property
    def rule(self) -> str:
        """What that means, in words."""
        where = (
            ""
            if len(self.modes) == len(Mode)
            else f" in mode {' and '.join(sorted(self.modes))}"
        )
        more = f" (here and in {self.objects - 1} more)" if self.objects > 1 else ""
        return f"is not modelled{where}: {self.row.rule}{more}"


def used(
    objects: Mapping[str, Sequence[ApiObject]], running: Sequence[ApiObject] = ()
) -> Iterator[FieldUse]:
    """The fields that some mode ignores, as far as objects use them.

    Parameters
    ----------
    objects
        What could bind what is to be placed, by kind; of pods those that are to be placed.
    running
        Pods that have a node.
    """
    parts_of = {kind: _Parts(these) for kind, these in objects.items()}
    parts_of_running = _Parts(running)
    for row in _IGNORED:
        parts = (
            parts_of_running if row.of_running else parts_of.get(row.kind, _Parts(()))
        )
        if not parts.at(row.steps):
            continue
        these = parts.at(())
        found = [(one, path) for one in these if (path := _place(one, row)) is not None]
        if found:
            yield FieldUse(row, *found[0], len(found))


class _Parts:
    """What stands in fields of objects: for all at once, as a cluster can have a million devices."""

    def __init__(self, objects: Sequence[Any]) -> None:
        self._known: dict[tuple[str, ...], Sequence[Any]] = {(): objects}

    def at(self, steps: tuple[str, ...]) -> Sequence[Any]:
        """What the objects have in a field, each once; items of lists one by one."""
        if steps not in self._known:
            found = [
                part
                for one in self.at(steps[:-1])
                if (part := getattr(one, steps[-1], None)) is not None
            ]
            parts = list({id(common(part)): part for part in found}.values())
            self._known[steps] = (
                list(chain.from_iterable(parts))
                if parts and isinstance(parts[0], tuple)
                else parts
            )
        return self._known[steps]


def _place(one: ApiObject, row: FieldRow) -> str | None:
    names = zip(row.path.split("."), row.steps, strict=True)
    found = _values(one, tuple(names), "")
    return next((path for path, value in found if row.says(one, value)), None)


def _values(
    value: Any, steps: tuple[tuple[str, str], ...], path: str
) -> Iterator[tuple[str, Any]]:
    """What stands in a field, with its place, for each item of the lists on the way."""
    if isinstance(value, tuple):
        for number, item in enumerate(value):
            yield from _values(item, steps, f"{path}[{number}]")
    elif not steps:
        yield path, value
    elif value is not None:
        (name, attribute), *rest = steps
        inner = getattr(value, attribute, None)
        yield from _values(inner, tuple(rest), f"{path}.{name}" if path else name)
