"""cel-python's own interpreter agrees wherever it is right."""

from __future__ import annotations

import logging

import pytest
from hypothesis import assume, given, settings

from cel_engines import REFUSED, our_answer, their_answer
from cel_typed import LEFT_OUT, TYPED
from examples import examples


@pytest.fixture(autouse=True)
def _quiet() -> None:
    logging.getLogger("celpy").setLevel(logging.CRITICAL)


@given(TYPED)
@settings(max_examples=examples(500), deadline=None)
def test_the_engines_agree(expression: str) -> None:
    ours = our_answer(expression)
    assume(ours != REFUSED)  # conversions of constants: see `LEFT_OUT`
    assert ours == their_answer(expression)


@pytest.mark.parametrize("expression", LEFT_OUT)
def test_they_differ_in_what_is_left_out(expression: str) -> None:
    assert our_answer(expression) != their_answer(expression)
