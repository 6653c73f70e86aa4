"""Ctrl-C ends a search; it does not break off what is half done.

An exception in the middle of anything leaves things half done, and gets lost where Python cannot raise one: in a
destructor, in a callback out of C++. So a first Ctrl-C is only remembered, and whatever waits or goes on in steps asks.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import current_thread, main_thread
from types import FrameType

__all__ = ["Interrupted", "asked_to_stop", "heeding_interrupts", "stopping_when"]

_asked: ContextVar[Callable[[], bool]] = ContextVar("asked")


class Interrupted(Exception):  # noqa: N818 - it is none of the user's errors
    """The search was asked to stop: for those between whoever noticed and whoever has the best answer."""


def asked_to_stop() -> bool:
    """Whether the search that this thread is in should come to an end."""
    asked = _asked.get(None)
    return asked is not None and asked()


@contextmanager
def stopping_when(asked: Callable[[], bool]) -> Iterator[None]:
    """Let a question decide whether searches in the block should come to an end."""
    token = _asked.set(asked)
    try:
        yield
    finally:
        _asked.reset(token)


@contextmanager
def heeding_interrupts() -> Iterator[None]:
    """Let a first Ctrl-C in the block ask searches to stop; a second one is a ``KeyboardInterrupt``.

    Only in the main thread, where signals arrive, and only where Ctrl-C would be a ``KeyboardInterrupt`` anyway: who
    has a handler of his own keeps it.
    """
    if current_thread() is not main_thread() or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    pressed: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        if pressed:
            signal.default_int_handler(number, frame)
        pressed.append(number)

    signal.signal(signal.SIGINT, remember)
    try:
        with stopping_when(lambda: bool(pressed)):
            yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
