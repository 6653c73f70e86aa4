"""What solvers answered in a run, kept in a file line by line, so that a run that was killed goes on where it was.

Everything else in a run is worked out again, which is quick: it depends on nothing but these answers, the arrivals and
the seed. What the search remembers from one batch to the next is not kept; the first batch after a restart does
without.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import orjson
from pydantic import TypeAdapter, ValidationError

from dralloc.objects.errors import DrallocError
from dralloc.objects.save import write_text

__all__ = ["KeptAnswers"]

A = TypeVar("A")


class KeptAnswers:
    """The answers of a run, in the order in which they were asked for.

    Parameters
    ----------
    path
        The file with one line per answer, after one with the heading; None if nothing is kept.
    heading
        Everything that the answers depend on. A file with another one is begun anew, and so is one of which no line is
        whole.
    """

    def __init__(self, path: Path | None = None, heading: str = "") -> None:
        self._path = path
        self._known: deque[object] = deque()
        if path is None:
            return
        kept = list(_whole_lines(path))
        if kept[:1] == [heading]:
            self._known.extend(kept[1:])
        # Also to be rid of a line that was cut off.
        lines = map(orjson.dumps, (heading, *self._known))
        write_text(b"".join(line + b"\n" for line in lines).decode(), path)

    def once(self, adapter: TypeAdapter[A], ask: Callable[[], A]) -> A:
        """Return the next answer: the one that is kept, or the one that is asked for now."""
        if self._known:
            try:
                return adapter.validate_python(self._known.popleft())
            except ValidationError:
                raise DrallocError(
                    f"{self._path}: is about another run"
                ) from None
        answer = ask()
        if self._path is not None:
            line = orjson.dumps(adapter.dump_python(answer, mode="json"))
            try:
                with self._path.open("ab") as file:
                    file.write(line + b"\n")
            except OSError as error:
                raise DrallocError(
                    f"{self._path}: {error.strerror or error}"
                ) from None
        return answer


def _whole_lines(path: Path) -> Iterator[object]:
    """Yield what the lines of a file say, up to one that was cut off; nothing if there is no such file."""
    try:
        written = path.read_bytes()
    except FileNotFoundError:
        return
    except OSError as error:
        raise DrallocError(f"{path}: {error.strerror or error}") from None
    for line in written.split(b"\n")[:-1]:
        try:
            yield orjson.loads(line)
        except orjson.JSONDecodeError:
            return
