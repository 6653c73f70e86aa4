"""Work in a thread beside a block of statements."""

from __future__ import annotations

from collections.abc import Generator
from threading import Event

import pytest

from dralloc.solve.optimum.beside import Companion
from dralloc.solve.optimum.stopping import Stop


def count_to_three(_: Stop) -> Generator[int, None, str]:
    yield from (1, 2, 3)
    return "done"


def until_stopped(stop: Stop) -> Generator[int, None, int]:
    turns = 0
    while not stop.reached():
        turns += 1
    yield turns
    return turns


def test_news_come_in_order_and_then_the_end() -> None:
    with Companion(count_to_three, Stop()) as work:
        assert [work.wait() for _ in range(4)] == [1, 2, 3, None]
    assert work.result() == "done"


def test_news_that_are_there_are_given_out_once() -> None:
    with Companion(count_to_three, Stop()) as work:
        assert work.result() == "done"
        assert list(work.pending()) == [1, 2, 3]
        assert list(work.pending()) == []
        assert work.wait() is None


def test_work_ends_with_the_block() -> None:
    with Companion(until_stopped, Stop()) as work:
        assert not work.until_over.reached()
        assert not work.until_news.reached()
    assert work.result() >= 0
    assert work.until_over.reached()


def test_whoever_is_beside_makes_way_for_news() -> None:
    told, heard = Event(), Event()

    def tell(_: Stop) -> Generator[str, None, None]:
        told.wait()
        yield "news"
        heard.wait()

    with Companion(tell, Stop()) as work:
        assert not work.until_news.reached()
        told.set()
        while not work.until_news.reached():
            pass
        assert not work.until_over.reached()
        assert work.wait() == "news"
        assert not work.until_news.reached()
        heard.set()


def test_an_error_is_raised_by_whoever_asks_for_the_result() -> None:
    def fail(_: Stop) -> Generator[int, None, None]:
        yield 1
        raise ValueError("broken")

    with Companion(fail, Stop()) as work:
        assert [work.wait(), work.wait()] == [1, None]
    with pytest.raises(ValueError, match="broken"):
        work.result()
