"""Objects that cannot be used, without what is wrong with them, so that the rest of them can be looked at."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pydantic_core import ErrorDetails

from dralloc.objects.api.base import ApiObject
from dralloc.objects.api.versions import Json, Path

__all__ = ["Mended", "Repair", "delete_field"]


class Mended(NamedTuple):
    """An object that cannot be used, without what is wrong with it, so that the rest of it can be looked at."""

    object: ApiObject
    source: str
    broken: tuple[str, ...]
    """The fields that are not as they were given."""

    def hides(self, path: str) -> bool:
        """Return whether what is said about a field may be so only because others were taken away."""
        return _is_near(path, self.broken)


def _is_near(path: str, broken: Iterable[str]) -> bool:
    """Return whether a field is one of those that are broken, in one of them, or around one."""
    return any(
        _is_inside(path, wrong) or _is_inside(wrong, path) for wrong in broken
    )


def _is_inside(path: str, outer: str) -> bool:
    """Return whether a path is another one, or leads on from it: the name of a namespace is not inside of a name."""
    further = path.removeprefix(outer)
    return path.startswith(outer) and (
        not outer or not further or further[0] in ".["
    )


@dataclass
class Repair:
    """Takes away what is wrong with an object, ever more of it until the rest can be read."""

    broken: list[str] = field(default_factory=list)
    _tries: Counter[Path] = field(default_factory=Counter)

    def follows(self, path: str) -> bool:
        """Return whether an error may be one only because of what was taken away."""
        return _is_near(path, self.broken)

    def repaired(self, body: Json, error: ErrorDetails) -> bool:
        """Take away what is wrong in one place; return whether there was anything to take."""
        location = tuple(step for step in error["loc"] if step != "[key]")
        tries = self._tries[location]
        self._tries[location] += 1
        if error["type"] == "missing" and not tries:
            # Most of what is required is a text, and the field is known to be broken.
            return _put(body, location, "")
        # A field, not an item: the places of what is behind it stay as they were.
        fields_around = [
            length
            for length in range(1, len(location) + 1)
            if isinstance(location[length - 1], str)
        ]
        if tries >= len(fields_around):
            return False
        return _dropped(body, location[: fields_around[-1 - tries]])


def _put(body: Any, location: Path, value: str) -> bool:
    try:
        for step in location[:-1]:
            body = body[step]
        body[location[-1]] = value
    except (KeyError, IndexError, TypeError):
        return False
    return True


def _dropped(body: Any, location: Path) -> bool:
    try:
        delete_field(body, location)
    except (KeyError, IndexError, TypeError):
        return False
    return True


def delete_field(body: Any, location: Sequence[str | int]) -> None:
    """Take a field or an item out of a body; raises KeyError, IndexError or TypeError if it is not there."""
    for step in location[:-1]:
        body = body[step]
    del body[location[-1]]
