"""The annotation for constraints over several claims."""

from __future__ import annotations

import pytest

from dralloc.lint.validate import validate
from dralloc.objects.user_rules import ACROSS
from wire import claim, cluster, pod, request

PATH = f'metadata.annotations["{ACROSS}"]'


def told(text: str) -> list[tuple[str, str]]:
    user = pod("p", "a")
    user["metadata"]["annotations"] = {ACROSS: text}
    return [
        (violation.rule, violation.path)
        for violation in validate(cluster(claim("a", request("gpu")), user))
        if violation.path == PATH
    ]


@pytest.mark.parametrize(
    "text",
    ["", "rail", "matchAttribute=rail", "matchAttribute=example.com/rail; "],
)
def test_it_has_a_form(text: str) -> None:
    assert told(text) == [("across-form", PATH)]


def test_it_names_requests_of_the_claims() -> None:
    assert told("matchAttribute=example.com/rail:gpu") == []
    assert told("matchAttribute=example.com/rail:gpu,nic") == [
        ("across-request", PATH)
    ]
