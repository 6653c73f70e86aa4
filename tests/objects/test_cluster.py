"""The cluster: pods of owners, claims of templates, nodes without Node objects, and what is missing."""

import itertools

import pytest
import yaml

from dralloc.objects.api import (
    Device,
    ObjectMeta,
    Pod,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from dralloc.objects.api.base import to_wire
from dralloc.objects.api.owners import claim_name
from dralloc.objects.assembly.unasked import Unasked
from dralloc.objects.cluster import SYNTHETIC_NODE, Cluster, Located
from dralloc.objects.errors import DrallocError, InputError
from dralloc.objects.limits import Limits
from dralloc.objects.load import (
    load_documents,
    load_text,
    read_documents,
)
from dralloc.objects.names import ClaimKey

CLASS = """
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
"""

TEMPLATE = """
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one-gpu, namespace: team}
spec:
  metadata: {labels: {from: template}}
  spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
"""

POD = """
---
apiVersion: v1
kind: Pod
metadata: {name: pod0, namespace: team, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  containers: [{name: c, image: x, resources: {claims: [{name: gpu}]}}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]
"""

CLAIM = """
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: shared, namespace: team}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
"""


def owner(
    kind: str,
    api_version: str = "apps/v1",
    name: str = "web",
    extra: str = "replicas: 2",
) -> str:
    return f"""
---
apiVersion: {api_version}
kind: {kind}
metadata: {{name: {name}, namespace: team, creationTimestamp: "2026-01-01T00:00:00Z"}}
spec:
  {extra}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      priorityClassName: high
      resourceClaims: [{{name: gpu, resourceClaimTemplateName: one-gpu}}]
"""


PRIORITY = """
---
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
"""


def slices(*specs: dict[str, object]) -> list[ResourceSlice]:
    pool = ResourcePool(name="p", resource_slice_count=len(specs))
    return [
        ResourceSlice(
            metadata=ObjectMeta(name=f"s{index}"),
            spec=ResourceSliceSpec.model_validate(
                {"driver": "d", "pool": pool, **spec}
            ),
        )
        for index, spec in enumerate(specs)
    ]


def node_names(*specs: dict[str, object]) -> list[str]:
    return [node.name for node in Cluster.of(slices(*specs)).nodes]


def texts(cluster: Cluster) -> list[str]:
    return [str(finding) for finding in cluster.findings]


def test_a_pod_gets_a_claim_from_its_template() -> None:
    cluster = load_text(CLASS + TEMPLATE + POD)
    [pod] = cluster.pods
    [key] = cluster.pod_claims(pod)
    assert key.namespace == "team"
    assert key.name.startswith("pod0-gpu-")
    claim = cluster.claim(key)
    assert claim is cluster.claims[0]
    assert claim is not None
    assert claim.metadata.labels == {"from": "template"}
    assert claim.metadata.creation_timestamp == "2026-01-01T00:00:00Z"
    assert claim.spec.devices.requests[0].name == "gpu"
    assert cluster.claims == load_text(CLASS + TEMPLATE + POD).claims
    assert not cluster.findings


def test_a_claim_that_the_status_names_is_used() -> None:
    status = "\nstatus: {resourceClaimStatuses: [{name: gpu, resourceClaimName: shared}]}"
    cluster = load_text(CLASS + TEMPLATE + CLAIM + POD + status)
    assert cluster.pod_claims(cluster.pods[0]) == (ClaimKey("team", "shared"),)
    assert len(cluster.claims) == 1


def test_a_claim_that_the_status_names_is_made_if_it_is_not_given() -> None:
    status = "\nstatus: {resourceClaimStatuses: [{name: gpu, resourceClaimName: pod0-gpu-abcde}]}"
    cluster = load_text(CLASS + TEMPLATE + POD + status)
    assert [claim.name for claim in cluster.claims] == ["pod0-gpu-abcde"]


def test_a_status_without_name_means_that_no_claim_is_needed() -> None:
    cluster = load_text(
        CLASS
        + TEMPLATE
        + POD
        + "\nstatus: {resourceClaimStatuses: [{name: gpu}]}"
    )
    assert cluster.pod_claims(cluster.pods[0]) == ()
    assert cluster.claims == ()


def test_a_claim_that_belongs_to_the_pod_is_used() -> None:
    made = CLAIM.replace(
        "{name: shared, namespace: team}",
        "{name: made, namespace: team, annotations: {resource.kubernetes.io/pod-claim-name: gpu},"
        " ownerReferences: [{apiVersion: v1, kind: Pod, name: pod0, uid: x, controller: true}]}",
    )
    cluster = load_text(CLASS + TEMPLATE + made + POD)
    assert cluster.pod_claims(cluster.pods[0]) == (ClaimKey("team", "made"),)


def test_a_claim_of_an_earlier_pod_of_the_same_name_is_not_used() -> None:
    def made(name: str, uid: str) -> str:
        return CLAIM.replace(
            "{name: shared, namespace: team}",
            f"{{name: {name}, namespace: team, annotations: {{resource.kubernetes.io/pod-claim-name: gpu}},"
            f" ownerReferences: [{{apiVersion: v1, kind: Pod, name: pod0, uid: {uid}, controller: true}}]}}",
        )

    pod = POD.replace("name: pod0", "name: pod0, uid: new")
    old, new = made("old", "old"), made("new", "new")
    for claims, used in ((old, None), (old + new, "new"), (new + old, "new")):
        cluster = load_text(CLASS + TEMPLATE + claims + pod)
        [key] = cluster.pod_claims(cluster.pods[0])
        made_key = ClaimKey("team", claim_name(cluster.pods[0], "gpu"))
        assert key == (ClaimKey("team", used) if used else made_key)
        assert cluster.abandoned == {ClaimKey("team", "old")}
    # A name that was made for the earlier pod is none for this one.
    cluster = load_text(CLASS + TEMPLATE + made(made_key.name, "old") + pod)
    [key] = cluster.pod_claims(cluster.pods[0])
    assert key not in (made_key, ClaimKey("team", "old"))
    assert cluster.made == {key}


def test_pods_with_long_names_have_claims_of_their_own() -> None:
    start = "p" * 59
    first_with: dict[str, int] = {}
    names: list[str] = []
    for number in itertools.count():
        pod = Pod(
            metadata=ObjectMeta(name=f"{start}{number}", namespace="team")
        )
        earlier = first_with.setdefault(claim_name(pod, "gpu"), number)
        if earlier != number:
            names = [f"{start}{earlier}", f"{start}{number}"]
            break
    pods = "".join(POD.replace("pod0", name) for name in names)
    cluster = load_text(CLASS + TEMPLATE + pods)
    keys = [cluster.pod_claims(pod) for pod in cluster.pods]
    assert len(set(keys)) == len(cluster.claims) == 2
    # What was made and written is read again as it is.
    written = [*map(to_wire, cluster.claims), *map(to_wire, cluster.pods)]
    again = load_documents([*written, *map(to_wire, cluster.templates)])
    assert [again.pod_claims(pod) for pod in again.pods] == keys


def test_pods_share_a_claim_by_name() -> None:
    pod = POD.replace(
        "resourceClaimTemplateName: one-gpu", "resourceClaimName: shared"
    )
    cluster = load_text(CLASS + CLAIM + pod + pod.replace("pod0", "pod1"))
    assert [cluster.pod_claims(pod) for pod in cluster.pods] == [
        (ClaimKey("team", "shared"),)
    ] * 2


@pytest.mark.parametrize(
    ("entry", "rule"),
    [
        (
            "{name: gpu, resourceClaimTemplateName: none}",
            'spec.resourceClaims[0].resourceClaimTemplateName: ResourceClaimTemplate "none" not found',
        ),
        (
            "{name: gpu, resourceClaimName: none}",
            'spec.resourceClaims[0].resourceClaimName: ResourceClaim "none" not found',
        ),
        (
            "{name: gpu}",
            "spec.resourceClaims[0]: needs resourceClaimName or resourceClaimTemplateName; before Kubernetes 1.31 they "
            "stood below source",
        ),
    ],
)
def test_what_a_pod_refers_to_may_be_missing(entry: str, rule: str) -> None:
    pod = POD.replace("{name: gpu, resourceClaimTemplateName: one-gpu}", entry)
    cluster = load_text(CLASS + TEMPLATE + pod, source="a.yaml")
    assert texts(cluster) == [
        f"a.yaml: document 3: Pod team/pod0: {rule}; the pod cannot be placed"
    ]
    assert cluster.unresolved == {ClaimKey("team", "pod0"): (rule,)}
    assert all(
        cluster.claim(key) is None
        for key in cluster.pod_claims(cluster.pods[0])
    )


def test_a_missing_class_is_one_finding() -> None:
    cluster = load_text(TEMPLATE + CLAIM, source="a.yaml")
    assert texts(cluster) == [
        "a.yaml: document 1: ResourceClaimTemplate team/one-gpu: "
        'spec.spec.devices.requests[0].exactly.deviceClassName: DeviceClass "gpu" not found; 2 requests name it'
    ]


def test_a_class_that_only_allocated_claims_name_is_not_missed() -> None:
    allocated = CLAIM + "\nstatus: {allocation: {devices: {results: []}}}"
    assert texts(load_text(allocated)) == []


@pytest.mark.parametrize(
    ("kind", "api_version", "extra", "count"),
    [
        ("Deployment", "apps/v1", "replicas: 3", 3),
        ("Deployment", "apps/v1", "revisionHistoryLimit: 3", 1),
        ("StatefulSet", "apps/v1", "replicas: 2", 2),
        ("ReplicaSet", "apps/v1", "replicas: 0", 0),
        ("Job", "batch/v1", "parallelism: 2", 2),
    ],
)
def test_owners_become_pods(
    kind: str, api_version: str, extra: str, count: int
) -> None:
    cluster = load_text(
        CLASS + TEMPLATE + PRIORITY + owner(kind, api_version, extra=extra)
    )
    assert [pod.name for pod in cluster.pods] == [
        f"web-{index}" for index in range(count)
    ]
    assert [pod.spec.priority for pod in cluster.pods] == [1000] * count
    assert len(cluster.claims) == count
    assert not cluster.findings


def test_owners_whose_pods_are_given_do_not_make_pods() -> None:
    controlled = POD.replace(
        "metadata: {name: pod0,",
        "metadata: {ownerReferences: [{kind: ReplicaSet, name: web-abc}], name: pod0,",
    )
    replica_set = owner("ReplicaSet", name="web-abc").replace(
        "metadata: {name: web-abc,",
        "metadata: {ownerReferences: [{kind: Deployment, name: web}], name: web-abc,",
    )
    with_pods = load_text(
        CLASS
        + TEMPLATE
        + PRIORITY
        + owner("Deployment")
        + replica_set
        + controlled
    )
    assert [pod.name for pod in with_pods.pods] == ["pod0"]
    without_pods = load_text(
        CLASS + TEMPLATE + PRIORITY + owner("Deployment") + replica_set
    )
    assert [pod.name for pod in without_pods.pods] == ["web-abc-0", "web-abc-1"]


@pytest.mark.parametrize(
    ("api_version", "pods"),
    [
        ("apps/v1", ["pod0"]),
        ("apps/v1beta2", ["pod0"]),
        ("apps.example.com/v1", ["web-0", "pod0"]),
        ("v1", ["web-0", "pod0"]),
    ],
)
def test_a_pod_of_an_owner_of_another_group_speaks_for_no_other(
    api_version: str, pods: list[str]
) -> None:
    controlled = POD.replace(
        "metadata: {name: pod0,",
        "metadata: {ownerReferences: [{kind: Deployment, name: web,"
        f" apiVersion: {api_version}}}], name: pod0,",
    )
    made = owner("Deployment", extra="replicas: 1")
    assert pod_names(made, controlled) == pods


def test_pods_of_owners_with_one_name_are_told_apart() -> None:
    both = owner("Deployment", extra="replicas: 1") + owner(
        "StatefulSet", extra="replicas: 1"
    )
    first, second = load_text(CLASS + TEMPLATE + PRIORITY + both).pods
    assert first.name == "web-0"
    assert second.name.startswith("web-0-")


def test_pods_of_three_owners_with_one_name_are_told_apart() -> None:
    volcano = """
---
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: web, namespace: team}
spec: {tasks: [{template: {spec: {containers: []}}}]}
"""
    job = owner("Job", "batch/v1", name="web-0")
    given = POD.replace("pod0", "web-0-0")
    assert len(set(pod_names(given, job, volcano))) == 3


def test_pods_stay_in_order_and_terminated_ones_go() -> None:
    done = POD.replace("pod0", "done") + "\nstatus: {phase: Succeeded}"
    last = POD.replace("pod0", "last")
    cluster = load_text(
        CLASS + TEMPLATE + PRIORITY + POD + done + owner("Deployment") + last
    )
    assert [pod.name for pod in cluster.pods] == [
        "pod0",
        "web-0",
        "web-1",
        "last",
    ]


def test_priority_classes_say_whether_pods_may_preempt() -> None:
    def policy(spec: str, more: str = "") -> str | None:
        pod = f"\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {spec}\n"
        named = PRIORITY + "preemptionPolicy: Never\n"
        return load_text(named + pod + more).pods[0].spec.preemption_policy

    usual = (
        PRIORITY.replace("high", "usual")
        + "globalDefault: true\npreemptionPolicy: Never\n"
    )
    assert policy("{priorityClassName: high}") == "Never"
    assert policy("{}") is None
    assert policy("{}", usual) == "Never"
    assert policy("{priorityClassName: system-node-critical}", usual) is None
    # One that has its priority has been admitted, with what it says itself.
    assert policy("{priorityClassName: high, priority: 5}") is None


def test_priorities() -> None:
    def priority(spec: str, more: str = "") -> tuple[int | None, list[str]]:
        pod = f"\n---\napiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\nspec: {spec}\n"
        cluster = load_text(PRIORITY + pod + more, source="a.yaml")
        return cluster.pods[0].spec.priority, texts(cluster)

    assert priority("{priority: 5, priorityClassName: high}") == (5, [])
    assert priority("{priorityClassName: high}") == (1000, [])
    assert priority("{priorityClassName: system-node-critical}") == (
        2000001000,
        [],
    )
    assert priority("{}") == (None, [])
    default = (
        PRIORITY.replace("high", "usual").replace("1000", "7")
        + "globalDefault: true\n"
    )
    assert priority("{}", default) == (7, [])
    lower = default.replace("usual", "lower").replace("7", "5")
    assert priority("{}", default + lower) == (5, [])
    assert priority("{}", lower + default) == (5, [])
    assert priority("{priorityClassName: low}") == (
        None,
        [
            'a.yaml: document 2: Pod a: spec.priorityClassName: PriorityClass "low" not found, its priority counts as 0'
        ],
    )


def test_given_nodes_are_the_nodes() -> None:
    node = "\n---\napiVersion: v1\nkind: Node\nmetadata: {name: n0, labels: {zone: a}}\nspec: {unschedulable: true}\n"
    cluster = load_text(node)
    assert [node.name for node in cluster.nodes] == ["n0"]
    assert cluster.nodes[0].metadata.labels == {"zone": "a"}
    assert cluster.nodes[0].spec.unschedulable


def test_without_nodes_slices_name_them() -> None:
    assert node_names(
        {"node_name": "b"}, {"node_name": "a"}, {"node_name": "b"}
    ) == [
        "b",
        "a",
    ]
    devices = (Device(name="x", node_name="c"), Device(name="y", node_name="d"))
    assert node_names(
        {"per_device_node_selection": True, "devices": devices}
    ) == [
        "c",
        "d",
    ]
    by_field = {
        "matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["e"]}
        ]
    }
    by_label = {
        "matchExpressions": [
            {
                "key": "kubernetes.io/hostname",
                "operator": "In",
                "values": ["f", "g"],
            }
        ]
    }
    other = {
        "matchExpressions": [{"key": "zone", "operator": "In", "values": ["z"]}]
    }
    assert node_names(
        {"node_selector": {"nodeSelectorTerms": [by_field, by_label, other]}}
    ) == ["e", "f", "g"]


def test_named_nodes_carry_their_name_as_label() -> None:
    cluster = Cluster.of(slices({"node_name": "a"}))
    assert cluster.nodes[0].metadata.labels == {"kubernetes.io/hostname": "a"}
    assert texts(cluster) == [
        "no Node was given: assuming the 1 that slices name"
    ]


def test_without_any_name_one_node_is_assumed_for_devices_of_all_nodes() -> (
    None
):
    assert node_names({"all_nodes": True}) == [SYNTHETIC_NODE]
    devices = (Device(name="x", all_nodes=True),)
    assert node_names(
        {"per_device_node_selection": True, "devices": devices}
    ) == [SYNTHETIC_NODE]
    nowhere = Cluster.of(slices({}))
    assert nowhere.nodes == ()
    assert texts(nowhere) == [
        "no Node was given, and slices name none: nothing can be placed"
    ]


def test_the_same_object_twice() -> None:
    [resource_slice] = slices({"all_nodes": True})
    cluster = Cluster.of(
        [
            Located(resource_slice, "a.yaml"),
            Located(resource_slice.model_copy(), "b.yaml"),
        ]
    )
    assert len(cluster.slices) == 1
    assert (
        texts(cluster)[0]
        == "b.yaml: ResourceSlice s0: is the same as in a.yaml, kept once"
    )


def test_different_objects_with_one_name() -> None:
    [resource_slice], [other] = (
        slices({"all_nodes": True}),
        slices({"node_name": "n"}),
    )
    with pytest.raises(InputError) as error:
        Cluster.of(
            [Located(resource_slice, "a.yaml"), Located(other, "b.yaml"), other]
        )
    assert str(error.value) == (
        "b.yaml: ResourceSlice s0: was given before in a.yaml with different content\n"
        "ResourceSlice s0: was given before in a.yaml with different content"
    )


def test_namespaces_keep_names_apart_and_default_is_one_of_them() -> None:
    def pod(namespace: str) -> Pod:
        return Pod(metadata=ObjectMeta(name="a", namespace=namespace))

    cluster = Cluster.of([pod("one"), pod("two"), pod("")])
    assert [pod.key.namespace for pod in cluster.pods] == [
        "one",
        "two",
        "default",
    ]
    with pytest.raises(InputError, match="different content"):
        Cluster.of([pod(""), pod("default")])


KUEUE = """
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: web, namespace: team}
spec:
  podSets:
  - name: main
    count: 2
    template: {spec: {containers: [], resourceClaims: [{name: gpu, resourceClaimTemplateName: one-gpu}]}}
status: {conditions: [{type: Admitted, status: "True"}]}
"""
OWNED = KUEUE.replace(
    "{name: web,", "{name: web, ownerReferences: [{kind: Job, name: job}],"
)


def pod_names(*texts: str) -> list[str]:
    return [
        pod.name
        for pod in load_text(CLASS + TEMPLATE + PRIORITY + "".join(texts)).pods
    ]


def test_a_workload_that_kueue_admitted_has_pods() -> None:
    assert pod_names(KUEUE) == ["web-main-0", "web-main-1"]


def test_a_workload_of_a_job_of_another_group_has_pods() -> None:
    volcano = OWNED.replace(
        "{kind: Job,", "{apiVersion: batch.volcano.sh/v1alpha1, kind: Job,"
    )
    job = owner("Job", "batch/v1", name="job")
    assert pod_names(volcano, job) == ["web-main-0", "web-main-1", "job-0"]


def test_a_workload_whose_owner_is_given_is_not_counted_twice() -> None:
    job = owner("Job", "batch/v1", name="job", extra="parallelism: 2")
    assert pod_names(OWNED) == ["web-main-0", "web-main-1"]
    assert pod_names(OWNED, job) == ["job-0", "job-1"]


@pytest.mark.parametrize(
    "metadata",
    [
        "{ownerReferences: [{kind: Job, name: job}], name: pod0,",
        "{annotations: {kueue.x-k8s.io/workload: web}, name: pod0,",
    ],
)
def test_a_workload_whose_pods_are_given_is_not_counted_twice(
    metadata: str,
) -> None:
    assert pod_names(OWNED, POD.replace("{name: pod0,", metadata)) == ["pod0"]


def test_a_workload_of_kueue_and_one_of_the_scheduler_may_have_one_name() -> (
    None
):
    other = "\n---\n{apiVersion: scheduling.k8s.io/v1alpha1, kind: Workload, metadata: {name: web, namespace: team}}\n"
    assert pod_names(KUEUE, other) == ["web-main-0", "web-main-1"]


def test_suspended_finished_and_leaving_owners_make_no_pods() -> None:
    suspended = owner("Job", "batch/v1", name="later", extra="suspend: true")
    complete = '\nstatus: {conditions: [{type: Complete, status: "True"}]}'
    done = (
        owner("Job", "batch/v1", name="done", extra="parallelism: 1") + complete
    )
    going = owner(
        "Job", "batch/v1", name="going", extra="parallelism: 1"
    ).replace(
        "{name: going,",
        '{name: going, deletionTimestamp: "2026-01-01T00:00:00Z",',
    )
    cluster = load_text(CLASS + TEMPLATE + PRIORITY + suspended + done + going)
    assert (cluster.pods, cluster.claims) == ((), ())
    assert [pod.name for pod in cluster.suspended] == ["later-0"]
    assert cluster.gone == {
        ClaimKey("team", "done-0"): Unasked.FINISHED,
        ClaimKey("team", "going-0"): Unasked.DELETED,
    }


def test_suspended_pods_can_be_included_with_their_claims() -> None:
    cluster = load_text(
        CLASS
        + TEMPLATE
        + PRIORITY
        + POD
        + owner("Job", "batch/v1", name="later", extra="suspend: true")
    )
    included = cluster.including("suspended")
    assert [pod.name for pod in included.pods] == ["pod0", "later-0"]
    assert len(included.claims) == len(included.made) == 2
    assert included.suspended == ()
    assert cluster.including("gated").pods == cluster.pods


def test_gates_can_be_lifted() -> None:
    gated = POD + "\n  schedulingGates: [{name: kueue.x-k8s.io/admission}]\n"
    cluster = load_text(CLASS + TEMPLATE + gated)
    assert cluster.pods[0].spec.scheduling_gates
    assert (
        not cluster.including(["gated", "suspended"])
        .pods[0]
        .spec.scheduling_gates
    )


def test_what_can_be_included_is_known() -> None:
    with pytest.raises(
        DrallocError, match="known inclusions: gated, suspended"
    ):
        load_text(POD).including("gated,done")


def test_pods_of_owners_are_bounded() -> None:
    job = owner("Job", "batch/v1", "run", f"parallelism: {2**31 - 1}")
    text = owner("Deployment") + job + owner("ReplicaSet", name="a")
    with pytest.raises(InputError) as error:
        load_text(text, limits=Limits(pods=3))
    assert [
        (finding.subject, finding.path, finding.rule)
        for finding in error.value.findings
    ] == [
        (
            "Job team/run",
            "spec",
            f"asks for {2**31 - 1} pods when 1 more may be made; --limit pods=AMOUNT allows more",
        ),
        (
            "ReplicaSet team/a",
            "spec",
            "asks for 2 pods when 1 more may be made; --limit pods=AMOUNT allows more",
        ),
    ]
    text = owner("Deployment") + owner("StatefulSet", name="a")
    assert len(load_text(text, limits=Limits(pods=4)).pods) == 4


def test_what_asks_for_too_many_pods_does_not_hide_the_others() -> None:
    reading = read_documents(
        yaml.safe_load_all(
            POD + owner("Deployment", extra="replicas: 2000000000")
        )
    )
    assert [pod.name for pod in reading.cluster.pods] == ["pod0"]
    assert [finding.subject for finding in reading.refused] == [
        "Deployment team/web"
    ]


def test_replicas_are_integers_of_32_bits() -> None:
    with pytest.raises(
        InputError,
        match=r"Deployment team/web: spec.replicas: must be an integer of 32 bits",
    ):
        load_text(owner("Deployment", extra=f"replicas: {2**31}"))


def test_what_several_pods_miss_is_said_once() -> None:
    missing = owner("Deployment", extra="replicas: 3").replace(
        "one-gpu", "none"
    )
    (notice,) = texts(load_text(CLASS + PRIORITY + missing, source="a.yaml"))
    assert notice.endswith(
        'ResourceClaimTemplate "none" not found; it and 2 more pods cannot be placed'
    )


def test_a_claim_that_a_pod_names_twice_is_needed_once() -> None:
    entry = "{name: gpu, resourceClaimTemplateName: one-gpu}"
    cluster = load_text(
        CLASS + TEMPLATE + POD.replace(entry, f"{entry}, {entry}")
    )
    assert cluster.pod_claims(cluster.pods[0]) == tuple(
        claim.key for claim in cluster.claims
    )
    assert len(cluster.claims) == 1
