"""Tables and lines as text: nothing in them is a command for a terminal, nothing is cut."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from dralloc.objects.report import (
    Line,
    Part,
    Table,
    as_text,
    duration,
    one_line,
    show,
    visible,
)

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
def test_what_a_terminal_would_obey_or_hide_is_shown_as_an_escape(
    text: str,
) -> None:
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
        [
            Line("[red]a[/red] :smile:"),
            Table("[b]t", ("[i]c",), [("[link=x]",)]),
        ]
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


def test_nothing_is_wrapped_and_nothing_is_cut() -> None:
    words = [f"word-{index}" for index in range(60)]
    name = "n" * 200
    table = Table("", ("name", ">count"), [(name, "1"), ("short", "22")])
    shown = as_text([Line(" ".join(words)), table]).split("\n")
    assert shown == [
        " ".join(words),
        "",
        f" name{' ' * 196}  count",
        f" {name}      1",
        f" short{' ' * 195}     22",
    ]


@pytest.mark.parametrize("columns", ["0", "1", "80"])
def test_the_width_of_a_terminal_does_not_matter_to_text(
    columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert as_text([Line("a word and another one")]) == "a word and another one"


def test_wide_characters_take_two_columns() -> None:
    shown = as_text([Table("", ("a", "b"), [("漢字", "x"), ("kanji", "y")])])
    assert shown.split("\n")[1:] == [" a      b", " 漢字   x", " kanji  y"]


def test_wide_tables_and_bare_rows() -> None:
    parts: list[Part] = [
        Line("said"),
        Table("t", ("a",), [("1",)]),
        Table("w", ("b",), [("2",)], wide=True),
    ]
    assert as_text(parts) == "said\n\nt\n a\n 1"
    out = StringIO()
    show(Console(file=out), parts, wide=True, headers=False)
    assert out.getvalue() == " 1\n 2\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0123, "0.012 s"),
        (12.34, "12.3 s"),
        (999.4, "999 s"),
        (999.7, "1000 s"),
        (1234.5, "1234 s"),
        (36_000.0, "36000 s"),
    ],
)
def test_seconds_are_never_written_with_an_exponent(
    seconds: float, text: str
) -> None:
    assert duration(seconds) == text
