"""Work in a thread beside a search, which makes way whenever there is news of it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from queue import SimpleQueue
from typing import Generic, TypeVar

from dralloc.solve.optimum.stopping import Cancelled, Stop

__all__ = ["Companion"]

News = TypeVar("News")
Result = TypeVar("Result")


class Companion(Generic[News, Result]):
    """Work that is done beside a block of statements, and stopped and waited for where the block ends.

    Parameters
    ----------
    work
        Gives out its news and returns its result; its argument says when to come to an end.
    stop
        When both come to an end.

    Attributes
    ----------
    until_news, until_over
        When whoever is beside the work makes way: for its next news, and for its result.
    """

    def __init__(
        self,
        work: Callable[[Stop], Generator[News, None, Result]],
        stop: Stop,
    ) -> None:
        self._ending = Cancelled(lambda: bool(stop.cancelled))
        self._news: SimpleQueue[News | None] = SimpleQueue()
        self._threads = ThreadPoolExecutor(max_workers=1)
        self._work = self._threads.submit(
            self._do, work, replace(stop, cancelled=self._ending)
        )
        is_over = Cancelled(lambda: bool(stop.cancelled) or self._work.done())
        has_news = Cancelled(lambda: bool(is_over) or not self._news.empty())
        self.until_over = replace(stop, cancelled=is_over)
        self.until_news = replace(stop, cancelled=has_news)

    def _do(
        self,
        work: Callable[[Stop], Generator[News, None, Result]],
        stop: Stop,
    ) -> Result:
        steps = work(stop)
        try:
            while True:
                self._news.put(next(steps))
        except StopIteration as end:
            result: Result = end.value
            return result
        finally:
            # Whoever waits is to wait no longer.
            self._news.put(None)

    def __enter__(self) -> Companion[News, Result]:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Stop the work, and wait for its end."""
        self._ending.cancel()
        self._threads.shutdown()

    def wait(self) -> News | None:
        """Wait for the next news; None at the end of the work."""
        return self._news.get()

    def pending(self) -> Iterator[News]:
        """Give out the news that there is by now."""
        while not self._news.empty():
            news = self._news.get()
            if news is None:
                # Whoever waits afterwards is to know.
                self._news.put(None)
                break
            yield news

    def result(self) -> Result:
        """Return what the work came to, or raise what it raised; waits for it."""
        return self._work.result()
