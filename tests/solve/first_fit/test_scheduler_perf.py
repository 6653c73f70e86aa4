"""A workload of upstream's scheduler_perf as it is published."""

from __future__ import annotations

from pathlib import Path

import pytest

import dralloc
from dralloc.objects.save import dump_yaml
from wire import claim, device_class, request


@pytest.mark.parametrize("mode", ["first-fit", "optimal"])
def test_partitionable_backtracking(
    shared: Path, tmp_path: Path, mode: str
) -> None:
    """One node, seven devices wanted: all but the large one, which is listed first."""
    wanted = tmp_path / "claim.yaml"
    wanted.write_text(
        dump_yaml(
            [
                device_class("test-class", "true"),
                claim("c", request(device_class="test-class", count=7)),
            ]
        )
    )
    plan = dralloc.allocate(
        dralloc.load(
            shared / "data" / "scheduler_perf" / "backtracking.yaml", wanted
        ),
        mode=dralloc.Mode(mode),
    )
    [allocation] = plan.allocations.values()
    assert [result.device for result in allocation.devices.results] == [
        f"device-{index}" for index in range(2, 9)
    ]
