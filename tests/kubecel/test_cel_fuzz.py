"""Whatever the expression is, only the two errors of CEL come out."""

from __future__ import annotations

from hypothesis import given, settings

from cel_helpers import DYNAMIC, EXPRESSIONS, FRAGMENTS, GPU
from examples import examples
from kubecel import compile_selector
from kubecel.errors import CelCompileError, CelRuntimeError


def answer(expression: str) -> object:
    try:
        return compile_selector(expression).matches(GPU)
    except (CelCompileError, CelRuntimeError) as error:
        return str(error)


@given(EXPRESSIONS)
@settings(max_examples=examples(200), deadline=None)
def test_expressions_answer_or_fail_as_cel_does(expression: str) -> None:
    first = answer(expression)
    assert isinstance(first, bool | str)
    assert answer(expression) == first


@given(FRAGMENTS)
@settings(max_examples=examples(100), deadline=None)
def test_text_answers_or_fails_as_cel_does(text: str) -> None:
    assert isinstance(answer(text), bool | str)


@given(DYNAMIC)
@settings(max_examples=examples(200), deadline=None)
def test_hidden_types_are_no_less_safe(expression: str) -> None:
    assert isinstance(answer(expression), bool | str)
    assert isinstance(answer(f"{expression} == {expression}"), bool | str)
