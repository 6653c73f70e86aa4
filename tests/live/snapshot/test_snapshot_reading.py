"""Reading a cluster over HTTP, through the official client."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import dralloc
from dralloc.live.snapshot import ClusterSnapshot, connect, take_snapshot
from dralloc.objects.errors import SnapshotError
from dralloc.objects.load import load_documents
from dralloc.objects.names import ClaimKey
from live.snapshot.recorded import Recorded, serving, write_kubeconfig
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

DRA = "/apis/resource.k8s.io/v1"
CLAIMS = f"{DRA}/resourceclaims"
NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"


def bare(item: Json) -> Json:
    """An object as it is in a list: without kind and version, with what servers add."""
    metadata = {
        **item["metadata"],
        "managedFields": [{"manager": "kubectl"}],
        "resourceVersion": "5",
    }
    return {
        key: value
        for key, value in item.items()
        if key not in ("kind", "apiVersion")
    } | {"metadata": metadata}


def served(*objects: Json, path: str) -> dict[str, list[Json]]:
    return {path: [bare(item) for item in objects]}


@pytest.fixture
def recorded() -> Recorded:
    """One node with two devices, a claim, and a pod that uses it."""
    lists = {
        **served(node(), path=NODES),
        **served(device_class(), path=f"{DRA}/deviceclasses"),
        **served(resource_slice(gpus(2)), path=f"{DRA}/resourceslices"),
        **served(claim("b", request()), claim("a", request()), path=CLAIMS),
        **served(pod("train", "a"), pod("web"), path=PODS),
    }
    return Recorded(lists)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def read(recorded: Recorded, tmp_path: Path, **options: Any) -> ClusterSnapshot:
    context = options.pop("context", None)
    with (
        serving(recorded, tmp_path) as kubeconfig,
        connect(kubeconfig, context) as server,
    ):
        return take_snapshot(server, **options)


def kinds(snapshot: ClusterSnapshot) -> list[str]:
    return [f"{item['kind']} {item['metadata']['name']}" for item in snapshot]


def test_a_snapshot_loads_and_allocates(
    recorded: Recorded, tmp_path: Path
) -> None:
    snapshot = read(recorded, tmp_path)
    assert snapshot.warnings == []
    assert kinds(snapshot) == [
        "Node node-0",
        "DeviceClass gpu",
        "ResourceSlice slice-0",
        "ResourceClaim a",
        "ResourceClaim b",
        "Pod train",
    ]
    plan = dralloc.allocate(load_documents(snapshot), "first-fit")
    devices = {
        str(key): [result.device for result in got.devices.results]
        for key, got in plan.allocations.items()
    }
    assert devices == {"default/a": ["gpu-0"], "default/b": ["gpu-1"]}


def test_only_what_is_used_is_read_and_kept(
    recorded: Recorded, tmp_path: Path
) -> None:
    snapshot = read(recorded, tmp_path)
    paths = {path for path, _ in recorded.asked}
    assert not any(
        "secret" in path or "configmap" in path or "deployments" in path
        for path in paths
    )
    assert all(
        "managedFields" not in item["metadata"]
        and "resourceVersion" not in item["metadata"]
        for item in snapshot
    )
    assert snapshot.counts["pods"] == (1, 2)
    assert len(snapshot) == len(list(snapshot)) == 6


def test_fields_that_are_newer_than_the_client_stay(
    recorded: Recorded, tmp_path: Path
) -> None:
    new = resource_slice(gpus(1, fromTheFuture={"x": 1}))
    recorded.lists |= served(new, path=f"{DRA}/resourceslices")
    (slice_object,) = (
        item
        for item in read(recorded, tmp_path)
        if item["kind"] == "ResourceSlice"
    )
    assert slice_object["spec"] == new["spec"]


def test_long_lists_come_in_pages(recorded: Recorded, tmp_path: Path) -> None:
    recorded.lists |= served(
        *(
            claim(f"c{claim_index:04}", request())
            for claim_index in range(1201)
        ),
        path=CLAIMS,
    )
    seen: list[int] = []

    def progress(kind: str, count: int) -> None:
        if kind == "resourceclaims":
            seen.append(count)

    snapshot = read(recorded, tmp_path, progress=progress)
    assert snapshot.counts["resourceclaims"] == (1201, 1201)
    assert seen == [500, 1000, 1201]
    queries = [query for path, query in recorded.asked if path == CLAIMS]
    assert queries == [
        {"limit": "500"},
        *({"limit": "500", "continue": f"from-{at}"} for at in (500, 1000)),
    ]


@pytest.mark.parametrize(
    ("times", "requests"), [(1, 2 + 3), (2, 2 + 2 + 3), (99, 2 + 2 + 2 + 1)]
)
def test_an_expired_list_is_read_again(
    recorded: Recorded, tmp_path: Path, times: int, requests: int
) -> None:
    names = [f"c{claim_index:04}" for claim_index in range(1201)]
    recorded.lists |= served(
        *(claim(name, request()) for name in names), path=CLAIMS
    )
    recorded.expiring[CLAIMS] = times
    snapshot = read(recorded, tmp_path)
    assert [
        item["metadata"]["name"]
        for item in snapshot
        if item["kind"] == "ResourceClaim"
    ] == names
    queries = [query for path, query in recorded.asked if path == CLAIMS]
    assert len(queries) == requests
    assert ("limit" in queries[-1]) == (times < 99)


@pytest.mark.parametrize(
    ("versions", "chosen"),
    [
        (["v1", "v1beta1"], "v1"),
        (["v1beta1", "v1beta2"], "v1beta2"),
        (["v1beta1"], "v1beta1"),
    ],
)
def test_the_newest_version_is_read(
    recorded: Recorded, tmp_path: Path, versions: list[str], chosen: str
) -> None:
    plurals = recorded.groups["resource.k8s.io"]["v1"]
    recorded.groups["resource.k8s.io"] = dict.fromkeys(versions, plurals)
    path = f"/apis/resource.k8s.io/{chosen}/resourceslices"
    recorded.lists |= served(resource_slice(), path=path)
    snapshot = read(recorded, tmp_path)
    assert path in {asked for asked, _ in recorded.asked}
    assert {
        item["apiVersion"]
        for item in snapshot
        if item["kind"] == "ResourceSlice"
    } == {f"resource.k8s.io/{chosen}"}


def test_each_kind_has_its_own_newest_version(
    recorded: Recorded, tmp_path: Path
) -> None:
    recorded.groups["resource.k8s.io"] |= {"v1beta2": ["devicetaintrules"]}
    recorded.groups["scheduling.k8s.io"] |= {"v1alpha2": ["podgroups"]}
    read(recorded, tmp_path)
    asked = {path for path, _ in recorded.asked}
    assert "/apis/resource.k8s.io/v1beta2/devicetaintrules" in asked
    assert "/apis/scheduling.k8s.io/v1alpha2/podgroups" in asked
    assert CLAIMS in asked


def test_what_is_denied_is_a_warning(
    recorded: Recorded, tmp_path: Path
) -> None:
    recorded.refusals |= {NODES: 403, PODS: 403, "/api/v1/resourcequotas": 404}
    snapshot = read(recorded, tmp_path)
    assert snapshot.warnings == [
        f'cannot list nodes, which are left out: denied, the verb "list" is needed (no {NODES} for you)',
        f'cannot list pods in all namespaces, which are left out: denied, the verb "list" is needed '
        f"(no {PODS} for you)",
    ]
    assert "Node node-0" not in kinds(snapshot)


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        (
            CLAIMS,
            403,
            'cannot list resourceclaims.resource.k8s.io in all namespaces: denied, the verb "list" is needed',
        ),
        (
            f"{DRA}/resourceslices",
            403,
            "cannot list resourceslices.resource.k8s.io: denied",
        ),
        (NODES, 500, "cannot list nodes: HTTP 500: no /api/v1/nodes for you"),
        ("/apis/", 403, "cannot discover what the API server serves: denied"),
    ],
)
def test_what_cannot_be_missing(
    recorded: Recorded, tmp_path: Path, path: str, status: int, message: str
) -> None:
    recorded.refusals[path] = status
    with pytest.raises(SnapshotError) as failure:
        read(recorded, tmp_path)
    assert message in str(failure.value)


def test_a_cluster_without_the_api_is_told(
    recorded: Recorded, tmp_path: Path
) -> None:
    del recorded.groups["resource.k8s.io"]
    with pytest.raises(
        SnapshotError,
        match=r"does not serve resourceslices.*\(it serves of resource.k8s.io: none\)",
    ):
        read(recorded, tmp_path)


def test_only_some_namespaces(recorded: Recorded, tmp_path: Path) -> None:
    elsewhere = [claim(name, request()) for name in "xyz"]
    for claim_object, namespace in zip(
        elsewhere, ("ml", "web", "ml"), strict=True
    ):
        claim_object["metadata"]["namespace"] = namespace
    recorded.lists |= served(*elsewhere, path=CLAIMS)
    snapshot = read(recorded, tmp_path, namespaces=["web", "ml", "web"])
    assert [
        item["metadata"]["name"]
        for item in snapshot
        if item["kind"] == "ResourceClaim"
    ] == ["x", "z", "y"]
    assert "devices that they hold look free" in snapshot.warnings[0]
    assert CLAIMS not in {path for path, _ in recorded.asked}
    assert "Node node-0" in kinds(snapshot)


def test_the_context_decides_about_the_credentials(
    recorded: Recorded, tmp_path: Path
) -> None:
    with pytest.raises(
        SnapshotError,
        match=r"credentials of the kubeconfig are not accepted \(Unauthorized\)",
    ):
        read(recorded, tmp_path, context="stranger")
    with pytest.raises(
        SnapshotError, match=r"kubeconfig .*/kubeconfig: .*nobody"
    ):
        read(recorded, tmp_path, context="nobody")


def test_a_missing_kubeconfig_is_told(tmp_path: Path) -> None:
    with (
        pytest.raises(SnapshotError, match=r"kubeconfig .*/missing: "),
        connect(tmp_path / "missing"),
    ):
        pass


def test_a_missing_client_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    with (
        pytest.raises(SnapshotError, match=r"pip install 'dralloc\[cluster\]'"),
        connect(tmp_path),
    ):
        pass


@pytest.fixture
def deaf(tmp_path: Path) -> Path:
    """A kubeconfig for a port where nobody listens."""
    return write_kubeconfig(tmp_path, "http://127.0.0.1:1")


def test_a_server_that_is_not_there_is_told(deaf: Path) -> None:
    with (
        connect(deaf) as server,
        pytest.raises(SnapshotError, match=r"http://127\.0\.0\.1:1: .*refused"),
    ):
        take_snapshot(server)


def test_claims_are_found_by_the_pods_that_use_them(
    recorded: Recorded, tmp_path: Path
) -> None:
    cluster = load_documents(read(recorded, tmp_path))
    assert cluster.claims_of_pods == {
        ClaimKey("default", "train"): (ClaimKey("default", "a"),)
    }
