"""Which objects use fields that some mode does not model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from dralloc.compile.modelled.field_rows import Fate, FieldRow
from dralloc.compile.modelled.table import TABLE
from dralloc.objects.api import ApiObject
from dralloc.objects.api.slice_reader import common
from dralloc.objects.choices import Mode

__all__ = ["used"]

_IGNORED: Final = tuple(
    row for row in TABLE if Fate.IGNORED in row.fates.values()
)


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
        """The modes that ignore the field."""
        return frozenset(
            mode for mode in Mode if self.row.fates[mode] is Fate.IGNORED
        )

    @property
    def rule(self) -> str:
        """The meaning of that, in words."""
        where = (
            ""
            if len(self.modes) == len(Mode)
            else f" in mode {' and '.join(sorted(self.modes))}"
        )
        further = (
            f" (here and in {self.objects - 1} more)"
            if self.objects > 1
            else ""
        )
        return f"is not modelled{where}: {self.row.rule}{further}"


def used(
    objects: Mapping[str, Sequence[ApiObject]],
    running: Sequence[ApiObject] = (),
) -> Iterator[FieldUse]:
    """The fields that some mode ignores, as far as objects use them.

    Parameters
    ----------
    objects
        What could bind what is to be placed, by kind; of pods those that are to be placed.
    running
        Pods that have a node.
    """
    parts_of = {
        kind: _Parts(objects_of_kind)
        for kind, objects_of_kind in objects.items()
    }
    parts_of_running = _Parts(running)
    for row in _IGNORED:
        parts = (
            parts_of_running
            if row.of_running
            else parts_of.get(row.kind, _Parts(()))
        )
        # Nobody says anything in the field, or the field is left out: no object needs
        # to be looked at.
        if not parts.at(row.steps):
            continue
        users = []
        for api_object in parts.at(()):
            path = _place(api_object, row)
            if path is not None:
                users.append((api_object, path))
        if users:
            yield FieldUse(row, *users[0], len(users))


class _Parts:
    """The values of fields in objects, read for all at once, as a cluster can have a million devices."""

    def __init__(self, objects: Sequence[Any]) -> None:
        self._known: dict[tuple[str, ...], Sequence[Any]] = {(): objects}

    def at(self, steps: tuple[str, ...]) -> Sequence[Any]:
        """Return the distinct values that the objects have in a field; items of lists one by one."""
        if steps not in self._known:
            # By identity, as slices that are made from one template share their lists of devices.
            distinct = {}
            for owner in self.at(steps[:-1]):
                part = getattr(owner, steps[-1], None)
                if part is not None:
                    distinct[id(common(part))] = part
            parts = list(distinct.values())
            self._known[steps] = (
                list(chain.from_iterable(parts))
                if parts and isinstance(parts[0], tuple)
                else parts
            )
        return self._known[steps]


def _place(api_object: ApiObject, row: FieldRow) -> str | None:
    names = zip(row.path.split("."), row.steps, strict=True)
    values = _values(api_object, tuple(names), "")
    return next(
        (path for path, value in values if row.says(api_object, value)), None
    )


def _values(
    value: Any, steps: tuple[tuple[str, str], ...], path: str
) -> Iterator[tuple[str, Any]]:
    """Yield the values of a field, with their places, for each item of the lists on the way."""
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _values(item, steps, f"{path}[{index}]")
    elif not steps:
        yield path, value
    elif value is not None:
        (name, attribute), *further_steps = steps
        inner = getattr(value, attribute, None)
        yield from _values(
            inner, tuple(further_steps), f"{path}.{name}" if path else name
        )
