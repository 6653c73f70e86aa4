"""The simulated API server answers a script of requests as a real one does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from control_plane import TOKEN, running
from dralloc.live.snapshot import (
    LISTED_KINDS,
    ListedKind,
    LiveObjects,
    Refused,
    Wire,
    condition,
    connect,
    key_of,
    served,
    version_of,
)
from live.snapshot.recorded import write_kubeconfig
from live_plane import GATES_ON, MORE
from simulated import Simulated
from wire import DRIVER, Json, claim, device_class, pod, request, resource_slice

KINDS = {kind.kind: kind for kind in (*LISTED_KINDS, *MORE)}
CLAIM, POD, NODE, RULE, LEASE = (
    KINDS[kind]
    for kind in ("ResourceClaim", "Pod", "Node", "DeviceTaintRule", "Lease")
)
FINALIZER = "resource.kubernetes.io/delete-protection"
ALLOCATION = {
    "devices": {
        "results": [
            {
                "request": "gpu",
                "driver": DRIVER,
                "pool": "pool-0",
                "device": "gpu-0",
            }
        ]
    }
}
OTHER = {
    "devices": {
        "results": [
            {
                "request": "gpu",
                "driver": DRIVER,
                "pool": "pool-0",
                "device": "gpu-1",
            }
        ]
    }
}
USER = {"resource": "pods", "name": "p", "uid": "u"}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Script:
    """Asks, and notes what it is told: the status, and what the object says then."""

    def __init__(self, wire: Wire, versions: dict[ListedKind, str]) -> None:
        self.objects = LiveObjects(wire, versions)
        self.dry = LiveObjects(wire, versions, dry=True)
        self.told: list[str] = []

    def ask(
        self,
        what: str,
        call: Callable[[], Json | None],
        tell: Callable[[Json], object] = lambda _one: "",
    ) -> Json:
        try:
            answer = call() or {}
        except Refused as refusal:
            self.told.append(f"{what}: {refusal.status}")
            return {}
        self.told.append(f"{what}: 200 {tell(answer)}")
        return answer

    def status(self, what: str, claim_state: Json, status: Json) -> Json:
        """Write a claim's status on the state that is given."""
        change = {"metadata": condition(claim_state), "status": status}
        now = self.ask(
            what,
            lambda: self.objects.patch(
                CLAIM, key_of(claim_state), change, "status"
            ),
            _allocated,
        )
        return now or claim_state


def _allocated(claim_object: Json) -> list[str]:
    allocation = claim_object.get("status", {}).get("allocation") or {
        "devices": {}
    }
    return [
        result["device"] for result in allocation["devices"].get("results", [])
    ]


def _finalizers(claim_object: Json) -> list[str]:
    finalizers: list[str] = claim_object["metadata"].get("finalizers", [])
    return finalizers


def claims(script: Script) -> None:
    objects, ask = script.objects, script.ask
    made = ask(
        "create",
        lambda: objects.create(CLAIM, claim("a", request())),
        lambda answer: answer.get("status", {}),
    )
    ask("create again", lambda: objects.create(CLAIM, claim("a", request())))
    ask(
        "create what is invalid",
        lambda: objects.create(CLAIM, claim("b", request(count=-1))),
    )
    ask(
        "get what is not there",
        lambda: objects.get(CLAIM, key_of(claim("zz", request()))),
    )
    stale, key = made, key_of(made)
    protected = {"metadata": {**condition(made), "finalizers": [FINALIZER]}}
    ask(
        "dry finalizer",
        lambda: script.dry.patch(CLAIM, key, protected),
        _finalizers,
    )
    made = ask(
        "finalizer", lambda: objects.patch(CLAIM, key, protected), _finalizers
    )
    same = {"metadata": {"finalizers": [FINALIZER]}}
    ask(
        "nothing new",
        lambda: objects.patch(CLAIM, key, same),
        lambda answer: version_of(answer) == version_of(made),
    )
    script.status("stale status", stale, {"allocation": ALLOCATION})
    alien = {**made, "metadata": {**made["metadata"], "uid": "another"}}
    script.status("status of another one", alien, {"allocation": ALLOCATION})
    script.status("reserve without allocation", made, {"reservedFor": [USER]})
    unknown = {
        "devices": {
            "results": [
                {**ALLOCATION["devices"]["results"][0], "request": "none"}
            ]
        }
    }
    script.status("allocation for no request", made, {"allocation": unknown})
    beside = {"status": {"allocation": ALLOCATION}}
    ask(
        "allocation beside status",
        lambda: objects.patch(CLAIM, key, beside),
        _allocated,
    )
    made = script.status("allocation", made, {"allocation": ALLOCATION})
    script.status("another allocation", made, {"allocation": OTHER})
    ask(
        "spec",
        lambda: objects.patch(
            CLAIM, key, {"spec": {"devices": {"requests": [request("other")]}}}
        ),
    )
    made = script.status("reserve", made, {"reservedFor": [USER]})
    script.status("deallocate what is reserved", made, {"allocation": None})
    made = script.status("let go", made, {"reservedFor": None})
    ask("delete a stale one", lambda: objects.delete(CLAIM, stale))
    ask("delete", lambda: objects.delete(CLAIM, made))
    made = ask(
        "being deleted",
        lambda: objects.get(CLAIM, key),
        lambda answer: "deletionTimestamp" in answer["metadata"],
    )
    ask(
        "another finalizer then",
        lambda: objects.patch(
            CLAIM, key, {"metadata": {"finalizers": [FINALIZER, "x/y"]}}
        ),
    )
    script.status("deallocate", made, {"allocation": None})
    ask(
        "last finalizer",
        lambda: objects.patch(CLAIM, key, {"metadata": {"finalizers": None}}),
    )
    ask("gone", lambda: objects.get(CLAIM, key))


def pods(script: Script) -> None:
    objects, ask = script.objects, script.ask
    wanted = pod(
        "p",
        schedulingGates=[{"name": "a.b/c"}, {"name": "d.e/f"}],
        containers=[{"name": "c", "image": "x"}],
    )
    wanted["spec"]["resourceClaims"] = [
        {"name": "c", "resourceClaimName": "some"}
    ]
    made = ask("create pod", lambda: objects.create(POD, wanted))
    key = key_of(wanted)

    def patch(spec: Json) -> Callable[[], Json]:
        return lambda: objects.patch(
            POD,
            key,
            {"metadata": {"uid": made["metadata"]["uid"]}, "spec": spec},
        )

    ask("another gate", patch({"schedulingGates": [{"name": "x.y/z"}]}))
    ask("tighten", patch(_on("node-0")))
    ask("loosen", patch(_on("node-1")))
    ask("take a gate", patch({"schedulingGates": [{"name": "a.b/c"}]}))
    ask(
        "take the last",
        patch({"schedulingGates": []}),
        lambda answer: answer["spec"].get("schedulingGates") or [],
    )
    ask("tighten too late", patch({"affinity": None}))


def _on(node: str) -> Json:
    only = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "affinity": {
            "nodeAffinity": {
                REQUIRED: {"nodeSelectorTerms": [{"matchFields": [only]}]}
            }
        }
    }


def others(script: Script) -> None:
    objects, ask = script.objects, script.ask
    rule = {
        "metadata": {"name": "fence", "labels": {"dralloc.dev/fence": "run-1"}},
        "spec": {
            "deviceSelector": {"driver": DRIVER, "pool": "pool-0"},
            "taint": {"key": "a/b", "effect": "NoSchedule"},
        },
    }
    made = ask("rule", lambda: objects.create(RULE, rule))
    ask("rule again", lambda: objects.create(RULE, rule))
    ask(
        "rules by label",
        lambda: objects.listed(RULE, "dralloc.dev/fence=run-1"),
        lambda answer: len(answer["items"]),
    )
    ask(
        "rules by another label",
        lambda: objects.listed(RULE, "dralloc.dev/fence=run-2"),
        lambda answer: len(answer["items"]),
    )
    ask("delete rule", lambda: objects.delete(RULE, made))
    ask("delete rule again", lambda: objects.delete(RULE, made))
    lease = {
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"holderIdentity": "me"},
    }
    held = ask("lease", lambda: objects.create(LEASE, lease))
    ask(
        "renew",
        lambda: objects.replace(
            LEASE, {**held, "spec": {"holderIdentity": "you"}}
        ),
    )
    ask("renew a stale one", lambda: objects.replace(LEASE, held))
    ask("class", lambda: objects.create(KINDS["DeviceClass"], device_class()))
    ask(
        "slice",
        lambda: objects.create(KINDS["ResourceSlice"], resource_slice()),
    )


def watches(script: Script) -> None:
    objects = script.objects
    start = objects.listed(CLAIM)["metadata"]["resourceVersion"]
    made = objects.create(CLAIM, claim("w", request()))
    objects.patch(CLAIM, key_of(made), {"metadata": {"labels": {"x": "y"}}})
    objects.delete(CLAIM, objects.get(CLAIM, key_of(made)))
    seen = []
    for event in objects.watch(CLAIM, start):
        if event["type"] != "BOOKMARK":
            seen.append(
                f"{event['type']} {event['object']['metadata']['name']}"
            )
        if event["type"] == "DELETED":
            break
    script.told += seen


def answers(wire: Wire, versions: dict[ListedKind, str]) -> list[str]:
    script = Script(wire, versions)
    for part in (claims, pods, others, watches):
        part(script)
    return script.told


def of_simulated() -> list[str]:
    server = Simulated()
    versions = {kind: kind.versions[0] for kind in KINDS.values()}
    return answers(server, {**versions, RULE: "v1beta2"})


def test_it_keeps_the_rules() -> None:
    told = of_simulated()
    assert "create again: 409" in told
    assert "another allocation: 422" in told
    assert "stale status: 409" in told
    assert told[-3:] == ["ADDED w", "MODIFIED w", "DELETED w"]


def test_a_real_one_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with running(tmp_path, GATES_ON) as plane:
        kubeconfig = write_kubeconfig(
            tmp_path, f"https://127.0.0.1:{plane.port}", TOKEN
        )
        with connect(kubeconfig) as server:
            real = answers(server.wire, served(server, tuple(KINDS.values())))
    assert of_simulated() == real
