"""The table of the API's fields that can change a placement, and how each mode treats them.

`TABLE` has a row for each field of the objects that are read. From it come the notices, what ``--strict`` refuses, and
the page of the documentation; a test holds it against the types of the API. First what a row is, then the rows, and in
the end which objects use fields that some mode does not model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import accumulate, chain
from typing import Any, Final

from pydantic.alias_generators import to_snake

from dralloc.objects.api import ApiObject
from dralloc.objects.api.slice_reader import common
from dralloc.objects.choices import Mode

__all__ = ["TABLE", "Fate", "row_of", "spelled_out", "used"]

# ----------------------------------------------------------------------------
# A row of the table: a field of the API, and what it is to each mode.


class Fate(StrEnum):
    """The treatment of a field in a mode.

    ``MODELLED``: the answer minds it. ``IGNORED``: it could change the answer and does not; a notice names it, nothing
    is proven beyond the rules modelled, and ``--strict`` refuses it. ``NO_MATTER``: it cannot change the answer.
    """

    MODELLED = "modelled"
    IGNORED = "ignored"
    NO_MATTER = "no matter"


Fates = Mapping[Mode, Fate]
Says = Callable[[Any, Any], bool]
"""Whether an object says something with a field: called with the object and the value of the field in it."""


def _says_anything(_: Any, value: Any) -> bool:
    return bool(value)


@dataclass(frozen=True, slots=True, eq=False)
class FieldRow:
    """A field of a kind.

    Parameters
    ----------
    path
        As on the wire, without steps into lists and maps.
    rule
        What the field is for; of a field that is ignored, what is not looked at.
    fates
        By mode.
    says
        Whether an object uses the field.
    of_running
        Whether it counts on pods that have a node, and not on those to be placed.
    """

    kind: str
    path: str
    rule: str
    fates: Fates
    says: Says = _says_anything
    of_running: bool = False

    @property
    def matters(self) -> bool:
        """Whether it can change the answer of some mode."""
        return set(self.fates.values()) != {Fate.NO_MATTER}

    @property
    def covers_below(self) -> bool:
        """Whether all fields below have the same fate, those that are yet to come among them."""
        return Fate.MODELLED not in self.fates.values()

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the fields on the way in Python."""
        return _in_python(self.path)


@cache
def _in_python(path: str) -> tuple[str, ...]:
    return tuple(map(to_snake, path.split(".")))


def modelled(
    rule: str, *paths: str, but: Fates | None = None
) -> Iterator[FieldRow]:
    """Rows of fields that all modes mind, ``but`` for those that do something else."""
    return rows(
        rule, *paths, fates=dict.fromkeys(Mode, Fate.MODELLED) | dict(but or {})
    )


def preferred(rule: str, *paths: str) -> Iterator[FieldRow]:
    """Rows of preferences: the scheduler's scores know them, and they bind no other answer."""
    return rows(
        rule,
        *paths,
        fates=dict.fromkeys(Mode, Fate.NO_MATTER)
        | {Mode.SCHEDULER: Fate.MODELLED},
    )


def ignored(
    rule: str,
    *paths: str,
    says: Says = _says_anything,
    of_running: bool = False,
    but: Fates | None = None,
) -> Iterator[FieldRow]:
    """Rows of fields that no mode minds, although they can change the answer, ``but`` for those named."""
    for row in rows(
        rule, *paths, fates=dict.fromkeys(Mode, Fate.IGNORED) | dict(but or {})
    ):
        yield replace(row, says=says, of_running=of_running)


def no_matter(*paths: str) -> Iterator[FieldRow]:
    """Rows of fields that cannot change an answer."""
    return rows("", *paths, fates=dict.fromkeys(Mode, Fate.NO_MATTER))


def rows(rule: str, *paths: str, fates: Fates) -> Iterator[FieldRow]:
    """Rows of fields with one rule and the same fates.

    Parameters
    ----------
    paths
        Each is a kind and a path; ``{a,b}`` stands for both.
    """
    for path in paths:
        for field in spelled_out(path):
            kind, _, name = field.partition(" ")
            yield FieldRow(kind, name, rule, fates)


def spelled_out(text: str) -> Iterator[str]:
    """The texts that one with braces, maybe inside of others, stands for."""
    start = text.find("{")
    if start < 0:
        yield text
        return
    end = _closing(text, start)
    for part in _options(text[start + 1 : end]):
        yield from spelled_out(f"{text[:start]}{part}{text[end + 1 :]}")


def _depths(text: str) -> Iterator[int]:
    """Yield the number of braces that are open behind each character."""
    return accumulate(
        (character == "{") - (character == "}") for character in text
    )


def _closing(text: str, start: int) -> int:
    return next(
        position
        for position, depth in enumerate(_depths(text[start:]), start)
        if not depth
    )


def _options(text: str) -> list[str]:
    commas = zip(text, _depths(text), strict=True)
    return "".join(
        "\n" if character == "," and not depth else character
        for character, depth in commas
    ).split("\n")


# ----------------------------------------------------------------------------
# The rows of ``resource.k8s.io``.

NODE_TERM: Final = "{matchExpressions,matchFields}.{key,operator,values}"
NODE_SELECTOR: Final = f"nodeSelectorTerms.{NODE_TERM}"
_POLICY: Final = "requestPolicy.{default,validValues,validRange.{min,max,step}}"
_SPECS: Final = "{ResourceClaim spec,ResourceClaimTemplate spec.spec}.devices"
_REQUESTS: Final = f"{_SPECS}.requests.{{exactly,firstAvailable}}"
_RESULTS: Final = "ResourceClaim status.allocation.devices.results"

RESOURCES: Final[tuple[FieldRow, ...]] = (
    *modelled("names the pool", "ResourceSlice spec.{driver,pool.name}"),
    *modelled(
        "which slices count (KEP-4381)",
        "ResourceSlice spec.pool.{generation,resourceSliceCount}",
    ),
    *modelled("slices are searched by name", "ResourceSlice metadata.name"),
    *modelled(
        "on which nodes devices are (KEP-4381, KEP-4815)",
        f"ResourceSlice spec.{{nodeName,nodeSelector.{NODE_SELECTOR},allNodes,perDeviceNodeSelection}}",
        f"ResourceSlice spec.devices.{{nodeName,nodeSelector.{NODE_SELECTOR},allNodes}}",
    ),
    *modelled("names the device", "ResourceSlice spec.devices.name"),
    *modelled(
        "selectors and constraints (KEP-4381, KEP-5491)",
        "ResourceSlice spec.devices.attributes.{int,bool,string,version,ints,bools,strings,versions}",
    ),
    *modelled(
        "capacity, and how it is consumed (KEP-5075)",
        f"ResourceSlice spec.devices.capacity.{{value,{_POLICY}}}",
        "ResourceSlice spec.devices.allowMultipleAllocations",
    ),
    *modelled(
        "counters of partitions (KEP-4815)",
        "ResourceSlice spec.sharedCounters.{name,counters.value}",
        "ResourceSlice spec.devices.consumesCounters.{counterSet,counters.value}",
    ),
    *modelled(
        "counters that requests consume (KEP-5941)",
        f"ResourceSlice spec.sharedCounters.counters.{_POLICY}",
        "ResourceSlice spec.devices.consumesCounters.counters.valueFrom.capacityKey",
    ),
    *modelled(
        "partitions that may be in use together (KEP-5963)",
        "ResourceSlice spec.devices.consumesCounters.compatibilityGroups",
    ),
    *modelled(
        "taints of devices (KEP-5055)",
        "ResourceSlice spec.devices.taints.{key,value,effect}",
    ),
    *modelled(
        "devices with conditions come last (KEP-5007)",
        "ResourceSlice spec.devices.{bindsToNode,bindingConditions}",
    ),
    *modelled(
        "devices that take of CPU, memory and other resources of their node (KEP-5517)",
        "ResourceSlice spec.devices.nodeAllocatableResources.mapping.{capacityKey,capacityMultiplier,deviceMultiplier}",
        "ResourceSlice spec.devices.nodeAllocatableResources.overhead.{perPod,perContainer}",
        "ResourceSlice spec.devices.nodeAllocatableResourceMappings.{capacityKey,allocationMultiplier}",
    ),
    *no_matter(
        "ResourceSlice metadata",
        "ResourceSlice spec.devices.{taints.timeAdded,bindingFailureConditions}",
        "ResourceSlice spec.{partitionTypeAttribute,skipNodeOperations}",
    ),
    *modelled("names the class", "DeviceClass metadata.name"),
    *modelled(
        "selectors (KEP-4381)", "DeviceClass spec.selectors.cel.expression"
    ),
    *modelled(
        "extended resources (KEP-5004)", "DeviceClass spec.extendedResourceName"
    ),
    *no_matter("DeviceClass {metadata,spec.config}"),
    *modelled(
        "names the claim",
        "ResourceClaim metadata.{name,namespace}",
        "ResourceClaimTemplate metadata.{name,namespace}",
    ),
    *modelled(
        "who has the claim (KEP-4381)",
        "ResourceClaim metadata.{annotations,ownerReferences.{kind,name,uid,controller}}",
    ),
    *modelled(
        "the order of claims", "ResourceClaim metadata.creationTimestamp"
    ),
    *modelled(
        "a claim that is being deleted is not allocated",
        "ResourceClaim metadata.deletionTimestamp",
    ),
    *modelled(
        "what is requested (KEP-4381)",
        f"{_SPECS}.requests.name",
        f"{_REQUESTS}.{{deviceClassName,selectors.cel.expression,allocationMode,count}}",
    ),
    *modelled(
        "alternatives (KEP-4816)", f"{_SPECS}.requests.firstAvailable.name"
    ),
    *modelled(
        "admin access (KEP-5018)", f"{_SPECS}.requests.exactly.adminAccess"
    ),
    *modelled(
        "tolerated taints (KEP-5055)",
        f"{_REQUESTS}.tolerations.{{key,operator,value,effect}}",
    ),
    *modelled(
        "requested capacity (KEP-5075)", f"{_REQUESTS}.capacity.requests"
    ),
    *modelled(
        "constraints (KEP-4381)",
        f"{_SPECS}.constraints.{{requests,matchAttribute,distinctAttribute}}",
    ),
    *modelled(
        "attributes that a request derives for constraints (KEP-6080)",
        f"{_REQUESTS}.derivedAttributes.{{name,expression}}",
    ),
    *no_matter(
        f"{_REQUESTS}.tolerations.tolerationSeconds",
        f"{_SPECS}.config",
        "ResourceClaim metadata",
    ),
    *no_matter("ResourceClaimTemplate {metadata,spec.metadata}"),
    *modelled(
        "what an allocated claim holds (KEP-4381, KEP-5018, KEP-5075)",
        f"{_RESULTS}.{{request,driver,pool,device,adminAccess,shareID,consumedCapacity}}",
    ),
    *modelled(
        "where an allocated claim can be used",
        f"ResourceClaim status.allocation.nodeSelector.{NODE_SELECTOR}",
    ),
    *modelled(
        "at most 256 pods use a claim, and a PodGroup all of it (KEP-5729)",
        "ResourceClaim status.reservedFor.{apiGroup,resource,name,uid}",
    ),
    *no_matter(
        f"{_RESULTS}.{{tolerations,bindingConditions,bindingFailureConditions,skipNodeOperations}}",
        "ResourceClaim status.allocation.{devices.config,allocationTimestamp}",
        "ResourceClaim status.devices",
    ),
    *modelled(
        "which devices are tainted (KEP-5055)",
        "DeviceTaintRule spec.deviceSelector.{deviceClassName,driver,pool,device,selectors.cel.expression}",
        "DeviceTaintRule spec.taint.{key,value,effect}",
    ),
    *no_matter("DeviceTaintRule {metadata,status,spec.taint.timeAdded}"),
)


# ----------------------------------------------------------------------------
# The rows of pods, their groups and priorities, and namespaces.

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_LABELS: Final = "{matchLabels,matchExpressions.{key,operator,values}}"
_TERM: Final = (
    f"{{labelSelector.{_LABELS},namespaces,namespaceSelector.{_LABELS},"
    "topologyKey,matchLabelKeys,mismatchLabelKeys}"
)
_CONTAINERS: Final = "Pod spec.{initContainers,containers}"
_SCHEDULER_ONLY: Final = {
    Mode.FIRST_FIT: Fate.NO_MATTER,
    Mode.OPTIMAL: Fate.NO_MATTER,
}
_NOT_SCHEDULER: Final = {Mode.SCHEDULER: Fate.IGNORED}


def _awaits_admission(pod: Any, name: Any) -> bool:
    """Whether a RuntimeClass has yet to add its overhead, node selector and tolerations to the pod."""
    return bool(name) and not pod.metadata.uid


WORKLOADS: Final[tuple[FieldRow, ...]] = (
    *modelled("names the pod", "Pod metadata.{name,namespace,uid}"),
    *modelled("what others select pods by", "Pod metadata.labels"),
    *modelled(
        "the order of pods",
        "Pod metadata.creationTimestamp",
        "Pod spec.priority",
    ),
    *modelled(
        "priorities by name",
        "Pod spec.priorityClassName",
        "PriorityClass {metadata.name,value,globalDefault}",
    ),
    *modelled(
        "pods that end hold nothing and are not placed",
        "Pod {metadata.deletionTimestamp,status.phase}",
    ),
    *modelled(
        "which owners need no more pods, what pods are worth, and what is to be true of several of their claims",
        "Pod metadata.{annotations,ownerReferences.{apiVersion,kind,name,uid,controller}}",
    ),
    *modelled("a pod with a node stays there", "Pod spec.nodeName"),
    *modelled(
        "claims of the pod (KEP-4381)",
        "Pod spec.resourceClaims.{name,resourceClaimName,resourceClaimTemplateName}",
        "Pod status.resourceClaimStatuses.{name,resourceClaimName}",
    ),
    *modelled(
        "pods with gates are not placed", "Pod spec.schedulingGates.name"
    ),
    *modelled("which nodes are allowed", "Pod spec.nodeSelector"),
    *modelled(
        "which nodes are allowed",
        f"Pod spec.affinity.nodeAffinity.{_REQUIRED}.{NODE_SELECTOR}",
    ),
    *modelled(
        "taints of nodes", "Pod spec.tolerations.{key,operator,value,effect}"
    ),
    *modelled(
        "affinity to other pods",
        f"Pod spec.affinity.{{podAffinity,podAntiAffinity}}.{_REQUIRED}.{_TERM}",
    ),
    *modelled(
        "topology spread; the scheduler scores with what may be violated",
        f"Pod spec.topologySpreadConstraints.{{maxSkew,topologyKey,whenUnsatisfiable,labelSelector.{_LABELS}}}",
        "Pod spec.topologySpreadConstraints.{minDomains,nodeAffinityPolicy,nodeTaintsPolicy,matchLabelKeys}",
    ),
    *modelled(
        "what the pod takes of its node, and extended resources (KEP-5004)",
        f"{_CONTAINERS}.resources.{{requests,limits}}",
        "Pod spec.{resources.{requests,limits},overhead}",
        "Pod spec.initContainers.restartPolicy",
    ),
    *modelled(
        "what the devices of the pod take of its node (KEP-5517)",
        f"{_CONTAINERS}.resources.claims.name",
        "Pod status.nodeAllocatableResourceClaimStatuses.{containers,resources,mapping.{name,quantity}}",
        "Pod status.nodeAllocatableResourceClaimStatuses.overhead.{name,perPod,perContainer}",
    ),
    *modelled(
        "ports of the node",
        f"{_CONTAINERS}.ports.{{hostPort,containerPort,hostIP,protocol}}",
        "Pod spec.hostNetwork",
    ),
    *modelled(
        "gangs (KEP-4671)",
        "Pod spec.schedulingGroup.podGroupName",
        "PodGroup spec.schedulingPolicy.gang.minCount",
    ),
    *modelled(
        "gangs (KEP-4671)",
        "Pod spec.workloadRef.{name,podGroup,podGroupReplicaKey}",
        "Workload spec.podGroups.policy.gang.minCount",
        but=_NOT_SCHEDULER,
    ),
    *modelled(
        "constraints over claims of the group (`dralloc.dev/across`)",
        "{PodGroup,Workload} metadata.annotations",
    ),
    *modelled(
        "groups of groups (KEP-6012)",
        "{PodGroup,CompositePodGroup} spec.parentCompositePodGroupName",
        "CompositePodGroup spec.schedulingPolicy.gang.minGroupCount",
    ),
    *modelled(
        "groups of groups in one domain (KEP-6012)",
        "CompositePodGroup spec.schedulingConstraints.topology.key",
    ),
    *modelled(
        "names the group",
        "{PodGroup,CompositePodGroup,Workload} metadata.{name,namespace}",
        "Workload spec.podGroups.name",
    ),
    *modelled(
        "claims of a group (KEP-5729)",
        "PodGroup spec.resourceClaims.{name,resourceClaimName,resourceClaimTemplateName}",
        "PodGroup status.resourceClaimStatuses.{name,resourceClaimName}",
    ),
    *modelled(
        "groups in one domain (KEP-5732)",
        "PodGroup spec.schedulingConstraints.topology.key",
    ),
    *preferred(
        "which nodes are preferred",
        f"Pod spec.affinity.nodeAffinity.{_PREFERRED}.{{weight,preference.{NODE_TERM}}}",
        f"Pod spec.affinity.{{podAffinity,podAntiAffinity}}.{_PREFERRED}.{{weight,podAffinityTerm.{_TERM}}}",
    ),
    *preferred(
        "images that nodes have already",
        f"{_CONTAINERS}.image",
        "Pod spec.volumes.image.reference",
    ),
    *preferred("which profile schedules the pod", "Pod spec.schedulerName"),
    *preferred(
        "a scheduler that has tried pods runs: the older ones come first",
        "Pod status.conditions.reason",
    ),
    *preferred(
        "which pods are nominated for nodes where others would be evicted for them",
        "Pod spec.preemptionPolicy",
    ),
    *ignored(
        "volumes, which bind pods to nodes that can have them",
        "Pod spec.volumes.{persistentVolumeClaim,ephemeral,csi}",
        "Pod spec.volumes.{awsElasticBlockStore,azureDisk,cinder,gcePersistentDisk}",
        "Pod spec.volumes.{iscsi,portworxVolume,rbd,vsphereVolume}",
    ),
    *ignored(
        "features that nodes must declare (KEP-5328)",
        f"{_CONTAINERS}.restartPolicyRules.action",
        says=lambda _, action: bool(action == "RestartAllContainers"),
    ),
    *ignored(
        "features that nodes must declare (KEP-5328)",
        "Pod spec.hostUsers",
        says=lambda pod, shares: shares is False and pod.spec.host_network,
    ),
    *ignored(
        "what its RuntimeClass adds when the pod is made: overhead, node selector, tolerations",
        "Pod spec.runtimeClassName",
        says=_awaits_admission,
    ),
    *ignored(
        "a pod being resized takes the more of what it had and gets",
        "Pod status.conditions.type",
        says=lambda _, kind: (
            kind in ("PodResizePending", "PodResizeInProgress")
        ),
        of_running=True,
    ),
    *ignored(
        "nodes that are nominated for pods",
        "Pod status.nominatedNodeName",
        but=_SCHEDULER_ONLY,
    ),
    *no_matter(
        "Pod metadata",
        "Pod spec.tolerations.tolerationSeconds",
        f"{_CONTAINERS}.{{name,command,args,workingDir,envFrom,env,resizePolicy,volumeMounts,volumeDevices}}",
        f"{_CONTAINERS}.{{livenessProbe,readinessProbe,startupProbe,lifecycle,terminationMessagePath}}",
        f"{_CONTAINERS}.{{terminationMessagePolicy,imagePullPolicy,securityContext,stdin,stdinOnce,tty}}",
        f"{_CONTAINERS}.{{resources.claims.request,ports.name,restartPolicyRules}}",
        "Pod spec.containers.restartPolicy",
        "Pod spec.{ephemeralContainers,restartPolicy,terminationGracePeriodSeconds,activeDeadlineSeconds,dnsPolicy}",
        "Pod spec.{serviceAccountName,serviceAccount,automountServiceAccountToken,hostPID,hostIPC,securityContext}",
        "Pod spec.{shareProcessNamespace,imagePullSecrets,hostname,subdomain,hostAliases,dnsConfig,readinessGates}",
        "Pod spec.{enableServiceLinks,setHostnameAsFQDN,os,hostnameOverride,resources.claims}",
        "Pod spec.volumes.{name,azureFile,cephfs,configMap,downwardAPI,emptyDir,fc,flexVolume,flocker,gitRepo}",
        "Pod spec.volumes.{glusterfs,hostPath,image.pullPolicy,nfs,photonPersistentDisk,projected,quobyte,scaleIO}",
        "Pod spec.volumes.{secret,storageos}",
        "Pod status",
        "{PodGroup,CompositePodGroup,Workload,PriorityClass} metadata",
        "PriorityClass {description,preemptionPolicy}",
        "PodGroup spec.{podGroupTemplateRef,schedulingPolicy.basic,disruptionMode,priorityClassName,priority}",
        "PodGroup status.conditions",
        "Workload spec.{controllerRef,podGroupTemplates}",
    ),
)


# ----------------------------------------------------------------------------
# All rows, with those of nodes, namespaces and quotas, and which of them says what a
# field is.

_CLUSTERS: Final[tuple[FieldRow, ...]] = (
    *modelled("names the node", "Node metadata.name"),
    *modelled(
        "which nodes are allowed, and which are one place",
        "Node metadata.labels",
    ),
    *modelled("taints", "Node spec.{unschedulable,taints.{key,value,effect}}"),
    *modelled("what pods take of the node", "Node status.allocatable"),
    *preferred(
        "images that the node has already",
        "Node status.images.{names,sizeBytes}",
    ),
    *no_matter(
        "Node metadata",
        "Node spec.{podCIDR,podCIDRs,providerID,configSource,externalID,taints.timeAdded}",
        "Node status.{capacity,phase,conditions,addresses,daemonEndpoints,nodeInfo,volumesInUse,volumesAttached}",
        "Node status.{config,runtimeHandlers,features,declaredFeatures}",
    ),
    *modelled("namespaces by labels", "Namespace metadata.{name,labels}"),
    *no_matter("Namespace {metadata,spec,status}"),
    *modelled(
        "quotas of devices (KEP-4381)",
        "ResourceQuota {metadata.namespace,spec.hard}",
    ),
    *modelled(
        "quotas with a scope are for pods only",
        "ResourceQuota spec.{scopes,scopeSelector.matchExpressions.{scopeName,operator,values}}",
    ),
    *no_matter("ResourceQuota {metadata,status}"),
)

TABLE: Final[tuple[FieldRow, ...]] = (*RESOURCES, *WORKLOADS, *_CLUSTERS)
"""All rows."""

_BY_FIELD: Final = {(row.kind, row.path): row for row in TABLE}


def row_of(kind: str, path: str) -> FieldRow | None:
    """The row of a field: its own, or that of the nearest field above it of which all fields below are the same.

    A row of what is modelled stands for its field alone, so that a new field below it is nobody's.

    Parameters
    ----------
    path
        As on the wire, without steps into lists and maps.
    """
    exact_row = _BY_FIELD.get((kind, path))
    steps = path.split(".")
    above = (
        _BY_FIELD.get((kind, ".".join(steps[:depth])))
        for depth in range(len(steps) - 1, 0, -1)
    )
    return exact_row or next(
        (row for row in above if row is not None and row.covers_below), None
    )


# ----------------------------------------------------------------------------
# Which objects use fields that some mode does not model.

_IGNORED: Final = tuple(
    row for row in TABLE if Fate.IGNORED in row.fates.values()
)


@dataclass(frozen=True, slots=True)
class FieldUse:
    """A field that some mode ignores and that objects use.

    Parameters
    ----------
    about
        The first of these objects.
    path
        Where in it the field is.
    objects
        How many they are.
    """

    row: FieldRow
    about: ApiObject
    path: str
    objects: int

    @property
    def modes(self) -> frozenset[Mode]:
        """The modes that ignore the field."""
        return frozenset(
            mode for mode in Mode if self.row.fates[mode] is Fate.IGNORED
        )

    @property
    def rule(self) -> str:
        """The meaning of that, in words."""
        where = (
            ""
            if len(self.modes) == len(Mode)
            else f" in mode {' and '.join(sorted(self.modes))}"
        )
        further = (
            f" (here and in {self.objects - 1} more)"
            if self.objects > 1
            else ""
        )
        return f"is not modelled{where}: {self.row.rule}{further}"


def used(
    objects: Mapping[str, Sequence[ApiObject]],
    running: Sequence[ApiObject] = (),
) -> Iterator[FieldUse]:
    """The fields that some mode ignores, as far as objects use them.

    Parameters
    ----------
    objects
        What could bind what is to be placed, by kind; of pods those that are to be placed.
    running
        Pods that have a node.
    """
    parts_of = {
        kind: _Parts(objects_of_kind)
        for kind, objects_of_kind in objects.items()
    }
    parts_of_running = _Parts(running)
    for row in _IGNORED:
        parts = (
            parts_of_running
            if row.of_running
            else parts_of.get(row.kind, _Parts(()))
        )
        # Nobody says anything in the field, or the field is left out: no object needs
        # to be looked at.
        if not parts.at(row.steps):
            continue
        users = []
        for api_object in parts.at(()):
            path = _place(api_object, row)
            if path is not None:
                users.append((api_object, path))
        if users:
            yield FieldUse(row, *users[0], len(users))


class _Parts:
    """The values of fields in objects, read for all at once, as a cluster can have a million devices."""

    def __init__(self, objects: Sequence[Any]) -> None:
        self._known: dict[tuple[str, ...], Sequence[Any]] = {(): objects}

    def at(self, steps: tuple[str, ...]) -> Sequence[Any]:
        """Return the distinct values that the objects have in a field; items of lists one by one."""
        if steps not in self._known:
            # By identity, as slices that are made from one template share their lists of devices.
            distinct = {}
            for owner in self.at(steps[:-1]):
                part = getattr(owner, steps[-1], None)
                if part is not None:
                    distinct[id(common(part))] = part
            parts = list(distinct.values())
            self._known[steps] = (
                list(chain.from_iterable(parts))
                if parts and isinstance(parts[0], tuple)
                else parts
            )
        return self._known[steps]


def _place(api_object: ApiObject, row: FieldRow) -> str | None:
    names = zip(row.path.split("."), row.steps, strict=True)
    values = _values(api_object, tuple(names), "")
    return next(
        (path for path, value in values if row.says(api_object, value)), None
    )


def _values(
    value: Any, steps: tuple[tuple[str, str], ...], path: str
) -> Iterator[tuple[str, Any]]:
    """Yield the values of a field, with their places, for each item of the lists on the way."""
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _values(item, steps, f"{path}[{index}]")
    elif not steps:
        yield path, value
    elif value is not None:
        (name, attribute), *further_steps = steps
        inner = getattr(value, attribute, None)
        yield from _values(
            inner, tuple(further_steps), f"{path}.{name}" if path else name
        )
