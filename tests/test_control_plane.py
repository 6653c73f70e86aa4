"""The control plane of tests does what the tests that use it rely on."""

from __future__ import annotations

from pathlib import Path

from control_plane import path_of, running
from wire import allocated, claim


def test_objects_are_kept_with_their_status_and_deleted(tmp_path: Path) -> None:
    claim_object = allocated("c", {"device": "gpu-0"})
    with running(tmp_path) as server:
        assert server.create(claim_object).accepted
        kept = server.request("GET", path_of(claim_object)).body
        assert (
            kept["status"]["allocation"]["devices"]["results"][0]["device"]
            == "gpu-0"
        )
        assert server.create(claim("not a name")).status == 422
        server.delete(claim_object)
        assert server.request("GET", path_of(claim_object)).status == 404
