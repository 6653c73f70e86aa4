"""Feature gates: switches, and the defaults of Kubernetes versions."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from dralloc.objects.errors import DrallocError
from dralloc.objects.features import (
    ALL_FEATURES,
    GATES,
    Features,
)

ON = {
    "1.34": {"AdminAccess", "PrioritizedList"},
    "1.35": {"AdminAccess", "PrioritizedList"},
    "1.36": {
        "AdminAccess",
        "PrioritizedList",
        "PartitionableDevices",
        "DeviceTaints",
        "DeviceBindingAndStatus",
        "ConsumableCapacity",
        "ExtendedResource",
    },
}
ON["1.37"] = ON["1.36"] | {"DeviceTaintRules", "FractionalCapacityRange"}


@pytest.mark.parametrize("version", ON)
def test_the_defaults_of_kubernetes(version: str) -> None:
    assert {
        name
        for name, on in asdict(Features.of_kubernetes(version)).items()
        if on
    } == ON[version]
    assert Features.of_kubernetes(f"v{version}") == Features.of_kubernetes(
        version
    )


def test_an_unknown_version_is_an_error() -> None:
    with pytest.raises(
        DrallocError,
        match=r"Kubernetes 1\.33 is not known; known versions: 1\.34, 1\.35, 1\.36, 1\.37",
    ):
        Features.of_kubernetes("1.33")


def test_without_a_version_everything_is_on() -> None:
    assert all(asdict(ALL_FEATURES).values())


def test_switches_take_the_names_of_the_api_server() -> None:
    switched = Features.of_kubernetes("1.35").switched(
        {
            "DRADeviceTaints": True,
            "DRADeviceBindingConditions": True,
            "AdminAccess": False,
        }
    )
    assert (
        switched.DeviceTaints,
        switched.DeviceBindingAndStatus,
        switched.AdminAccess,
    ) == (True, True, False)
    with pytest.raises(DrallocError, match="unknown feature 'Nonsense'"):
        ALL_FEATURES.switched({"Nonsense": True})


def test_every_switch_is_a_gate_with_a_proposal_and_a_history() -> None:
    assert set(GATES) == set(Features.names())
    for gate in GATES.values():
        since = [stage.since for stage in gate.stages]
        assert since == sorted(set(since))
        assert gate.kep > 4000
        # Nothing goes back: what is on by default stays so.
        on = [stage.on for stage in gate.stages]
        assert on == sorted(on)
        switched = ALL_FEATURES.switched({gate.upstream: False})
        assert sum(asdict(switched).values()) == len(GATES) - 1
