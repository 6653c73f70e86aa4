"""A run against the simulated API server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from dralloc.live.apply import Fence, JournalFile, Question, TaintRuleFence
from dralloc.live.apply.journal import JournalStep
from dralloc.live.apply.marks import FENCE
from dralloc.live.apply.pods import gates_of
from dralloc.live.apply.units import units_of
from dralloc.live.snapshot import LiveObjects
from dralloc.objects.choices import Mode
from dralloc.objects.cluster import Cluster
from dralloc.objects.load import load_documents
from dralloc.objects.names import PoolID
from live.apply.runs import GATE, run_on, small_cluster
from live.apply.schedules import Client, refusal
from simulated import Simulated
from wire import claim, device_class, gpus, node, pod, request, resource_slice


def devices(server: Simulated) -> dict[str, list[str]]:
    return {
        claim["metadata"]["name"]: [
            result["device"]
            for result in claim["status"]["allocation"]["devices"]["results"]
        ]
        for claim in server.of("resourceclaims")
        if claim.get("status", {}).get("allocation")
    }


def test_claims_are_written_with_their_finalizer_and_pods_released() -> None:
    server = Simulated()
    server.add(*small_cluster())
    run = run_on(server)
    _, units, asides = run.plan()
    assert asides == []
    outcome = run.write(units)
    assert outcome.findings == ()
    assert devices(server) == {"a": ["gpu-1"], "b": ["gpu-0"]}
    assert server.of("devicetaintrules") == []
    assert gates_of(server.one("pods", "train")) == []


def test_a_fence_that_was_noted_and_not_taken_is_taken_when_the_run_goes_on() -> (
    None
):
    server = Simulated()
    server.add(*small_cluster())
    run = run_on(server)
    _, units, _ = run.plan()
    plan = [unit.to_dict() for unit in units]
    journal = run.journal
    journal.add(
        JournalStep.BEGIN,
        run="run-1",
        fence=run.fence.kind,
        gate=GATE,
        units=plan,
    )
    journal.add(JournalStep.FENCE, parts=["gpu.example.com/pool-0"])
    fenced: list[int] = []
    run_on(
        server,
        journal=journal,
        pause=lambda _: fenced.append(len(server.of("devicetaintrules"))),
    ).resume()
    assert fenced == [1, 1]
    assert server.of("devicetaintrules") == []


def test_a_pool_that_another_run_has_fenced_is_left_to_it() -> None:
    server = Simulated()
    server.add(*small_cluster())
    other = TaintRuleFence(run_on(server, "run-2").objects, "run-2")
    assert other.take("gpu.example.com/pool-0")
    run = run_on(server)
    # As if the other run had begun just after the plan was made.
    plan = [
        *units_of(
            Question(Mode.FIRST_FIT).plan(load_documents(small_cluster()))
        )[0]
    ]
    outcome = run.write(run.plan()[1] or plan)
    assert outcome.units == ()
    assert devices(server) == {}
    assert [
        rule["metadata"]["labels"][FENCE]
        for rule in server.of("devicetaintrules")
    ] == ["run-2"]


def test_a_run_notes_its_fence_although_the_journal_is_of_one_that_ended(
    tmp_path: Path,
) -> None:
    server = Simulated()
    server.add(*small_cluster())
    path = tmp_path / "journal"
    for name in ("run-1", "run-2"):
        run = run_on(server, name, journal=JournalFile(path))
        run.write(run.plan()[1])
        server.add(*small_cluster())
    journal = JournalFile(path)
    assert journal.run == "run-2"
    assert journal.fenced == ["gpu.example.com/pool-0"]


@pytest.mark.parametrize(
    ("status", "why"),
    [(403, "denied (said the server)"), (429, "the API server is too busy")],
)
def test_what_a_rollback_cannot_look_at_is_not_called_taken_back(
    status: int, why: str
) -> None:
    server = Simulated()
    server.add(*small_cluster())
    client = Client(server)
    run = run_on(client)
    run.write(run.plan()[1])
    run.journal.entries = [
        entry
        for entry in run.journal.entries
        if entry["step"] != JournalStep.END
    ]
    client.agenda = dict.fromkeys(range(1000), refusal(status))
    again = run_on(server, journal=run.journal)
    again._executor.objects = LiveObjects(client, again.objects.versions)
    outcome = again.rollback()
    assert outcome.taken_back == ()
    reasons = {aside.key.name: aside.reason for aside in outcome.asides}
    denied = reasons.pop("b")
    # The pod of the first was released by the run, and may have become anything since: it keeps its claim.
    assert reasons == {
        "a": "a pod that uses it may be released already, which the server does not say"
    }
    assert denied.startswith(f"claim default/b: {why}")


def test_a_rollback_leaves_alone_what_is_reserved_and_what_is_gone() -> None:
    server = Simulated()
    server.add(*small_cluster())
    run = run_on(server)
    run.write(run.plan()[1])
    # As if it was killed before it released a pod.
    run.journal.entries = [
        entry
        for entry in run.journal.entries
        if entry["step"] not in (JournalStep.RELEASE, JournalStep.END)
    ]
    held = server.one("resourceclaims", "a")
    user = {"resource": "pods", "name": "train", "uid": "u"}
    server.objects["resourceclaims", "default", "a"] = {
        **held,
        "status": {**held["status"], "reservedFor": [user]},
    }
    del server.objects["resourceclaims", "default", "b"]
    outcome = run_on(server, journal=run.journal).rollback()
    assert [key.name for key in outcome.taken_back or ()] == ["b"]
    assert [aside.reason for aside in outcome.asides] == [
        "claim default/a: somebody has reserved it"
    ]


class LateFence(Fence):
    """Another run holds it in the second to fifth round; when it is lifted first, a scheduler takes a claim back."""

    kind = "late"

    def __init__(self, server: Simulated) -> None:
        self.server = server
        self.takes = 0
        self.is_lifted = False

    def parts(
        self,
        pools: Iterable[PoolID],  # noqa: ARG002
        look: Callable[[], Cluster],  # noqa: ARG002
    ) -> list[str]:
        return [f"part {self.takes}"]

    def take(self, part: str) -> bool:  # noqa: ARG002
        self.takes += 1
        return not 2 <= self.takes <= 5

    def lift(self, part: str) -> None:  # noqa: ARG002
        if not self.is_lifted:
            self.is_lifted = True
            place = ("resourceclaims", "default", "a")
            held = self.server.objects[place]
            self.server.objects[place] = {**held, "status": {}}


def test_what_a_later_plan_writes_is_not_left_alone() -> None:
    server = Simulated()
    server.add(
        node(),
        device_class(),
        resource_slice(gpus(4)),
        claim("a", request()),
        claim("b", request()),
        pod("p", "a"),
        pod("q", "b"),
    )

    def come_and_go(what: str, _done: int, _all: int) -> None:
        """While the first units are written, one pod goes, and another one comes."""
        if what == "writing" and ("pods", "default", "q") in server.objects:
            server.objects.pop(("pods", "default", "q"))
            server.add(claim("c", request()), pod("late", "c"))

    run = run_on(server, watch=1, progress=come_and_go)
    run.fence = LateFence(server)
    outcome = run.write(run.plan()[1])
    assert {key.name for key in outcome.placed} == {"p", "late"}
    reasons = {aside.key.name: aside.reason for aside in outcome.asides}
    # No scheduler is there that would bind them.
    assert "is gone" in reasons.pop("q")
    assert reasons == {
        name: f"pod default/{name}: is not bound to node-0 after 1 s"
        for name in ("p", "late")
    }
