"""Expressions of each class against rules that are written without the engine."""

from __future__ import annotations

from random import Random

import pytest

from cel_helpers import evaluate
from cel_rules import CLASSES
from examples import examples

EXAMPLES = examples(400)


@pytest.mark.parametrize("name", CLASSES)
def test_rules(name: str) -> None:
    random = Random(name)
    cases = [CLASSES[name](random) for _ in range(EXAMPLES)]
    assert [
        (text, answer, result)
        for text, answer in cases
        if (result := evaluate(text)) != answer
    ] == []
