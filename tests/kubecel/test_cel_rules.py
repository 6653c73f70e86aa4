"""Expressions of each class against rules that are written without the engine.

``CEL_EXAMPLES`` in the environment says how many there are of each.
"""

from __future__ import annotations

import os
from random import Random

import pytest

from cel_helpers import evaluate
from cel_rules import CLASSES

EXAMPLES = int(os.environ.get("CEL_EXAMPLES", "400"))


@pytest.mark.parametrize("name", CLASSES)
def test_rules(name: str) -> None:
    random = Random(name)
    cases = [CLASSES[name](random) for _ in range(EXAMPLES)]
    assert [(text, answer, found) for text, answer in cases if (found := evaluate(text)) != answer] == []
