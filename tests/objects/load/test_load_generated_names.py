"""Objects that leave their name to the API server, by ``generateName``."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dralloc
from dralloc.lint.validate.checks import dns_subdomain
from dralloc.objects.load import read_documents
from wire import (
    Json,
    claim,
    device_class,
    gpus,
    node,
    pod,
    request,
    resource_slice,
)

_BASES: Final = st.from_regex(
    r"[a-z0-9]([a-z0-9-]{0,70}[a-z0-9])?-?", fullmatch=True
)


def unnamed(document: Json, base: str) -> Json:
    """The object with a prefix in place of its name."""
    metadata = {
        key: value
        for key, value in document["metadata"].items()
        if key != "name"
    }
    return {**document, "metadata": {**metadata, "generateName": base}}


def names(documents: list[Json]) -> list[str]:
    return [
        claim_object.name
        for claim_object in read_documents(documents).cluster.claims
    ]


def test_each_object_with_generate_name_is_one_of_its_own() -> None:
    first, second, other = names(
        [
            unnamed(claim("x", request()), base)
            for base in ("train-", "train-", "eval-")
        ]
    )
    assert first != second
    assert first.startswith("train-")
    assert len(first) == len("train-") + 5
    assert other.startswith("eval-")


def test_a_name_stays_the_same_from_run_to_run_and_beside_others() -> None:
    wanted = unnamed(claim("x", request()), "train-")
    [alone] = names([wanted])
    assert (
        names([claim("given", request()), wanted, unnamed(pod("p"), "train-")])[
            1
        ]
        == alone
    )


def test_a_name_that_is_given_counts() -> None:
    given_name = claim("given", request())
    given_name["metadata"]["generateName"] = "train-"
    assert names([given_name]) == ["given"]


@given(st.lists(_BASES, min_size=1, max_size=4))
def test_names_are_valid_and_different(bases: list[str]) -> None:
    made = names([unnamed(claim("x", request()), base) for base in bases])
    assert len(set(made)) == len(bases)
    assert not any(map(dns_subdomain, made))
    assert all(
        name[:-5] == base[:58] for name, base in zip(made, bases, strict=True)
    )


def test_a_job_with_generate_name_is_placed() -> None:
    """As samples of Kueue are written, which are meant for ``kubectl create``."""
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one-gpu"},
        "spec": {"spec": claim("x", request())["spec"]},
    }
    spec = {
        "resourceClaims": [
            {"name": "gpu", "resourceClaimTemplateName": "one-gpu"}
        ],
        "containers": [],
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"generateName": "sample-job-"},
        "spec": {
            "parallelism": 2,
            "completions": 2,
            "template": {"spec": spec},
        },
    }
    objects = [
        node(),
        device_class(),
        resource_slice(gpus(4)),
        template,
        job,
        job,
    ]
    plan = dralloc.allocate(read_documents(objects).cluster)
    assert plan.metrics.placed == len(plan.demands) == 4
    assert all(
        str(demand.key).startswith("default/sample-job-")
        for demand in plan.demands
    )


@pytest.mark.parametrize("kind", ["ResourceSlice", "Node", "DeviceClass"])
def test_other_kinds_may_leave_their_name_to_the_server_too(kind: str) -> None:
    by_kind = {
        "ResourceSlice": resource_slice(gpus(1)),
        "Node": node(),
        "DeviceClass": device_class(),
    }
    reading = read_documents([unnamed(by_kind[kind], "some-")])
    assert not reading.refused
    assert len(reading.cluster.sources) == 1
