"""How constraints, configurations and allocations name the requests of a claim."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from dralloc.lint.validate.rule import Details, Issue
from dralloc.objects.api import DeviceClaim
from dralloc.objects.errors import did_you_mean

__all__ = [
    "MAX_REQUESTS",
    "alternatives",
    "covers",
    "in_lists",
    "refers",
    "request_names",
]

MAX_REQUESTS: Final = 32


def request_names(spec: DeviceClaim) -> frozenset[str]:
    """Return the names that constraints can refer to: ``request`` and ``request/subrequest``."""
    return frozenset(
        (
            *(request.name for request in spec.requests),
            *(name for name, _ in spec.alternatives),
        )
    )


def alternatives(
    spec: DeviceClaim, at: str
) -> Iterator[list[tuple[str, str, Details]]]:
    """Yield for each request its alternatives, each with its path and the name that allocations have for it."""
    for request_index, request in enumerate(spec.requests):
        fields = (
            ["exactly"]
            if request.exactly
            else (
                f"firstAvailable[{n}]"
                for n in range(len(request.first_available))
            )
        )
        named = zip(fields, request.alternatives, strict=True)
        yield [
            (f"{at}.requests[{request_index}].{field}", name, details)
            for field, (name, details) in named
        ]


def covers(requests: Collection[str], name: str) -> bool:
    """Return whether a constraint that names some requests (all, if none) is about a request or subrequest."""
    return (
        not requests or name in requests or name.partition("/")[0] in requests
    )


def refers(
    names: Iterable[tuple[str, str]], spec: DeviceClaim
) -> Iterator[Issue]:
    """Yield issues with names, each behind its path, that no request or subrequest of the claim has."""
    requests_of_claim = request_names(spec)
    listed = ", ".join(sorted(filter(None, requests_of_claim))) or "none"
    for path, name in names:
        if name not in requests_of_claim:
            text = f"is no request of the claim, and no request and subrequest: {listed}"
            meant = did_you_mean(name, requests_of_claim)
            yield Issue(path, f'"{name}" {text}{meant}')


def in_lists(items: Iterable[Any], at: str) -> Iterator[tuple[str, str]]:
    """Yield the names in the lists of requests that constraints or configurations have, each behind its path."""
    for index, entry in enumerate(items):
        yield from (
            (f"{at}[{index}].requests[{request_index}]", name)
            for request_index, name in enumerate(entry.requests)
        )
