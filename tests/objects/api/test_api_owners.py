"""Which pods each kind of owner asks for."""

from typing import Any

import pytest

from dralloc.objects.api import Node, ObjectMeta, ObjectReader, Pod, PodOwner
from dralloc.objects.api.nodes import NodeSpec, Taint
from dralloc.objects.api.owners import pods_of

Json = dict[str, Any]
WORKER = "spec.mpiReplicaSpecs.Worker"
TEMPLATE: Json = {"spec": {"containers": [{"name": "c"}]}}
JOB: Json = {"template": TEMPLATE}


def read(
    api_version: str, kind: str, spec: object, status: object = None
) -> PodOwner:
    reader = ObjectReader()
    raw = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": spec,
        "status": status,
    }
    owner = reader.read(raw, "")
    assert not reader.errors
    assert isinstance(owner, PodOwner)
    return owner


def names(api_version: str, kind: str, spec: object) -> list[str]:
    return [pod.name for pod in pods_of(read(api_version, kind, spec), ())]


def mpi(**worker: object) -> Json:
    return {
        "mpiReplicaSpecs": {
            "Launcher": {"template": TEMPLATE},
            "Worker": {"template": TEMPLATE, **worker},
        }
    }


RAY: Json = {
    "headGroupSpec": {"template": TEMPLATE},
    "workerGroupSpecs": [
        {
            "groupName": "big",
            "replicas": 1,
            "numOfHosts": 2,
            "template": TEMPLATE,
        },
        {"groupName": "least", "minReplicas": 1, "template": TEMPLATE},
        {
            "groupName": "most",
            "replicas": 3,
            "maxReplicas": 1,
            "template": TEMPLATE,
        },
        {
            "groupName": "off",
            "replicas": 3,
            "suspend": True,
            "template": TEMPLATE,
        },
    ],
}
RAY_PODS = [
    "a-head",
    "a-big-worker-0-0",
    "a-big-worker-0-1",
    "a-least-worker-0-0",
    "a-most-worker-0-0",
]
PYTORCH: Json = {
    "pytorchReplicaSpecs": {
        "Master": {"template": TEMPLATE},
        "Worker": {"replicas": 2, "template": TEMPLATE},
    }
}
JOB_SET: Json = {
    "replicatedJobs": [
        {"name": "driver", "template": {"spec": JOB}},
        {
            "name": "worker",
            "replicas": 2,
            "template": {"spec": {**JOB, "parallelism": 2, "completions": 2}},
        },
    ]
}


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "pods"),
    [
        ("v1", "ReplicationController", {"replicas": 2, **JOB}, ["a-0", "a-1"]),
        (
            "kubeflow.org/v2beta1",
            "MPIJob",
            mpi(replicas=2),
            ["a-launcher-0", "a-worker-0", "a-worker-1"],
        ),
        ("kubeflow.org/v1", "MPIJob", mpi(), ["a-launcher-0"]),
        (
            "kubeflow.org/v1",
            "PyTorchJob",
            PYTORCH,
            ["a-master-0", "a-worker-0", "a-worker-1"],
        ),
        (
            "jobset.x-k8s.io/v1alpha2",
            "JobSet",
            JOB_SET,
            [
                "a-driver-0-0",
                "a-worker-0-0",
                "a-worker-0-1",
                "a-worker-1-0",
                "a-worker-1-1",
            ],
        ),
        (
            "leaderworkerset.x-k8s.io/v1",
            "LeaderWorkerSet",
            {
                "replicas": 2,
                "leaderWorkerTemplate": {"size": 2, "workerTemplate": TEMPLATE},
            },
            ["a-0", "a-1", "a-0-1", "a-1-1"],
        ),
        ("ray.io/v1", "RayCluster", RAY, RAY_PODS),
        (
            "ray.io/v1",
            "RayJob",
            {"rayClusterSpec": RAY, "submitterPodTemplate": TEMPLATE},
            [*RAY_PODS, "a-submitter"],
        ),
        (
            "ray.io/v1",
            "RayJob",
            {"clusterSelector": {"ray.io/cluster": "b"}},
            [],
        ),
        ("ray.io/v1", "RayService", {"rayClusterConfig": RAY}, RAY_PODS),
        (
            "batch.volcano.sh/v1alpha1",
            "Job",
            {
                "tasks": [
                    {"name": "ps", "replicas": 1, "template": TEMPLATE},
                    {"replicas": 1, "template": TEMPLATE},
                ]
            },
            ["a-ps-0", "a-1-0"],
        ),
        (
            "kueue.x-k8s.io/v1beta2",
            "Workload",
            {"podSets": [{"name": "main", "count": 2, "template": TEMPLATE}]},
            ["a-main-0", "a-main-1"],
        ),
    ],
)
def test_pods_of_each_kind(
    api_version: str, kind: str, spec: Json, pods: list[str]
) -> None:
    assert names(api_version, kind, spec) == pods


def test_the_leader_of_a_group_may_have_a_template_of_its_own() -> None:
    leader = {"metadata": {"labels": {"role": "leader"}}, **TEMPLATE}
    spec = {
        "leaderWorkerTemplate": {
            "size": 3,
            "leaderTemplate": leader,
            "workerTemplate": TEMPLATE,
        }
    }
    first, *others = pods_of(
        read("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", spec), ()
    )
    assert first.metadata.labels == {"role": "leader"}
    assert [pod.metadata.labels for pod in others] == [{}, {}]


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"),
    [
        ("batch/v1", "Job", {**JOB, "suspend": True}),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", {**JOB_SET, "suspend": True}),
        (
            "kubeflow.org/v1",
            "PyTorchJob",
            {**PYTORCH, "runPolicy": {"suspend": True}},
        ),
        ("ray.io/v1", "RayCluster", {**RAY, "suspend": True}),
        ("kueue.x-k8s.io/v1beta1", "Workload", {"podSets": []}),
    ],
)
def test_owners_may_be_suspended(
    api_version: str, kind: str, spec: Json
) -> None:
    assert read(api_version, kind, spec).suspended


def condition(kind: str, status: str = "True") -> Json:
    return {"conditions": [{"type": kind, "status": status}]}


def test_a_workload_of_kueue_is_suspended_until_it_is_admitted() -> None:
    def suspended(status: Json, **spec: object) -> bool:
        return read(
            "kueue.x-k8s.io/v1beta1",
            "Workload",
            {"podSets": [], **spec},
            status,
        ).suspended

    assert suspended({})
    assert suspended(condition("Admitted", "False"))
    assert not suspended(condition("Admitted"))
    assert suspended(condition("Admitted"), active=False)


@pytest.mark.parametrize(
    ("status", "ended"),
    [
        (condition("Complete"), True),
        (condition("Failed"), True),
        (condition("Complete", "False"), False),
        (condition("Running"), False),
        ({"jobDeploymentStatus": "Complete"}, True),
        (None, False),
    ],
)
def test_owners_may_have_run_to_their_end(status: object, ended: bool) -> None:
    assert read("batch/v1", "Job", JOB, status).ended == ended


@pytest.mark.parametrize(
    ("kind", "spec", "error"),
    [
        (
            "kubeflow.org/v1 MPIJob",
            mpi(replicas="2"),
            'spec.mpiReplicaSpecs.Worker.replicas: must be an integer, not "2"',
        ),
        (
            "kubeflow.org/v1 MPIJob",
            {"mpiReplicaSpecs": {"Worker": {}}},
            "spec.mpiReplicaSpecs.Worker.template: is required",
        ),
        ("apps/v1 Deployment", {}, "spec.template: is required"),
        (
            "batch/v1 Job",
            {**JOB, "suspend": 1},
            "spec.suspend: must be true or false, not 1",
        ),
        (
            "jobset.x-k8s.io/v1alpha2 JobSet",
            {
                "replicatedJobs": [
                    {
                        "template": {
                            "spec": {"template": {"spec": {"nodeName": 1}}}
                        }
                    }
                ]
            },
            "spec.replicatedJobs[0].template.spec.template.spec.nodeName: must be a string, not 1",
        ),
    ],
)
def test_defects_are_named_where_they_were_written(
    kind: str, spec: Json, error: str
) -> None:
    reader = ObjectReader()
    api_version, _, name = kind.partition(" ")
    assert (
        reader.read(
            {
                "apiVersion": api_version,
                "kind": name,
                "metadata": {"name": "a"},
                "spec": spec,
            },
            "",
        )
        is None
    )
    assert [str(finding) for finding in reader.errors] == [f"{name} a: {error}"]


@pytest.mark.parametrize(
    ("kind", "spec", "jobs"),
    [
        ("batch/v1 Job", {**JOB, "parallelism": 2}, ["a", "a"]),
        ("batch/v1 Job", {**JOB, "manualSelector": True}, [None]),
        (
            "jobset.x-k8s.io/v1alpha2 JobSet",
            JOB_SET,
            ["a-driver-0", *["a-worker-0"] * 2, *["a-worker-1"] * 2],
        ),
        ("apps/v1 Deployment", JOB, [None]),
        ("batch.volcano.sh/v1alpha1 Job", {"tasks": [JOB]}, [None]),
    ],
)
def test_pods_of_jobs_have_its_name_as_label(
    kind: str, spec: Json, jobs: list[str | None]
) -> None:
    api_version, _, name = kind.partition(" ")
    pods = list(pods_of(read(api_version, name, spec), ()))
    for label in ("job-name", "batch.kubernetes.io/job-name"):
        assert [pod.metadata.labels.get(label) for pod in pods] == jobs


def test_a_paused_deployment_makes_no_pods() -> None:
    assert read("apps/v1", "Deployment", {**JOB, "paused": True}).suspended
    assert not read("apps/v1", "Deployment", JOB).suspended


def test_labels_of_a_template_stand_before_those_of_its_job() -> None:
    template = {**TEMPLATE, "metadata": {"labels": {"job-name": "b", "c": "d"}}}
    [pod] = pods_of(read("batch/v1", "Job", {"template": template}), ())
    assert pod.metadata.labels == {
        "batch.kubernetes.io/job-name": "a",
        "job-name": "b",
        "c": "d",
    }


def test_a_daemon_set_has_a_pod_on_each_node_that_takes_it() -> None:
    def node(name: str, *taints: Taint, **labels: str) -> Node:
        return Node(
            metadata=ObjectMeta(name=name, labels=labels),
            spec=NodeSpec(taints=taints),
        )

    cordon = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    nodes = [
        node("plain", gpu="yes"),
        node("cordoned", cordon, gpu="yes"),
        node("tainted", Taint(key="team", effect="NoExecute"), gpu="yes"),
        node("other"),
    ]
    pods = list(
        pods_of(read("apps/v1", "DaemonSet", {"template": gpu_daemon()}), nodes)
    )
    assert [pod.name for pod in pods] == ["a-plain", "a-cordoned"]
    assert [_home(pod) for pod in pods] == ["plain", "cordoned"]


def test_a_daemon_outlasts_what_is_wrong_with_its_node() -> None:
    def node(state: str, effect: str) -> Node:
        taint = Taint(key=f"node.kubernetes.io/{state}", effect=effect)
        return Node(
            metadata=ObjectMeta(name=state), spec=NodeSpec(taints=(taint,))
        )

    nodes = [
        node("memory-pressure", "NoSchedule"),
        node("disk-pressure", "NoSchedule"),
        node("pid-pressure", "NoSchedule"),
        node("unreachable", "NoExecute"),
        node("not-ready", "NoExecute"),
        node("network-unavailable", "NoSchedule"),
        node("out-of-service", "NoExecute"),
    ]
    outlasted = [node.name for node in nodes[:5]]
    for spec, homes in (
        ({}, outlasted),
        ({"hostNetwork": True}, [*outlasted, "network-unavailable"]),
        ({"nodeName": "not-ready"}, ["not-ready"]),
    ):
        daemons = read("apps/v1", "DaemonSet", {"template": {"spec": spec}})
        assert [_home(pod) for pod in pods_of(daemons, nodes)] == homes


def test_a_daemon_keeps_what_its_template_says_of_other_pods() -> None:
    near = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"a": "b"}}}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [near]}
    template = {"spec": {"affinity": {"podAntiAffinity": apart}}}
    daemons = read("apps/v1", "DaemonSet", {"template": template})
    [pod] = pods_of(daemons, [Node(metadata=ObjectMeta(name="n"))])
    assert _home(pod) == "n"
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.pod_anti_affinity is not None
    [term] = pod.spec.affinity.pod_anti_affinity.required
    assert term.topology_key == "rack"


def gpu_daemon() -> Json:
    return {"spec": {"nodeSelector": {"gpu": "yes"}, "containers": []}}


def _home(pod: Pod) -> str:
    selector = pod.spec.required_nodes
    assert selector is not None
    return selector.node_selector_terms[0].match_fields[0].values[0]


def test_kinds_whose_pod_templates_are_not_used_are_named() -> None:
    reader = ObjectReader()
    for kind, spec in (
        ("CronJob", {"jobTemplate": {"spec": JOB}}),
        ("Rollout", {"template": TEMPLATE}),
        ("Rollout", {"template": TEMPLATE}),
        ("Rule", {"template": {"spec": {}}}),
    ):
        assert (
            reader.read(
                {"apiVersion": "example.com/v1", "kind": kind, "spec": spec}, ""
            )
            is None
        )
    assert reader.skipped == {"CronJob": 1, "Rollout": 2, "Rule": 1}
    assert [str(finding) for finding in reader.unmade_notice()] == [
        "no pods are made of the pod templates of CronJob (1), Rollout (2)"
    ]
