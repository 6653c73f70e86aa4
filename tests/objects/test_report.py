"""Tables and lines as text: nothing in them is a command for a terminal, nothing is cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dralloc.objects.report import WIDTH, Line, Table, as_text, one_line, visible

ESCAPED = {
    "\x1b[31mred": r"\x1b[31mred",
    "title\x1b]0;x\x07": r"title\x1b]0;x\x07",
    "\x9b31m": r"\x9b31m",
    "over\rwritten": r"over\rwritten",
    "abc\u202ecba": r"abc\u202ecba",
    "zero\u200bwidth": r"zero\u200bwidth",
    "half a pair \ud800": r"half a pair \ud800",
}


@pytest.mark.parametrize("text", ESCAPED)
def test_what_a_terminal_would_obey_or_hide_is_shown_as_an_escape(text: str) -> None:
    assert visible(text) == ESCAPED[text]


@pytest.mark.parametrize("text", ["", "gpu-0", "größer als 1 µs, 漢字 🙂"])
def test_what_is_printable_stays(text: str) -> None:
    assert visible(text) == one_line(text) == text


def test_lines_break_only_where_they_may() -> None:
    assert visible("a &&\n  b") == "a &&\n  b"
    assert one_line("a\nerror: b") == r"a\nerror: b"


@given(st.text(st.characters(codec=None), max_size=30))
def test_whatever_is_in_a_part_it_is_printable_in_the_end(text: str) -> None:
    shown = as_text([Line(text), Table(text, (text, ">b"), [(text, "1")])])
    assert all(line.isprintable() for line in shown.split("\n"))


def test_what_looks_like_markup_is_text() -> None:
    shown = as_text(
        [Line("[red]a[/red] :smile:"), Table("[b]t", ("[i]c",), [("[link=x]",)])]
    )
    assert shown.split("\n") == [
        "[red]a[/red] :smile:",
        "",
        "[b]t",
        " [i]c",
        " [link=x]",
    ]


def test_a_line_break_at_the_start_of_a_line_is_an_empty_line_above() -> None:
    assert as_text([Line("a"), Line("\nb")]) == "a\n\nb"


@pytest.mark.parametrize("width", [WIDTH, 60, 25])
def test_everything_fits_and_nothing_is_cut(width: int) -> None:
    words = [f"word-{number}" for number in range(60)]
    name = "n" * 200
    shown = as_text([Line(" ".join(words)), Table("", ("name",), [(name,)])], width)
    assert max(map(len, shown.split("\n"))) <= width
    assert shown.split()[: len(words)] == words
    assert shown.count("n") == len(name) + len("name"[:1])
