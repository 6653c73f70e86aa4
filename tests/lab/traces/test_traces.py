"""Public traces in small, in the form in which they are published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dralloc
from dralloc.lab.simulate import Arrival
from dralloc.lab.traces import (
    gpu_v2025,
    mig_month,
    openb,
    philly,
    recorded_pods,
)
from dralloc.objects.errors import DrallocError
from dralloc.objects.load import load_documents
from dralloc.objects.names import ClaimKey


def key(name: str) -> ClaimKey:
    return ClaimKey("default", name)


def came(simulated: dralloc.Simulated) -> list[tuple[Any, ...]]:
    [run] = simulated.runs
    return [
        (row["state"], row["arrived"], row["started"], row["ended"])
        for row in run.arrival_rows()
    ]


OPENB_NODES = """sn,cpu_milli,memory_mib,gpu,model
n0,8000,16384,2,T4
n1,4000,8192,1,P100
n2,4000,8192,0,
"""
OPENB_PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time
a,1000,1024,1,600,T4,0,10
b,1000,1024,1,600,T4,1,11
c,1000,1024,1,600,P100|T4,2,7
d,1000,1024,1,500,T4,3,5
e,1000,1024,0,0,,3,5
"""


def test_openb(tmp_path: Path) -> None:
    """Two of 600 thousandths take a T4 each, so that the fourth waits for them; the third has an alternative."""
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(OPENB_NODES)
    pods.write_text(OPENB_PODS)
    trace = openb(nodes, pods)
    assert [arrival.time for arrival in trace.arrivals] == [0, 1000, 2000, 3000]
    simulated = dralloc.simulate(trace.cluster, trace.arrivals)
    assert came(simulated) == [
        ("done", 0, 0, 10),
        ("done", 1, 1, 11),
        ("done", 2, 2, 7),
        ("done", 3, 10, 12),
    ]


_SERVICE = "app_0,12,12,1,1,60,60,120.0,120.0,680.0,800.0,2"
_HEADER = (
    "instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,memory_request,"
    "memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,scheduled_time,deletion_time\n"
)


def test_gpu_v2025(tmp_path: Path) -> None:
    """Of 60 percent each an adapter serves one; of the service a node has two at most."""
    path = tmp_path / "trace.csv"
    times = (",,", ",,30.0", "5.0,6.0,26.0", "7.0,7.0,")
    rows = [f"i{n},HN,{_SERVICE},{time}" for n, time in enumerate(times)]
    rows.append("i9,CN,app_1,64,64,0,0,1,1,320.0,320.0,255.0,300.0,-1,,,")
    path.write_text(_HEADER + "\n".join(rows) + "\n")
    trace = gpu_v2025(path, nodes=1, adapters=4)
    template = key("app-0-0")
    assert trace.arrivals == (
        Arrival(0, template),
        Arrival(0, template, 30_000),
        Arrival(5000, template, 20_000),
        Arrival(7000, template),
    )
    simulated = dralloc.simulate(trace.cluster, trace.arrivals)
    assert [row[2] for row in came(simulated)] == [0, 0, 30, 50]
    narrow = gpu_v2025(path, nodes=2, adapters=1)
    simulated = dralloc.simulate(narrow.cluster, narrow.arrivals)
    assert [row[2] for row in came(simulated)] == [0, 0, 30, 50]


def test_philly(tmp_path: Path) -> None:
    """Ten GPUs are a group of two pods, which come together; without GPUs nobody comes."""
    path = tmp_path / "philly.csv"
    path.write_text(
        "timestamp,duration,num_gpus,gpu_time,cluster\n"
        "2017-10-09 07:00:10,66.0,10,660.0,aa\n"
        "2017-10-09 07:00:00,20.0,1,20.0,bb\n"
        "2017-10-09 07:00:05,30.0,0,0.0,bb\n"
    )
    trace = philly(path, {8: 2})
    assert trace.arrivals == (
        Arrival(0, key("gpus-1"), 20_000, namespace="vc-bb"),
        Arrival(10_000, key("gpus-8"), 66_000, None, "vc-aa", "job-0"),
        Arrival(10_000, key("gpus-2"), 66_000, None, "vc-aa", "job-0"),
    )
    simulated = dralloc.simulate(trace.cluster, trace.arrivals)
    assert came(simulated) == [
        ("done", 0, 0, 20),
        ("done", 10, 10, 76),
        ("done", 10, 10, 76),
    ]
    with pytest.raises(DrallocError, match="none of them has a GPU"):
        philly(path, {8: 0})


def test_times_of_philly_may_say_their_zone(tmp_path: Path) -> None:
    """The clocks are set back between two jobs that come an hour apart."""
    path = tmp_path / "philly.csv"
    path.write_text(
        "timestamp,duration,num_gpus,cluster\n"
        "2017-11-05 01:30:00-07:00,60,1,a\n"
        "2017-11-05 01:30:00-08:00,60,1,a\n"
    )
    times = [arrival.time for arrival in philly(path, {8: 1}).arrivals]
    assert times == [0, 3_600_000]


def test_a_byte_order_mark_is_no_part_of_a_column(tmp_path: Path) -> None:
    path = tmp_path / "philly.csv"
    text = "timestamp,duration,num_gpus,cluster\n2017-10-09,60,1,a\n"
    path.write_text(text, encoding="utf-8-sig")
    assert len(philly(path, {8: 1}).arrivals) == 1


def test_a_month_asks_for_its_load() -> None:
    month = mig_month(2, 4, load=0.5, days=60, mean_hours=2)
    slices = {"1": 1, "2": 2, "3": 4, "4": 4, "7": 8}
    asked = sum(
        (arrival.duration or 0) * slices[arrival.template.name[4]]
        for arrival in month.arrivals.draw(1)
    )
    offered = asked / (60 * 24 * 3_600_000 * 2 * 4 * 8)
    assert offered == pytest.approx(0.5, rel=0.1)
    with pytest.raises(DrallocError, match="no profile 'whole'"):
        mig_month(mix={"whole": 1})


@pytest.mark.parametrize(("gpus", "slices"), [(8, 9), (9, 11), (17, 20)])
def test_nodes_of_a_month_are_valid_whatever_gpus_they_have(
    gpus: int, slices: int
) -> None:
    cluster = mig_month(1, gpus).cluster
    assert list(dralloc.validate(cluster)) == []
    assert len(cluster.slices) == slices


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("timestamp\n2017-10-09\n", "there is no column duration"),
        (
            "timestamp,duration,num_gpus,cluster\nsoon,1,1,a\n",
            "line 2: Invalid isoformat string",
        ),
        (
            "timestamp,duration,num_gpus,cluster\n2017-10-09,,1,a\n",
            "line 2: duration is empty",
        ),
        (
            "timestamp,duration,num_gpus,cluster\n\n2017-10-09,,1,a\n",
            "line 3: duration is empty",
        ),
        (
            "timestamp,duration,num_gpus,cluster\n2017-10-09,1e300,1,a\n",
            "line 2: 1e300 is no number of seconds up to 1000000000000",
        ),
        (
            "timestamp,duration,num_gpus,cluster\n2017-10-09,1,-1,a\n",
            "line 2: num_gpus is -1",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(text)
    with pytest.raises(DrallocError) as caught:
        philly(path, {8: 1})
    assert message in str(caught.value)
    with pytest.raises(DrallocError, match="cannot be read: No such file"):
        philly(tmp_path / "none.csv", {8: 1})


def recorded_pod(name: str, made: str, duration: str = "") -> dict[str, Any]:
    """Write a pod that asks for one device of the template ``gpu``."""
    claim = {"name": "gpu", "resourceClaimTemplateName": "gpu"}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": "default",
        "creationTimestamp": made,
    }
    if duration:
        metadata["annotations"] = {"dralloc.dev/duration": duration}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [{"name": "main"}], "resourceClaims": [claim]},
    }


def test_recorded_pods_arrive_when_they_were_made() -> None:
    cluster = load_documents(
        [
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "node-0"},
            },
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": "node-0"},
                "spec": {
                    "driver": "gpu.example.com",
                    "nodeName": "node-0",
                    "pool": {
                        "name": "node-0",
                        "generation": 1,
                        "resourceSliceCount": 1,
                    },
                    "devices": [{"name": "gpu-0"}],
                },
            },
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "metadata": {"name": "gpu"},
                "spec": {},
            },
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": "gpu", "namespace": "default"},
                "spec": {
                    "spec": {
                        "devices": {
                            "requests": [
                                {
                                    "name": "gpu",
                                    "exactly": {"deviceClassName": "gpu"},
                                }
                            ]
                        }
                    }
                },
            },
            recorded_pod("second", "2026-01-01T00:00:30Z"),
            recorded_pod("first", "2026-01-01T00:00:10Z", duration="60"),
        ]
    )
    record = recorded_pods(cluster)
    assert [
        (arrival.template.name, arrival.time, arrival.duration)
        for arrival in record.arrivals
    ] == [
        ("first", 0, 60_000),
        ("second", 20_000, None),
    ]
    simulated = dralloc.simulate(record.cluster, record.arrivals)
    # There is one device: who comes second waits until the first one leaves.
    assert list(simulated.arrivals()["started"]) == [0, 60]


@pytest.mark.parametrize("duration", ["1e300", "inf", "nan", "-1", "soon"])
def test_recorded_durations_are_seconds_that_can_be_counted(
    duration: str,
) -> None:
    pod = recorded_pod("long", "2026-01-01T00:00:00Z", duration)
    del pod["spec"]["resourceClaims"]
    with pytest.raises(DrallocError, match=r"annotations.*duration"):
        recorded_pods(load_documents([pod]))


def test_a_quotation_mark_that_is_never_closed(tmp_path: Path) -> None:
    path = tmp_path / "philly.csv"
    path.write_text(f'timestamp,duration\n"{"0," * 100_000}')
    with pytest.raises(DrallocError, match=r"line \d+: field larger"):
        philly(path, {8: 1})
