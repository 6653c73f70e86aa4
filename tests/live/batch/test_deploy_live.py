"""A real API server takes what is in deploy/, and lets the account that it makes do what is needed and no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from dralloc.live.snapshot import Refused, connect
from live.batch.test_batch_live import PATHS, account
from live_plane import LivePlane, live
from wire import Json, allocated, claim, device_class, request

STRICT = {"dryRun": "All", "fieldValidation": "Strict"}
RESULT = allocated("x", {"device": "gpu-0"})["status"]["allocation"]
CLAIM = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/a"
MANIFESTS = {
    **PATHS,
    "Deployment": "/apis/apps/v1/namespaces/dralloc-system/deployments",
}


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LivePlane]:
    with live(tmp_path_factory.mktemp("plane")) as live_plane:
        yield live_plane


@pytest.fixture(scope="module")
def kubeconfig(
    plane: LivePlane, root: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Of the account without what is only needed to taint nodes."""
    return account(
        plane, root, tmp_path_factory.mktemp("account"), taints_nodes=False
    )


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.mark.parametrize("name", ["rbac", "node-taints", "deployment"])
def test_manifests_are_taken(
    plane: LivePlane, kubeconfig: Path, root: Path, name: str
) -> None:
    assert kubeconfig.is_file()  # their namespace is there
    with plane.objects() as (server, _):
        for manifest in yaml.safe_load_all(
            (root / "deploy" / f"{name}.yaml").read_text()
        ):
            again = {
                **manifest,
                "metadata": {
                    **manifest["metadata"],
                    "name": f"{manifest['metadata']['name']}-again",
                },
            }
            made = server.wire.send(
                "POST", MANIFESTS[manifest["kind"]], STRICT, again
            )
            assert made["kind"] == manifest["kind"]


def test_only_what_is_needed_may_be_done(
    plane: LivePlane, kubeconfig: Path
) -> None:
    plane.add([device_class(), claim("a", request())])
    with connect(kubeconfig) as server:
        send = server.wire.send
        assert send(
            "PATCH",
            CLAIM,
            {},
            {"metadata": {"annotations": {"dralloc.dev/run": "x"}}},
        )
        assert send(
            "PATCH", f"{CLAIM}/status", {}, {"status": {"allocation": RESULT}}
        )["status"]["allocation"]
        denied: list[tuple[str, str, Json | None]] = [
            ("GET", "/api/v1/secrets", None),
            ("GET", "/api/v1/configmaps", None),
            ("DELETE", CLAIM, None),
            (
                "PATCH",
                "/api/v1/nodes/node-0",
                {"spec": {"unschedulable": True}},
            ),
            (
                "PATCH",
                "/apis/resource.k8s.io/v1/resourceslices/s",
                {"metadata": {"labels": {"x": "y"}}},
            ),
            (
                "POST",
                "/api/v1/namespaces/default/pods",
                {"metadata": {"name": "p"}},
            ),
            ("DELETE", "/api/v1/namespaces/default/pods/p", None),
            (
                "GET",
                "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler",
                None,
            ),
        ]
        for method, path, body in denied:
            with pytest.raises(Refused) as refusal:
                send(method, path, {}, body)
            assert refusal.value.status == 403, path


def test_allocating_needs_the_right_to_bind(
    plane: LivePlane, kubeconfig: Path
) -> None:
    """Kubernetes 1.36 asks for more than the right to write a status (DRAResourceClaimGranularStatusAuthorization)."""
    plane.wipe(["ResourceClaim"])
    plane.add([claim("a", request())])
    role = f"{PATHS['ClusterRole']}/dralloc-batch"
    with plane.objects() as (admin, _), connect(kubeconfig) as server:
        rules = admin.wire.send("GET", role)["rules"]
        fewer = [
            rule
            for rule in rules
            if rule["resources"] != ["resourceclaims/binding"]
        ]
        admin.wire.send("PATCH", role, {}, {"rules": fewer})
        with pytest.raises(
            Refused, match='cannot patch resource "resourceclaims/binding"'
        ):
            server.wire.send(
                "PATCH",
                f"{CLAIM}/status",
                {},
                {"status": {"allocation": RESULT}},
            )
        admin.wire.send("PATCH", role, {}, {"rules": rules})
