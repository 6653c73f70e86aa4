"""The parts of a run: the journal, fences by nodes, selections, what is released where."""

from __future__ import annotations

from pathlib import Path

import pytest

from dralloc.live.apply import (
    JournalFile,
    NodeTaintFence,
    Selection,
    TaintRuleFence,
)
from dralloc.live.apply.fence import run_of
from dralloc.live.apply.journal import JournalStep, WriteJournal, default_path
from dralloc.live.apply.selection import parse_selector
from dralloc.live.snapshot import ApiServer, LiveObjects, ReadLimits, served
from dralloc.objects.errors import ApplyError, DrallocError
from live.apply.runs import GATE, gated, run_on, small_cluster
from live.apply.schedules import Client
from simulated import Simulated
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

VERSIONS = served(ApiServer(Simulated(), ReadLimits(), verified=True))


def test_a_journal_is_read_back(tmp_path: Path) -> None:
    journal = JournalFile(tmp_path / "deep" / "journal")
    assert not journal.unfinished
    journal.add(JournalStep.BEGIN, run="r", units=[])
    journal.add(JournalStep.FENCE, parts=["a/b"])
    again = JournalFile(journal.path)
    assert again.entries == journal.entries
    assert again.unfinished
    assert again.run == "r"
    journal.close()
    again.add(JournalStep.END)
    assert not JournalFile(journal.path).unfinished
    again.add(JournalStep.BEGIN, run="s", units=[])
    assert [entry["step"] for entry in JournalFile(journal.path).entries] == [
        "begin"
    ]


def test_a_line_that_was_cut_off_counts_for_nothing(tmp_path: Path) -> None:
    journal = JournalFile(tmp_path / "journal")
    journal.add(JournalStep.BEGIN, run="r", units=[])
    with journal.path.open("ab") as file:
        file.write(b'{"step": "fen')
    again = JournalFile(journal.path)
    assert [entry["step"] for entry in again.entries] == ["begin"]
    again.add(JournalStep.END)
    assert [entry["step"] for entry in JournalFile(journal.path).entries] == [
        "begin",
        "end",
    ]


def test_a_beginning_that_was_cut_off_is_in_the_way_of_no_later_run(
    tmp_path: Path,
) -> None:
    """A kill may cut a long line off, and the first line has the whole plan."""
    path = tmp_path / "journal"
    path.write_bytes(b'{"step": "begin", "run": "r", "units": [')
    journal = JournalFile(path)
    assert not journal.unfinished
    journal.add(JournalStep.BEGIN, run="s", units=[])
    journal.add(JournalStep.FENCE, parts=["a/b"])
    journal_after_kill = JournalFile(path)
    assert journal_after_kill.run == "s"
    assert journal_after_kill.fenced == ["a/b"]


def test_a_run_that_begins_beside_another_leaves_its_journal(
    tmp_path: Path,
) -> None:
    """Both have seen that nothing is unfinished, and plan; the second would lose what the first has written."""
    path = tmp_path / "journal"
    first, second = JournalFile(path), JournalFile(path)
    first.add(JournalStep.BEGIN, run="r", units=[])
    first.add(JournalStep.FENCE, parts=["a/b"])
    entries = first.entries
    with pytest.raises(ApplyError, match="run r is at work"):
        second.add(JournalStep.BEGIN, run="s", units=[])
    first.close()  # as a kill does
    with pytest.raises(ApplyError, match="run r has begun meanwhile"):
        second.add(JournalStep.BEGIN, run="s", units=[])
    assert JournalFile(path).entries == entries


def test_nobody_goes_on_with_a_run_that_is_at_work(tmp_path: Path) -> None:
    """Its fence would be lifted while it writes."""
    path = tmp_path / "journal"
    at_work = JournalFile(path)
    at_work.add(JournalStep.BEGIN, run="r", units=[])
    resuming = JournalFile(path)
    at_work.add(JournalStep.FENCE, parts=["a/b"])
    with pytest.raises(ApplyError, match="run r is at work"):
        resuming.hold()
    at_work.add(JournalStep.END)
    resuming.hold()
    assert not resuming.unfinished


@pytest.mark.parametrize(
    "text",
    [
        "just text\n",
        "just text",
        '{"kind":"List","items":[]}',
        '{"kind":"List","items":[]}\n',
        '{"step":[]}\n',
        '{"step":"walk"}\n',
        "[1]\n2\n",
        "null\n",
        "\n",
    ],
)
def test_something_else_is_no_journal(tmp_path: Path, text: str) -> None:
    """A run writes its journal anew, so that whoever names another file would lose it."""
    path = tmp_path / "journal"
    path.write_text(text)
    with pytest.raises(ApplyError, match="is no journal of dralloc"):
        JournalFile(path)
    assert path.read_text() == text


@pytest.mark.parametrize("text", ["", '{"st', '{"step":"begin","ru', "\0\0"])
def test_an_empty_journal_is_one(tmp_path: Path, text: str) -> None:
    path = tmp_path / "journal"
    path.write_text(text)
    journal = JournalFile(path)
    journal.add(JournalStep.BEGIN, run="r", units=[])
    assert JournalFile(path).run == "r"


def test_a_cluster_has_a_journal_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert default_path("https://10.0.0.1:6443") == Path(
        "/state/dralloc/10.0.0.1%3A6443.journal"
    )
    hosts = ("gpu.a.org", "gpu-a.org", "a.org/gpu", "a.org:80", "a.org/80")
    assert len({default_path(f"https://{host}") for host in hosts}) == 5
    assert {default_path(f"https://{host}").parent for host in hosts} == {
        Path("/state/dralloc")
    }


def test_a_fenced_node_keeps_its_other_taints_and_what_is_ordered_meanwhile() -> (
    None
):
    server = Simulated()
    other = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    server.add({**node("a"), "spec": {"taints": [other]}}, node("b"))
    objects = run_on(server).objects
    fence = NodeTaintFence(objects, "run-1")
    assert [fence.take(name) for name in ("a", "b", "gone")] == [
        True,
        True,
        True,
    ]
    assert fence.take("a")  # once more is no mistake
    assert not NodeTaintFence(objects, "run-2").take("a")
    assert [run_of(item) for item in server.of("nodes")] == ["run-1", "run-1"]
    server.send(
        "PATCH", "/api/v1/nodes/a", {}, {"spec": {"unschedulable": True}}
    )
    NodeTaintFence(objects, "run-2").lift("b")
    assert run_of(server.one("nodes", "b", "")) == "run-1"
    for name in ("a", "b", "gone"):
        fence.lift(name)
    assert server.one("nodes", "a", "")["spec"] == {
        "taints": [other],
        "unschedulable": True,
    }
    assert server.one("nodes", "b", "")["spec"] == {}


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("app=train", True),
        ("app==train,tier!=low", True),
        ("app in (serve, train)", True),
        ("app notin (train)", False),
        ("tier", False),
        ("!tier,app", True),
    ],
)
def test_selectors_are_kubectls(text: str, fits: bool) -> None:
    assert parse_selector(text).matches({"app": "train"}) is fits


@pytest.mark.parametrize("text", ["a b", "tier>5", "!tier<5", "app=a>b"])
def test_an_odd_selector_is_named(text: str) -> None:
    with pytest.raises(
        DrallocError, match=f"--selector {text}: '{text}' is none of KEY"
    ):
        parse_selector(text)


def names(objects: list[Json], selection: Selection) -> list[str]:
    return [
        f"{item['kind']} {item['metadata']['name']}"
        for item in selection.of(objects)
    ]


def test_a_claim_is_selected_with_its_pod() -> None:
    objects = [
        gated("p", "a"),
        pod("q", "b"),
        claim("a", request()),
        claim("b", request()),
        claim("c", request()),
    ]
    kept = names(objects, Selection())
    assert kept == [
        "Pod p",
        "Pod q",
        "ResourceClaim a",
        "ResourceClaim b",
        "ResourceClaim c",
    ]
    assert names(objects, Selection(gated=True)) == ["Pod p", "ResourceClaim a"]
    assert names(objects, Selection(namespaces=frozenset(["x"]))) == []
    selection = Selection().but([])
    assert names(objects, selection) == kept


def test_a_pod_whose_devices_many_nodes_reach_is_kept_on_its_node() -> None:
    server = Simulated()
    selector = {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "rack", "operator": "In", "values": ["r"]}
                ]
            }
        ]
    }
    remote = resource_slice(gpus(1), nodeSelector=selector)
    zone = {"key": "zone", "operator": "Exists"}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {
        "nodeAffinity": {
            required: {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}
        }
    }
    waiting = gated("p", "a", affinity=affinity)
    server.add(
        node("node-0", rack="r", zone="z"),
        node("node-1"),
        device_class(),
        remote,
        claim("a", request()),
        waiting,
    )
    run = run_on(server)
    outcome = run.write(run.plan()[1])
    assert [str(key) for key in outcome.released] == ["default/p"]
    terms = server.one("pods", "p")["spec"]["affinity"]["nodeAffinity"][
        required
    ]["nodeSelectorTerms"]
    only = {"key": "metadata.name", "operator": "In", "values": ["node-0"]}
    assert terms == [{"matchExpressions": [zone], "matchFields": [only]}]


def test_terms_of_node_affinity_keep_what_the_server_lets_nobody_change() -> (
    None
):
    """Conditions keep their order, and a term without any gets none; the pod stayed behind its gate with its claim."""
    server = Simulated()
    only = {"key": "metadata.name", "operator": "In", "values": ["node-0"]}
    not_there = {"key": "metadata.name", "operator": "NotIn", "values": ["x"]}
    terms = [{}, {"matchFields": [only, not_there]}]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    affinity = {"nodeAffinity": {required: {"nodeSelectorTerms": terms}}}
    server.add(
        node(),
        device_class(),
        resource_slice(gpus(1)),
        claim("a", request()),
        gated("p", "a", affinity=affinity),
    )
    run = run_on(server)
    outcome = run.write(run.plan()[1])
    assert outcome.asides == ()
    assert [str(key) for key in outcome.released] == ["default/p"]
    assert server.one("pods", "p")["spec"]["affinity"] == affinity


def test_a_gang_is_written_together_or_not_at_all() -> None:
    server = Simulated()
    labels = {"team": "one"}
    pods = [gated(name, name) for name in ("p", "q")]
    for pod_object in pods:
        pod_object["metadata"]["labels"] = labels
    server.add(
        node(),
        device_class(),
        resource_slice(gpus(2)),
        claim("p", request()),
        claim("q", request()),
        *pods,
    )
    run = run_on(server)
    run.question = type(run.question)(
        choices=type(run.question.choices)(gang="team")
    )
    units = run.plan()[1]
    assert [len(unit.demands) for unit in units] == [2]
    server.objects.pop(("resourceclaims", "default", "q"))
    outcome = run.write(units)
    assert outcome.released == ()
    assert not server.one("resourceclaims", "p").get("status")


def test_a_claim_that_no_pod_uses_is_written_beside_a_pod_of_its_name() -> None:
    server = Simulated()
    claims = [claim(name, request()) for name in ("x", "y")]
    server.add(
        node(),
        device_class(),
        resource_slice(gpus(2)),
        *claims,
        gated("x", "y"),
    )
    run = run_on(server)
    outcome = run.write(run.plan()[1])
    assert sorted(map(str, outcome.claims)) == ["default/x", "default/y"]
    assert [str(key) for key in outcome.released] == ["default/x"]
    assert (outcome.asides, outcome.findings) == ((), ())


def test_claims_of_templates_are_waited_for() -> None:
    server = Simulated()
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "t", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request()]}}},
    }
    waiting = gated("p")
    waiting["spec"]["resourceClaims"] = [
        {"name": "gpu", "resourceClaimTemplateName": "t"}
    ]
    server.add(
        node(), device_class(), resource_slice(gpus(1)), template, waiting
    )

    def controller(_seconds: float) -> None:
        uid = server.one("pods", "p")["metadata"]["uid"]
        owner = {
            "apiVersion": "v1",
            "kind": "Pod",
            "name": "p",
            "uid": uid,
            "controller": True,
        }
        made = claim("p-gpu-x", request())
        made["metadata"]["ownerReferences"] = [owner]
        made["metadata"]["annotations"] = {
            "resource.kubernetes.io/pod-claim-name": "gpu"
        }
        server.add(made)
        server.one("pods", "p")["status"] = {
            "resourceClaimStatuses": [
                {"name": "gpu", "resourceClaimName": "p-gpu-x"}
            ]
        }

    assert [str(aside.key) for aside in run_on(server).plan()[2]] == [
        "default/p"
    ]
    run = run_on(server, wait=5, pause=controller)
    _, units, asides = run.plan()
    assert asides == []
    assert [
        str(written_claim.key)
        for unit in units
        for written_claim in unit.claims
    ] == ["default/p-gpu-x"]


def test_another_gate_keeps_a_pod_out_of_the_plan() -> None:
    server = Simulated()
    other = pod(
        "p",
        "a",
        schedulingGates=[{"name": GATE}, {"name": "kueue.x-k8s.io/admission"}],
    )
    server.add(
        node(),
        device_class(),
        resource_slice(gpus(1)),
        claim("a", request()),
        other,
    )
    assert run_on(server).plan()[1] == []


def test_what_is_to_be_written_is_shown() -> None:
    server = Simulated()
    server.add(*small_cluster())
    run = run_on(server)
    outcome = run.write(run.plan()[1])
    assert str(outcome).startswith(
        "2 claims of 2 pods and claims written and read back, 1 released"
    )
    assert outcome.to_dict()["placed"] == ["default/serve", "default/train"]


FENCES = {TaintRuleFence: "gpu.example.com/pool-0", NodeTaintFence: "node-0"}


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        (TaintRuleFence, 0),
        (TaintRuleFence, 1),
        *((NodeTaintFence, n) for n in range(4)),
    ],
)
def test_of_two_runs_that_take_a_fence_at_once_one_has_it(
    kind: type[TaintRuleFence | NodeTaintFence], step: int
) -> None:
    server = Simulated()
    server.add(node())
    taken: list[bool] = []
    second = kind(LiveObjects(server, VERSIONS), "run-2")
    client = Client(
        server, {step: lambda: taken.append(second.take(FENCES[kind]))}
    )
    first = kind(LiveObjects(client, VERSIONS), "run-1")
    taken.append(first.take(FENCES[kind]))
    assert sorted(taken) == [False, True]
    first.lift(FENCES[kind])
    second.lift(FENCES[kind])
    assert fenced(server) == []


@pytest.mark.parametrize(
    ("kind", "plural"),
    [(TaintRuleFence, "devicetaintrules"), (NodeTaintFence, "nodes")],
)
def test_a_fence_is_lifted_although_others_write_its_objects(
    kind: type[TaintRuleFence | NodeTaintFence], plural: str
) -> None:
    server = Simulated()
    server.add(node())
    kind(LiveObjects(server, VERSIONS), "run-1").take(FENCES[kind])
    (item,) = server.of(plural)
    path = kind_path(plural, item["metadata"]["name"])

    def write() -> None:
        server.send(
            "PATCH",
            f"{path}/status",
            {},
            {"status": {"conditions": [{"type": "Seen"}]}},
        )

    kind(LiveObjects(Client(server, {2: write}), VERSIONS), "run-1").lift(
        FENCES[kind]
    )
    assert fenced(server) == []


def kind_path(plural: str, name: str) -> str:
    return next(
        kind.path(version, "", name)
        for kind, version in VERSIONS.items()
        if kind.plural == plural
    )


def fenced(server: Simulated) -> list[Json]:
    """What keeps others away."""
    return [
        *server.of("devicetaintrules"),
        *(item for item in server.of("nodes") if run_of(item)),
    ]


def test_what_is_written_again_is_adopted_no_more() -> None:
    journal = WriteJournal()
    for step in (JournalStep.ALLOCATION, JournalStep.ADOPT):
        journal.add(step, uid="a", claim=["default", "x"], earlier="run-0")
        journal.add(step, uid="b", claim=["default", "y"])
    assert {uid: claim.earlier for uid, claim in journal.adopted.items()} == {
        "a": "run-0",
        "b": "",
    }
    journal.add(JournalStep.ALLOCATION, uid="a")
    assert journal.adopted.keys() == {"b"}
