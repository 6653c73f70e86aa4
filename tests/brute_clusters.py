"""The referee for small clusters: it reads the objects as they stand in files, and judges answers by the API's text.

Nothing of the package is used, neither its objects nor its problem. What it knows: dedicated devices of nodes, claims
with one request each (``exactly`` or ``firstAvailable``, classes by a device's attribute ``kind``), claims that pods
share, admin access, node selectors, CPU with requests of the pod as a whole and with what devices take of it,
constraints over the claims of a pod, PodGroups and CompositePodGroups with their minimums and domains.

- A pod of a PodGroup may be placed if as many of the group's pods as its ``minCount`` says are placed, run, or wait for
  no device (KEP-4671), and if its group's parent is admitted: if so many of its children are as its ``minGroupCount``
  says; and so on up to the root (KEP-6012).
- All pods of a group with a topology key that have a node are on nodes with one value of that label (KEP-5732).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import NamedTuple

from wire import Json

__all__ = [
    "ACROSS",
    "DRIVER",
    "Answer",
    "Grant",
    "SmallCluster",
    "of_containers",
]

ACROSS = "dralloc.dev/across"
DRIVER = "gpu.example.com"


class Grant(NamedTuple):
    """What a claim gets: which of its alternatives, and the device by its node and its name."""

    choice: int
    node: str
    device: str


@dataclass(frozen=True)
class Answer:
    """The node of each pod that is placed, and what each of their claims gets, by name."""

    homes: Mapping[str, str] = field(default_factory=dict)
    grants: Mapping[str, Grant] = field(default_factory=dict)


class SmallCluster:
    """Objects of one namespace, looked up by kind and name."""

    def __init__(self, objects: Sequence[Json]) -> None:
        self.objects = objects
        self.nodes, self.pods, self.claims, self.groups, self.composites = (
            {
                document["metadata"]["name"]: document
                for document in objects
                if document["kind"] == kind
            }
            for kind in (
                "Node",
                "Pod",
                "ResourceClaim",
                "PodGroup",
                "CompositePodGroup",
            )
        )
        slices = [
            document["spec"]
            for document in objects
            if document["kind"] == "ResourceSlice"
        ]
        self.devices = {
            (part["nodeName"], device["name"]): device
            for part in slices
            for device in part["devices"]
        }
        self.running = {
            name: pod["spec"]["nodeName"]
            for name, pod in self.pods.items()
            if "nodeName" in pod["spec"]
        }
        self.asking = [name for name in self.pods if self._is_asking(name)]
        results = (
            result for claim in self.claims for result in self._results(claim)
        )
        self.held = {
            (result["pool"], result["device"])
            for result in results
            if not result.get("adminAccess")
        }

    def _is_asking(self, name: str) -> bool:
        """Whether a pod waits for devices."""
        pending = any(map(self._is_pending, self.claims_of(name)))
        return (
            pending
            and name not in self.running
            and not self.pods[name]["spec"].get("schedulingGates")
        )

    def _is_pending(self, claim: str) -> bool:
        return "status" not in self.claims[claim]

    def _results(self, claim: str) -> list[Json]:
        """What a claim holds already."""
        devices = (
            self.claims[claim]
            .get("status", {})
            .get("allocation", {})
            .get("devices", {})
        )
        results: list[Json] = devices.get("results", [])
        return results

    def claims_of(self, pod: str) -> list[str]:
        """The names of a pod's claims."""
        return [
            entry["resourceClaimName"]
            for entry in self.pods[pod]["spec"].get("resourceClaims", ())
        ]

    def without(self, pods: Collection[str]) -> SmallCluster:
        """The cluster in which some pods are gone, and the claims that nobody else uses are free."""
        used = {
            claim
            for name in self.pods
            if name not in pods
            for claim in self.claims_of(name)
        }
        remaining = []
        for document in self.objects:
            name = document["metadata"]["name"]
            gone = {"Pod": name in pods, "ResourceClaim": name not in used}
            if not gone.get(document["kind"]):
                remaining.append(document)
        return SmallCluster(remaining)

    # What answers are worth.

    def worth(self, answer: Answer) -> tuple[int, ...]:
        """How many pods of each priority are placed, the highest first; then the ranks of what they got, below zero."""
        priorities = sorted(
            {self.priority(name) for name in self.asking}, reverse=True
        )
        placed = Counter(self.priority(name) for name in answer.homes)
        return (
            *(placed[priority] for priority in priorities),
            -sum(grant.choice for grant in answer.grants.values()),
        )

    def priority(self, pod: str) -> int:
        """The priority of a pod."""
        priority: int = self.pods[pod]["spec"].get("priority", 0)
        return priority

    def best(self, among: Collection[str] | None = None) -> tuple[int, ...]:
        """What the best answer is worth; ``among``: the pods that can be placed."""
        return max(map(self.worth, self.answers(among)))

    # Which answers there are.

    def answers(self, among: Collection[str] | None = None) -> Iterator[Answer]:
        """Every answer that keeps the rules."""
        pods = (
            self.asking
            if among is None
            else [name for name in self.asking if name in among]
        )
        options = [
            [None, *(node for node in self.nodes if self._may_go(pod, node))]
            for pod in pods
        ]
        for chosen in product(*options):
            homes = {
                pod: node
                for pod, node in zip(pods, chosen, strict=True)
                if node is not None
            }
            if self.groups_hold(homes):
                for grants in self._handed_out(homes):
                    answer = Answer(homes, grants)
                    if self._amounts_suffice(answer):
                        yield answer

    def is_right(self, answer: Answer) -> bool:
        """Whether an answer of somebody else keeps the rules."""
        homes = answer.homes
        wanted = {
            claim
            for pod in homes
            for claim in self.claims_of(pod)
            if self._is_pending(claim)
        }
        return (
            set(homes) <= set(self.asking)
            and all(self._may_go(pod, node) for pod, node in homes.items())
            and self.groups_hold(homes)
            and wanted == set(answer.grants)
            and any(
                dict(grants) == dict(answer.grants)
                for grants in self._handed_out(homes)
            )
            and self._amounts_suffice(answer)
        )

    def _may_go(self, pod: str, node: str) -> bool:
        labels = self.nodes[node]["metadata"]["labels"]
        wanted = self.pods[pod]["spec"].get("nodeSelector", {})
        homes = [
            result["pool"]
            for claim in self.claims_of(pod)
            for result in self._results(claim)
        ]
        return all(
            labels.get(key) == value for key, value in wanted.items()
        ) and set(homes) <= {node}

    # Devices.

    def _handed_out(
        self, homes: Mapping[str, str]
    ) -> Iterator[dict[str, Grant]]:
        """What the claims of placed pods can get: a device that several pods use is on the node of them all."""
        nodes: dict[str, set[str]] = {}
        for pod, node in homes.items():
            for claim in self.claims_of(pod):
                if self._is_pending(claim):
                    nodes.setdefault(claim, set()).add(node)
        if any(len(visited) > 1 for visited in nodes.values()):
            return
        partial: list[dict[str, Grant]] = [{}]
        for claim, (node,) in nodes.items():
            options = list(self._grants(claim, node))
            partial = [
                {**before, claim: grant}
                for before in partial
                for grant in options
                if self._is_free(before, claim, grant)
            ]
        yield from (grants for grants in partial if self._agree(homes, grants))

    def _alternatives(self, claim: str) -> list[Json]:
        [request] = self.claims[claim]["spec"]["devices"]["requests"]
        return (
            [request["exactly"]]
            if "exactly" in request
            else request["firstAvailable"]
        )

    def _is_admin(self, claim: str) -> bool:
        return bool(self._alternatives(claim)[0].get("adminAccess"))

    def _grants(self, claim: str, node: str) -> Iterator[Grant]:
        for choice, alternative in enumerate(self._alternatives(claim)):
            for (home, name), device in self.devices.items():
                kind = device["attributes"]["kind"]["string"]
                if home == node and alternative["deviceClassName"] in (
                    "any",
                    kind,
                ):
                    yield Grant(choice, home, name)

    def _is_free(
        self, before: Mapping[str, Grant], claim: str, grant: Grant
    ) -> bool:
        if self._is_admin(claim):
            return True
        others = {
            other[1:]
            for name, other in before.items()
            if not self._is_admin(name)
        }
        return grant[1:] not in others | self.held

    def _agree(
        self, homes: Mapping[str, str], grants: Mapping[str, Grant]
    ) -> bool:
        """Whether the devices of each pod, and those of each group's pods, agree as their annotations say."""
        of_pods = [(self.pods[pod], [pod]) for pod in homes]
        of_groups = [
            (
                group,
                [
                    pod
                    for pod in self.members(name)
                    if pod in homes or pod in self.running
                ],
            )
            for name, group in self.groups.items()
        ]
        return all(
            self._agrees(about, pods, grants)
            for about, pods in (*of_pods, *of_groups)
        )

    def _agrees(
        self, about: Json, pods: Sequence[str], grants: Mapping[str, Grant]
    ) -> bool:
        text = about["metadata"].get("annotations", {}).get(ACROSS)
        if not text or not any(pod in self.asking for pod in pods):
            return True
        kind, _, attribute = text.partition("=")
        name = attribute.removeprefix(f"{DRIVER}/")
        claims = {claim for pod in pods for claim in self.claims_of(pod)}
        got = [grants[claim][1:] for claim in claims if claim in grants]
        held = [
            (result["pool"], result["device"])
            for claim in claims
            for result in self._results(claim)
        ]
        devices = [self.devices[name] for name in (*got, *held)]
        if any(name not in device["attributes"] for device in devices):
            return False
        values = [device["attributes"][name]["string"] for device in devices]
        return (
            len(set(values)) <= 1
            if kind == "matchAttribute"
            else len(set(values)) == len(values)
        )

    # CPU.

    def _amounts_suffice(self, answer: Answer) -> bool:
        taken: dict[str, Fraction] = defaultdict(Fraction)
        for pod, node in {**self.running, **answer.homes}.items():
            devices = self._of_devices(pod, answer)
            containers, whole = (
                of_containers(self.pods[pod]["spec"]),
                self._of_whole_pod(pod),
            )
            if whole is not None and containers + devices > whole:
                return False
            taken[node] += containers + devices if whole is None else whole
        limits = {
            name: node.get("status", {}).get("allocatable")
            for name, node in self.nodes.items()
        }
        placed_on = {
            node
            for pod, node in answer.homes.items()
            if self._asks_cpu(pod, answer)
        }
        return all(
            taken[node] <= _cpu(limits[node].get("cpu", "0"))
            for node in placed_on
            if limits[node]
        )

    def _asks_cpu(self, pod: str, answer: Answer) -> bool:
        containers, whole = (
            of_containers(self.pods[pod]["spec"]),
            self._of_whole_pod(pod),
        )
        return bool(containers or whole or self._of_devices(pod, answer))

    def _of_devices(self, pod: str, answer: Answer) -> Fraction:
        granted = [
            claim
            for claim in self.claims_of(pod)
            if pod in answer.homes and claim in answer.grants
        ]
        return sum(
            (
                self._of_device(pod, claim, answer.grants[claim])
                for claim in granted
            ),
            Fraction(),
        )

    def _of_whole_pod(self, pod: str) -> Fraction | None:
        requests = (
            self.pods[pod]["spec"].get("resources", {}).get("requests", {})
        )
        return _cpu(requests["cpu"]) if "cpu" in requests else None

    def _of_device(self, pod: str, claim: str, grant: Grant) -> Fraction:
        """What a device takes of its node's CPU for a pod (KEP-5517)."""
        spec = self.pods[pod]["spec"]
        takes = (
            self.devices[grant[1:]]
            .get("nodeAllocatableResources", {})
            .get("cpu", {})
        )
        entries = {
            entry["name"]
            for entry in spec["resourceClaims"]
            if entry["resourceClaimName"] == claim
        }
        every = (*spec.get("initContainers", ()), *spec.get("containers", ()))
        refers = sum(
            reference["name"] in entries
            for container in every
            for reference in container.get("resources", {}).get("claims", ())
        )
        overhead = takes.get("overhead", {})
        mapped = _cpu(takes.get("mapping", {}).get("deviceMultiplier", "0"))
        return (
            mapped
            + _cpu(overhead.get("perPod", "0"))
            + refers * _cpu(overhead.get("perContainer", "0"))
        )

    # Groups.

    def groups_hold(self, homes: Mapping[str, str]) -> bool:
        """Whether pods may be placed like that as far as their groups are concerned."""
        return all(
            self._group_holds(self.group_of(pod), homes) for pod in homes
        )

    def group_of(self, pod: str) -> str:
        """The name of a pod's PodGroup; empty if it has none."""
        name: str = (
            self.pods[pod]["spec"]
            .get("schedulingGroup", {})
            .get("podGroupName", "")
        )
        return name

    def members(self, group: str) -> list[str]:
        """The pods of a PodGroup."""
        return [name for name in self.pods if self.group_of(name) == group]

    def _group_holds(self, group: str, homes: Mapping[str, str]) -> bool:
        if not group:
            return True
        above = self.ancestors(group)
        return (
            above is not None
            and self._is_admitted(group, homes)
            and all(self._is_composite_admitted(name, homes) for name in above)
            and self._in_one_domain(
                self.groups[group], self.members(group), homes
            )
            and all(
                self._in_one_domain(
                    self.composites[name], self.below(name), homes
                )
                for name in above
            )
        )

    def ancestors(self, group: str) -> list[str] | None:
        """The names of the CompositePodGroups above a PodGroup; None if that is no tree, or one that is too deep."""
        above: list[str] = []
        name = _parent(self.groups[group])
        while name:
            if name not in self.composites or name in above or len(above) == 3:
                return None
            above.append(name)
            name = _parent(self.composites[name])
        return above

    def below(self, composite: str) -> list[str]:
        """The pods below a CompositePodGroup."""
        groups = [
            name
            for name in self.groups
            if composite in (self.ancestors(name) or ())
        ]
        return [pod for name in groups for pod in self.members(name)]

    def _is_admitted(self, group: str, homes: Mapping[str, str]) -> bool:
        """Whether enough pods of a PodGroup are placed, run, or need no device that they do not have."""
        needed = _least(self.groups[group], "minCount")
        ready = [
            pod
            for pod in self.members(group)
            if pod in homes or self._is_served(pod)
        ]
        return len(ready) >= needed

    def _is_served(self, pod: str) -> bool:
        gated = bool(self.pods[pod]["spec"].get("schedulingGates"))
        pending = any(map(self._is_pending, self.claims_of(pod)))
        return pod in self.running or not (gated or pending)

    def _is_composite_admitted(
        self, name: str, homes: Mapping[str, str]
    ) -> bool:
        groups = [
            child
            for child in self.groups
            if _parent(self.groups[child]) == name
        ]
        lower = [
            child
            for child in self.composites
            if _parent(self.composites[child]) == name
        ]
        admitted = sum(self._is_admitted(child, homes) for child in groups)
        admitted += sum(
            self._is_composite_admitted(child, homes) for child in lower
        )
        return admitted >= _least(self.composites[name], "minGroupCount")

    def _in_one_domain(
        self, group: Json, pods: Sequence[str], homes: Mapping[str, str]
    ) -> bool:
        constraints = (
            group["spec"].get("schedulingConstraints", {}).get("topology", [])
        )
        if not constraints:
            return True
        there = {**self.running, **homes}
        labels = [
            self.nodes[there[pod]]["metadata"]["labels"]
            for pod in pods
            if pod in there
        ]
        domains = {known.get(constraints[0]["key"]) for known in labels}
        return len(domains) <= 1 and None not in domains


def _least(group: Json, field: str) -> int:
    """How many a gang needs; one where there is none."""
    least: int = group["spec"]["schedulingPolicy"].get("gang", {}).get(field, 1)
    return least


def _parent(group: Json) -> str:
    name: str = group["spec"].get("parentCompositePodGroupName", "")
    return name


def of_containers(spec: Json) -> Fraction:
    """The CPU that a pod's containers request: all of them together, or what the largest init container does."""
    running = sum(map(_requested, spec.get("containers", ())), Fraction())
    return max([running, *map(_requested, spec.get("initContainers", ()))])


def _requested(container: Json) -> Fraction:
    return _cpu(
        container.get("resources", {}).get("requests", {}).get("cpu", "0")
    )


def _cpu(quantity: str) -> Fraction:
    return (
        Fraction(quantity[:-1]) / 1000
        if quantity.endswith("m")
        else Fraction(quantity)
    )
