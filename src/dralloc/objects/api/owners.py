"""Objects of which controllers make pods: where each kind says what its pods are like, and how many there are.

A kind is a row of `OWNERS`. Sources: the API types of each controller, and the defaults that its webhooks or custom
resource definitions set. `pods_of` and `claim_for` then make what the controllers would make.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from operator import methodcaller
from typing import Any, ClassVar, Final, NamedTuple, cast

from pydantic import StrictBool, StrictInt, StrictStr, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from dralloc.objects.api.base import (
    INT32,
    ApiObject,
    ObjectMeta,
    OwnerReference,
    PartialModel,
    PartialObject,
    changed,
)
from dralloc.objects.api.claims import ResourceClaim, ResourceClaimTemplate
from dralloc.objects.api.disclosure import (
    JOB_LABELS,
    POD_CLAIM_ANNOTATION,
    WORKLOAD_ANNOTATION,
)
from dralloc.objects.api.nodes import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Toleration,
)
from dralloc.objects.api.selecting import (
    CORDON_TOLERATION,
    all_tolerated,
    selector_matches,
)
from dralloc.objects.api.workloads import Pod, PodGroup, PodSpec, PodTemplate

__all__ = [
    "ENDED",
    "OWNERS",
    "POD_CLAIM_ANNOTATION",
    "WORKLOAD_ANNOTATION",
    "PodOwner",
    "PodSet",
    "claim_for",
    "claim_name",
    "generated_name",
    "holds_template",
    "pods_of",
]

_Path = tuple[str | int, ...]
ENDED: Final = frozenset(
    {"Complete", "Completed", "Failed", "Finished", "Succeeded"}
)
"""Conditions that say that an owner has run to its end."""


class PodSet(PartialModel):
    """Equal pods of an owner.

    Parameters
    ----------
    name
        What their names have behind that of the owner; may be empty.
    ranges
        First number and the one behind the last, for each number in the names of pods: ``(0, 2)`` gives two pods, two
        ranges give as many as their product.
    job
        Whether they are a Job's, by whose name the API server labels them. The last number is that of the pod in it.
    """

    name: StrictStr = ""
    ranges: tuple[tuple[StrictInt, StrictInt], ...] = ()
    job: StrictBool = False
    template: PodTemplate

    @property
    def count(self) -> int:
        """The number of pods."""
        return prod(max(stop - start, 0) for start, stop in self.ranges)


class PodOwner(PartialObject, namespaced=True):
    """An object of which a controller makes pods; each kind is a class of its own, see `OWNERS`.

    Parameters
    ----------
    sets
        Its pods.
    suspended
        Whether it makes none for the time being.
    ended
        Whether it has run to its end.
    """

    form: ClassVar[OwnerKind]

    sets: tuple[PodSet, ...] = ()
    suspended: StrictBool = False
    ended: StrictBool = False

    def pods_on(self, nodes: int) -> int:
        """Return the largest number of pods in a cluster of so many nodes."""
        return sum(pod_set.count for pod_set in self.sets) * (
            nodes if self.form.everywhere else 1
        )


class _Part(NamedTuple):
    """A part of an object as it was written (None if it is absent), and where it is."""

    value: Any
    path: _Path = ()

    def at(self, path: str) -> _Part:
        """Return the part below."""
        part = self
        for step in path.split(".") if path else ():
            value = (
                part.value.get(step) if isinstance(part.value, dict) else None
            )
            part = _Part(value, (*part.path, step))
        return part

    def items(self) -> Iterator[tuple[str, _Part]]:
        """Yield the items of a list by their names, or the fields of an object by theirs in lower case."""
        if isinstance(self.value, dict):
            for key, value in self.value.items():
                yield key.lower(), _Part(value, (*self.path, key))
        elif isinstance(self.value, list):
            for item_index, value in enumerate(self.value):
                item = _Part(value, (*self.path, item_index))
                yield (
                    str(
                        item.at("name").value
                        or item.at("groupName").value
                        or item_index
                    ),
                    item,
                )

    def number(self, path: str, default: int) -> int:
        """Return the integer below, an int32 in every kind; the default if it is absent."""
        part = self.at(path)
        if part._of_type(int, "int_type", 0) not in INT32:
            raise part.wrong(
                PydanticCustomError("int32", "must be an integer of 32 bits")
            )
        return default if part.value is None else cast(int, part.value)

    def flag(self, path: str) -> bool:
        """Return the truth value below; false if it is absent."""
        return cast(bool, self.at(path)._of_type(bool, "bool_type", False))

    def has_condition(self, types: frozenset[str]) -> bool:
        """Return whether the status has one of these conditions."""
        conditions = (
            entry for _, entry in self.at("status.conditions").items()
        )
        return any(
            entry.at("type").value in types
            and entry.at("status").value == "True"
            for entry in conditions
        )

    def _of_type(self, expected: type, rule: str, default: object) -> object:
        if self.value is not None and type(self.value) is not expected:
            raise self.wrong(rule)
        return default if self.value is None else self.value

    def wrong(self, rule: str | PydanticCustomError) -> ValidationError:
        """Return an error of this type at this place."""
        return ValidationError.from_exception_data(
            "", [InitErrorDetails(type=rule, loc=self.path, input=self.value)]
        )


_Count = Callable[[_Part], range]


def _number(path: str, default: int = 1) -> _Count:
    """Make a count that reads a field."""
    return lambda part: range(part.number(path, default))


_REPLICAS: Final = _number("replicas")


def _mpi_replicas(part: _Part) -> range:
    # The launcher is one pod by default, workers are none (defaults of the MPI operator).
    return _number("replicas", 0 if part.path[-1] == "Worker" else 1)(part)


def _at_a_time(job: _Part) -> range:
    """Return the number of pods of a Job that run at the same time."""
    # More completions than parallel pods come later, when others have ended.
    parallelism = job.number("parallelism", 1)
    return range(min(parallelism, job.number("completions", parallelism)))


def _within_bounds(group: _Part) -> range:
    """Return the number of replicas of a group of workers of Ray."""
    # The controller keeps replicas within the bounds, whatever the field says.
    low, high = (
        group.number("minReplicas", 0),
        group.number("maxReplicas", 2**31),
    )
    return range(
        0
        if group.flag("suspend")
        else min(high, max(low, group.number("replicas", 0)))
    )


@dataclass(frozen=True, slots=True)
class _Pods:
    """The place where an owner describes some of its pods.

    Parameters
    ----------
    at
        The part of the object; with ``.*`` at the end each item of a list, or each field of an object.
    counts
        How many there are, of the part.
    template
        Paths in the part of which the first that is there leads to the pod template.
    suffix
        What their names have behind that of the item.
    optional
        Whether there need be no template.
    job
        The path in the part to the specification of a Job that has them; None if none has.
    """

    at: str
    counts: tuple[_Count, ...] = (_REPLICAS,)
    template: tuple[str, ...] = ("template",)
    suffix: str = ""
    optional: bool = False
    job: str | None = None

    def found(self, root: _Part) -> Iterator[tuple[dict[str, Any], _Path]]:
        """Yield each set of pods, and where its template is."""
        path, star, _ = self.at.partition(".*")
        for name, part in (
            root.at(path).items() if star else [("", root.at(path))]
        ):
            # The first path that leads to something; the last one is named if none does.
            for path_below in self.template:
                template = part.at(path_below)
                if template.value is not None:
                    break
            if template.value is None and self.optional:
                continue
            if template.value is None:
                raise template.wrong("missing")
            ranges = [count(part) for count in self.counts]
            called = "-".join(filter(None, (name, self.suffix)))
            wire = {
                "name": called,
                "ranges": [
                    (ordinals.start, ordinals.stop) for ordinals in ranges
                ],
                "template": template.value,
                "job": self.job is not None
                and not part.at(self.job).flag("manualSelector"),
            }
            yield wire, template.path


@dataclass(frozen=True, slots=True)
class OwnerKind:
    """The way to read the owners of a kind.

    Parameters
    ----------
    pods
        Where it says something about pods.
    suspended
        Whether it makes no pods for the time being.
    everywhere
        Whether there is one pod on each node that its template fits.
    """

    pods: tuple[_Pods, ...]
    suspended: Callable[[_Part], bool] = lambda _: False
    everywhere: bool = False

    def normal(
        self, body: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[_Path]]:
        """Return an object in the form of `PodOwner`, and where the template of each of its sets was.

        Raises
        ------
        ValidationError
            A number, flag or template is not what it should be; it says where in the object.
        """
        root = _Part(body)
        pod_sets = [
            pod_set for pods in self.pods for pod_set in pods.found(root)
        ]
        ended = (
            root.has_condition(ENDED)
            or root.at("status.jobDeploymentStatus").value in ENDED
        )
        wire = {
            "sets": [pod_set for pod_set, _ in pod_sets],
            "suspended": self.suspended(root),
            "ended": ended,
        }
        return {"metadata": body.get("metadata", {}), **wire}, [
            path for _, path in pod_sets
        ]


def _waits_for_admission(workload: _Part) -> bool:
    """Return whether Kueue has not admitted a Workload, or has been told to stop it."""
    active = workload.at("spec.active").value is not False
    return not (active and workload.has_condition(frozenset({"Admitted"})))


def _ray(at: str) -> tuple[_Pods, ...]:
    """Return the pods of a cluster of Ray whose specification is there."""
    workers = (_within_bounds, _number("numOfHosts"))
    return (
        _Pods(f"{at}.headGroupSpec", (), suffix="head", optional=True),
        _Pods(f"{at}.workerGroupSpecs.*", workers, suffix="worker"),
    )


def _kubeflow(field: str, count: _Count = _REPLICAS) -> OwnerKind:
    return OwnerKind(
        (_Pods(f"spec.{field}.*", (count,)),),
        methodcaller("flag", "spec.runPolicy.suspend"),
    )


_JOB: Final = OwnerKind(
    (_Pods("spec", (_at_a_time,), job=""),),
    methodcaller("flag", "spec.suspend"),
)
_REPLICATED: Final = OwnerKind((_Pods("spec"),))
_LEADER: Final = (
    "leaderWorkerTemplate.leaderTemplate",
    "leaderWorkerTemplate.workerTemplate",
)
_FORMS: Final[Mapping[tuple[str, str], OwnerKind]] = {
    ("", "ReplicationController"): _REPLICATED,
    ("apps", "DaemonSet"): OwnerKind((_Pods("spec", ()),), everywhere=True),
    # While it is paused, no ReplicaSet is made; one that is there stands for it.
    ("apps", "Deployment"): OwnerKind(
        (_Pods("spec"),), methodcaller("flag", "spec.paused")
    ),
    ("apps", "ReplicaSet"): _REPLICATED,
    ("apps", "StatefulSet"): _REPLICATED,
    ("batch", "Job"): _JOB,
    ("batch.volcano.sh", "Job"): OwnerKind((_Pods("spec.tasks.*"),)),
    ("jobset.x-k8s.io", "JobSet"): OwnerKind(
        (
            _Pods(
                "spec.replicatedJobs.*",
                (_REPLICAS, lambda job: _at_a_time(job.at("template.spec"))),
                ("template.spec.template",),
                job="template.spec",
            ),
        ),
        methodcaller("flag", "spec.suspend"),
    ),
    ("kubeflow.org", "JAXJob"): _kubeflow("jaxReplicaSpecs"),
    ("kubeflow.org", "MPIJob"): _kubeflow("mpiReplicaSpecs", _mpi_replicas),
    ("kubeflow.org", "PaddleJob"): _kubeflow("paddleReplicaSpecs"),
    ("kubeflow.org", "PyTorchJob"): _kubeflow("pytorchReplicaSpecs"),
    ("kubeflow.org", "TFJob"): _kubeflow("tfReplicaSpecs"),
    ("kubeflow.org", "XGBoostJob"): _kubeflow("xgbReplicaSpecs"),
    ("kueue.x-k8s.io", "Workload"): OwnerKind(
        (_Pods("spec.podSets.*", (_number("count"),)),), _waits_for_admission
    ),
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): OwnerKind(
        (
            _Pods("spec", template=_LEADER),
            _Pods(
                "spec",
                (
                    _REPLICAS,
                    lambda spec: range(
                        1, spec.number("leaderWorkerTemplate.size", 1)
                    ),
                ),
                _LEADER[1:],
            ),
        )
    ),
    ("ray.io", "RayCluster"): OwnerKind(
        _ray("spec"), methodcaller("flag", "spec.suspend")
    ),
    ("ray.io", "RayJob"): OwnerKind(
        (
            *_ray("spec.rayClusterSpec"),
            _Pods(
                "spec",
                (),
                ("submitterPodTemplate",),
                "submitter",
                optional=True,
            ),
        ),
        methodcaller("flag", "spec.suspend"),
    ),
    ("ray.io", "RayService"): OwnerKind(_ray("spec.rayClusterConfig")),
}


OWNERS: Final[Mapping[tuple[str, str], type[PodOwner]]] = {
    (group, kind): cast(
        type[PodOwner],
        type(
            kind,
            (PodOwner,),
            {"__module__": __name__, "form": form},
            api_version=f"{group}/v1".removeprefix("/"),
        ),
    )
    for (group, kind), form in _FORMS.items()
}
"""The kinds of owners by API group (empty for core/v1) and name, whatever the version."""


def holds_template(value: object) -> bool:
    """Return whether some part of an object is a pod template: a ``spec`` with a list of ``containers``."""
    if isinstance(value, list):
        return any(map(holds_template, value))
    if not isinstance(value, dict):
        return False
    spec = value.get("spec")
    if isinstance(spec, dict) and isinstance(spec.get("containers"), list):
        return True
    return any(map(holds_template, value.values()))


# ----------------------------------------------------------------------------
# What controllers would make: the pods of a Deployment or Job, and the claims of pods
# that name a template.

_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes makes suffixes of: no vowels, so that no words come out."""
_SUFFIX_LENGTH: Final = 5
_LONGEST_BASE: Final = 63 - _SUFFIX_LENGTH

_DAEMON_TOLERATIONS: Final = (
    CORDON_TOLERATION,
    *(
        Toleration(
            key=f"node.kubernetes.io/{state}", operator="Exists", effect=effect
        )
        for state, effect in (
            ("not-ready", "NoExecute"),
            ("unreachable", "NoExecute"),
            ("disk-pressure", "NoSchedule"),
            ("memory-pressure", "NoSchedule"),
            ("pid-pressure", "NoSchedule"),
        )
    ),
)
_NETWORK_TOLERATION: Final = Toleration(
    key="node.kubernetes.io/network-unavailable",
    operator="Exists",
    effect="NoSchedule",
)
"""What pods in the network of their node tolerate, too."""


def generated_name(base: str, *identity: str) -> str:
    """`base` with a suffix of five characters, as ``generateName`` makes it, but always the same for one identity."""
    digest = int.from_bytes(
        hashlib.sha256("/".join((base, *identity)).encode()).digest()
    )
    suffix = ""
    for _ in range(_SUFFIX_LENGTH):
        digest, digit = divmod(digest, len(_ALPHABET))
        suffix += _ALPHABET[digit]
    return base[:_LONGEST_BASE] + suffix


def pods_of(owner: PodOwner, nodes: Sequence[Node]) -> Iterator[Pod]:
    """Yield the pods that an object asks for, named by number: ``web-0``, ``web-1``.

    A DaemonSet asks for one on each node that node selector and required node affinity of its template match and whose
    taints it tolerates, cordoned, under pressure or not; they are named by node. Source: ``daemon_controller.go`` of
    kube-controller-manager.
    """
    for pod_set in owner.sets:
        numbered_specs: Iterable[tuple[Iterable[object], PodSpec]]
        if owner.form.everywhere:
            homes = (
                node
                for node in nodes
                if _belongs_on(pod_set.template.spec, node)
            )
            numbered_specs = (
                ((node.name,), _pinned(pod_set.template.spec, node))
                for node in homes
            )
        else:
            ordinal_tuples = product(
                *(range(*bounds) for bounds in pod_set.ranges)
            )
            numbered_specs = (
                (ordinals, pod_set.template.spec) for ordinals in ordinal_tuples
            )
        for words, spec in numbered_specs:
            parts = [
                *filter(None, (owner.name, pod_set.name)),
                *map(str, words),
            ]
            job = "-".join(parts[:-1]) if pod_set.job else ""
            yield Pod(
                metadata=_metadata(
                    owner, pod_set.template.metadata, "-".join(parts), job
                ),
                spec=spec,
            )


def _metadata(
    owner: PodOwner, template: ObjectMeta, name: str, job: str
) -> ObjectMeta:
    # Source: ``generateSelector`` in the API server's strategy for Jobs.
    of_job = dict.fromkeys(JOB_LABELS, job) if job else {}
    return changed(
        template,
        name=name,
        labels={**of_job, **template.labels} if of_job else template.labels,
        namespace=owner.metadata.namespace,
        creation_timestamp=owner.metadata.creation_timestamp,
        owner_references=(_reference(owner),),
    )


def _belongs_on(daemon: PodSpec, node: Node) -> bool:
    """Return whether a DaemonSet has a pod on the node."""
    required = daemon.required_nodes
    return (
        daemon.node_name in (None, "", node.name)
        and daemon.node_selector.items() <= node.metadata.labels.items()
        and (required is None or selector_matches(required, node))
        and all_tolerated(node.spec.taints, _daemon_tolerations(daemon))
    )


def _daemon_tolerations(daemon: PodSpec) -> tuple[Toleration, ...]:
    """Return the tolerations of a DaemonSet's pods, which outlast what is wrong with their node.

    Source: ``AddOrUpdateDaemonPodTolerations`` of kube-controller-manager.
    """
    unreachable = (_NETWORK_TOLERATION,) if daemon.host_network else ()
    return (*daemon.tolerations, *_DAEMON_TOLERATIONS, *unreachable)


def _pinned(daemon: PodSpec, node: Node) -> PodSpec:
    """Return the pod template that a DaemonSet has for a node."""
    by_name = NodeSelectorRequirement(
        key="metadata.name", operator="In", values=(node.name,)
    )
    required = NodeSelector(
        node_selector_terms=(NodeSelectorTerm(match_fields=(by_name,)),)
    )
    # Only the required nodes are replaced: what the template says of other pods still holds.
    affinity = daemon.affinity or Affinity()
    of_nodes = changed(
        affinity.node_affinity or NodeAffinity(), required=required
    )
    return changed(
        daemon,
        affinity=changed(affinity, node_affinity=of_nodes),
        tolerations=_daemon_tolerations(daemon),
    )


def claim_name(owner: Pod | PodGroup, entry: str, attempt: int = 0) -> str:
    """Return a name for the claim of one entry of a pod or PodGroup: ``<owner>-<entry>-<suffix>``.

    With each attempt it is another one.
    """
    kind = () if isinstance(owner, Pod) else (owner.kind,)
    again = (str(attempt),) if attempt else ()
    return generated_name(
        f"{owner.name}-{entry}-", owner.key.namespace, *kind, *again
    )


def claim_for(
    owner: Pod | PodGroup,
    entry: str,
    template: ResourceClaimTemplate,
    name: str,
) -> ResourceClaim:
    """Make the claim that the resource claim controller makes for an entry of a pod (KEP-4381) or PodGroup (KEP-5729).

    Parameters
    ----------
    owner
        Whom the claim is for and will belong to.
    entry
        The name of the entry in ``spec.resourceClaims``.
    template
        The template that the entry names.
    name
        The claim's name.
    """
    blueprint = template.spec.metadata
    return ResourceClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=owner.metadata.namespace,
            labels=blueprint.labels,
            annotations={**blueprint.annotations, POD_CLAIM_ANNOTATION: entry},
            creation_timestamp=owner.metadata.creation_timestamp,
            owner_references=(_reference(owner),),
        ),
        spec=template.spec.spec,
    )


def _reference(owner: ApiObject) -> OwnerReference:
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.name,
        uid=owner.metadata.uid,
        controller=True,
    )
