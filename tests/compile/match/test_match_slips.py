"""What may be meant by names in expressions and requests that no device has."""

from __future__ import annotations

import pytest

from dralloc.compile.match.slips import capacity_slip, key_slip
from dralloc.objects.api import Device
from dralloc.objects.errors import did_you_mean

NETWORK = Device("eth0", attributes={"dra.net/rdma": True})


@pytest.mark.parametrize(
    ("expression", "key", "meant"),
    [
        (
            'device.attributes["dra.net/rdma"].bool',
            "bool",
            ' of "dra.net/rdma", did you mean ["dra.net"].rdma?',
        ),
        (
            'device.attributes["dra.nets"].rdma',
            "rdma",
            ' of "dra.nets", did you mean "dra.net"?',
        ),
        (
            'device.attributes["dra.net"].rmda',
            "rmda",
            ', did you mean "rdma"?',
        ),
    ],
)
def test_an_attribute_that_no_device_has(
    expression: str, key: str, meant: str
) -> None:
    devices = [("dra.net", NETWORK)]
    assert key_slip(f"no such key: {key}", expression, devices) == meant


def test_a_capacity_with_the_domain_of_its_driver() -> None:
    assert capacity_slip("gpu.example.com/memory", ["memory"]) == (
        ', did you mean "memory"?'
    )


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("default/train", "default/train-7fjnp-0"),
        ("bake-x2c", "default/bake-x2c"),
        ("default/trian-7fjnp-0", "default/train-7fjnp-0"),
    ],
)
def test_a_name_without_what_controllers_add_to_it(
    word: str, meant: str
) -> None:
    known = ["default/rain", "default/train-7fjnp-0", "default/bake-x2c"]
    assert did_you_mean(word, known) == f', did you mean "{meant}"?'
    assert did_you_mean("other/queue", known) == ""
