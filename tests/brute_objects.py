"""The referee for rules of pods, nodes and groups: every filter asked for one pod after the other, in every order.

It reads objects as they are on the wire, a pod at a time, and looks at every pod that is there again for each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import Any, NamedTuple

from wire import Json

__all__ = ["Arrival", "Referee"]

HIDDEN = "node.kubernetes.io/unschedulable"
UNITS = {"m": Fraction(1, 1000), "Mi": Fraction(2**20), "Gi": Fraction(2**30)}

LAX = "lax"
"""The scheduler that does not look at what nodes have left."""


class Arrival(NamedTuple):
    """A pod, by namespace and name, and the node to which it comes."""

    pod: tuple[str, str]
    node: str


There = Sequence[tuple[Json, Json]]
"""Pods that are there already, with their nodes."""
Passes = Callable[[Json, Json, There], bool]


@dataclass(frozen=True)
class Referee:
    """Tells whether arrivals of pods keep the rules of some objects.

    Parameters
    ----------
    objects
        In wire form; every object says its namespace.
    in_order
        Whether the arrivals are all there are, in this order. If not, each rule is kept in some order of them, and pods
        without claims come beside them.
    """

    objects: Sequence[Json]
    in_order: bool

    def accepts(self, arrivals: Sequence[Arrival]) -> bool:
        coming = [
            (self.pods[arrival.pod], self.nodes[arrival.node])
            for arrival in arrivals
        ]
        if len({arrival.pod for arrival in arrivals}) < len(arrivals):
            return False
        if any(
            name_of(pod) in self.homes
            and self.homes[name_of(pod)] != name_of(node)[1]
            for pod, node in coming
        ):
            return False
        new = [
            (pod, node)
            for pod, node in coming
            if name_of(pod) not in self.homes
        ]
        if any(pod["spec"].get("schedulingGates") for pod, _ in new):
            return False
        return self._keep_filters(new) and self._keep_groups(new)

    @property
    def pods(self) -> Mapping[tuple[str, str], Json]:
        return {
            name_of(document): document
            for document in self.objects
            if document["kind"] == "Pod"
        }

    @property
    def nodes(self) -> Mapping[str, Json]:
        return {
            name_of(document)[1]: document
            for document in self.objects
            if document["kind"] == "Node"
        }

    @property
    def homes(self) -> Mapping[tuple[str, str], str]:
        """The nodes of pods that have one."""
        return {
            name: pod["spec"]["nodeName"]
            for name, pod in self.pods.items()
            if pod["spec"].get("nodeName")
        }

    @property
    def _running(self) -> list[tuple[Json, Json]]:
        return [
            (self.pods[name], self.nodes[node])
            for name, node in self.homes.items()
        ]

    def _keep_filters(self, new: There) -> bool:
        rules: list[Passes] = [
            self._is_near,
            self._is_apart,
            is_allowed,
            has_room,
            has_ports,
        ]
        if self.in_order:
            return all(
                self._passes(rule, new)
                for rule in (*rules, self._is_even_at_all)
            )
        constraints = {
            repr(constraint): constraint
            for pod, _ in new
            for constraint in self._constraints(pod)
        }
        # A constraint is the same for all pods that have it with the same meaning.
        spreads = [
            self._only(constraint) for constraint in constraints.values()
        ]
        return all(
            any(self._passes(rule, order) for order in permutations(new))
            for rule in (*rules, *spreads)
        )

    def _passes(self, rule: Passes, order: There) -> bool:
        there = self._running
        for pod, node in order:
            if not rule(pod, node, there):
                return False
            there = [*there, (pod, node)]
        return True

    # Affinity.

    def _means(
        self, term: Json, owner: Json, other: Json, *, own: bool = False
    ) -> bool:
        """Whether a term of a pod means another.

        Parameters
        ----------
        own
            Whether the term is of the pod that comes, in an answer of the scheduler: it forgets labels of namespaces.
        """
        space = name_of(other)[0]
        names = term.get("namespaces") or (
            [] if "namespaceSelector" in term else [name_of(owner)[0]]
        )
        labels = {"kubernetes.io/metadata.name": space}
        for document in self.objects:
            if (
                document["kind"] == "Namespace"
                and document["metadata"]["name"] == space
            ):
                labels |= document["metadata"].get("labels", {})
        by_selector = "namespaceSelector" in term and selects(
            term["namespaceSelector"], labels
        )
        by_nothing = (
            own
            and self.in_order
            and "namespaceSelector" in term
            and selects(term["namespaceSelector"], {})
        )
        if space not in names and not by_selector and not by_nothing:
            return False
        return "labelSelector" in term and selects(
            self._with_keys(term, owner), labels_of(other)
        )

    @staticmethod
    def _with_keys(term: Json, owner: Json) -> Json:
        """The selector with what ``matchLabelKeys`` and ``mismatchLabelKeys`` add to it."""
        more: list[Json] = []
        for field, operator in (
            ("matchLabelKeys", "In"),
            ("mismatchLabelKeys", "NotIn"),
        ):
            keys = [
                key for key in term.get(field, []) if key in labels_of(owner)
            ]
            more += (
                {
                    "key": key,
                    "operator": operator,
                    "values": [labels_of(owner)[key]],
                }
                for key in keys
            )
        selector: Json = term["labelSelector"]
        return {
            **selector,
            "matchExpressions": [*selector.get("matchExpressions", []), *more],
        }

    def _is_near(self, pod: Json, node: Json, there: There) -> bool:
        terms = terms_of(pod, "podAffinity")
        if not terms:
            return True
        if any(term["topologyKey"] not in labels_of(node) for term in terms):
            return False
        domains = set()
        for other, home in there:
            if all(self._means(term, pod, other, own=True) for term in terms):
                keys = {term["topologyKey"] for term in terms} & labels_of(
                    home
                ).keys()
                domains |= {(key, labels_of(home)[key]) for key in keys}
        if not domains:
            return all(self._means(term, pod, pod, own=True) for term in terms)
        return all(
            (term["topologyKey"], labels_of(node)[term["topologyKey"]])
            in domains
            for term in terms
        )

    def _is_apart(self, pod: Json, node: Json, there: There) -> bool:
        for other, home in there:
            for term in terms_of(pod, "podAntiAffinity"):
                if self._means(term, pod, other, own=True) and in_one_domain(
                    term["topologyKey"], node, home
                ):
                    return False
            for term in terms_of(other, "podAntiAffinity"):
                if self._means(term, other, pod) and in_one_domain(
                    term["topologyKey"], node, home
                ):
                    return False
        return True

    # Spread.

    def _constraints(self, pod: Json) -> Iterator[Json]:
        """The hard constraints of a pod, with everything in them that depends on the pod."""
        every = [
            constraint
            for constraint in pod["spec"].get("topologySpreadConstraints", [])
            if constraint["whenUnsatisfiable"] == "DoNotSchedule"
        ]
        for constraint in every:
            eligible = [
                name
                for name, node in self.nodes.items()
                if all(
                    other["topologyKey"] in labels_of(node) for other in every
                )
                and (
                    constraint.get("nodeAffinityPolicy") == "Ignore"
                    or is_selected(pod, node)
                )
                and (
                    constraint.get("nodeTaintsPolicy") != "Honor"
                    or is_tolerated(pod, taints_of(node))
                )
            ]
            yield {
                "namespace": name_of(pod)[0],
                "selector": self._with_keys(constraint, pod)
                if "labelSelector" in constraint
                else None,
                "limits": (
                    constraint["topologyKey"],
                    constraint["maxSkew"],
                    constraint.get("minDomains", 1),
                ),
                "eligible": eligible,
            }

    def _only(self, constraint: Json) -> Passes:
        def passes(pod: Json, node: Json, there: There) -> bool:
            return constraint not in list(
                self._constraints(pod)
            ) or self._is_even(constraint, pod, node, there)

        return passes

    def _is_even_at_all(self, pod: Json, node: Json, there: There) -> bool:
        return all(
            self._is_even(constraint, pod, node, there)
            for constraint in self._constraints(pod)
        )

    def _is_even(
        self, constraint: Json, pod: Json, node: Json, there: There
    ) -> bool:
        key, skew, domains = constraint["limits"]
        if key not in labels_of(node):
            return False
        counts = dict.fromkeys(
            [
                labels_of(self.nodes[name])[key]
                for name in constraint["eligible"]
            ],
            0,
        )
        selector = constraint["selector"]
        is_real = selector is not None and any(selector.values())
        for other, home in there:
            is_counted = (
                is_real
                and name_of(other)[0] == constraint["namespace"]
                and selects(selector, labels_of(other))
            )
            if is_counted and name_of(home)[1] in constraint["eligible"]:
                counts[labels_of(home)[key]] += 1
        fewest = (
            min(counts.values(), default=0) if len(counts) >= domains else 0
        )
        itself = selector is not None and selects(selector, labels_of(pod))
        return bool(
            counts.get(labels_of(node)[key], 0) + itself - fewest <= skew
        )

    # Groups.

    def _keep_groups(self, new: There) -> bool:
        homes = {
            **self.homes,
            **{name_of(pod): name_of(node)[1] for pod, node in new},
        }
        coming = {name_of(pod) for pod, _ in new}
        for kind in ("PodGroup", "CompositePodGroup"):
            for group in self.objects:
                if group["kind"] == kind and not coming.isdisjoint(
                    self._below(group)
                ):
                    if not self._is_admitted(
                        group, homes
                    ) or not self._is_in_order(group):
                        return False
                    if not self._is_in_one_domain(group, homes):
                        return False
        return all(
            self._group(*name)
            for pod in coming
            for name in [self._group_name(pod)]
            if name
        )

    def _group(self, kind: str, name: tuple[str, str]) -> Json | None:
        return next(
            (
                document
                for document in self.objects
                if document["kind"] == kind and name_of(document) == name
            ),
            None,
        )

    def _group_name(
        self, pod: tuple[str, str]
    ) -> tuple[str, tuple[str, str]] | None:
        name = (
            self.pods[pod]["spec"]
            .get("schedulingGroup", {})
            .get("podGroupName")
        )
        return ("PodGroup", (pod[0], name)) if name else None

    def _children(self, group: Json) -> list[Json]:
        return [
            document
            for document in self.objects
            if document["kind"] in ("PodGroup", "CompositePodGroup")
            and document["spec"].get("parentCompositePodGroupName")
            == group["metadata"]["name"]
            and name_of(document)[0] == name_of(group)[0]
        ]

    def _below(self, group: Json) -> set[tuple[str, str]]:
        """The pods of a group, or of those below it."""
        if group["kind"] == "CompositePodGroup":
            return {
                pod
                for child in self._children(group)
                for pod in self._below(child)
            }
        return {
            pod
            for pod in self.pods
            if self._group_name(pod) == ("PodGroup", name_of(group))
        }

    def _is_in_order(self, group: Json) -> bool:
        parent = group["spec"].get("parentCompositePodGroupName")
        return (
            parent is None
            or self._group("CompositePodGroup", (name_of(group)[0], parent))
            is not None
        )

    def _is_admitted(
        self, group: Json, homes: Mapping[tuple[str, str], str]
    ) -> bool:
        gang = group["spec"].get("schedulingPolicy", {}).get("gang", {})
        if group["kind"] == "CompositePodGroup":
            admitted = sum(
                self._is_admitted(child, homes)
                for child in self._children(group)
            )
            return bool(admitted >= gang.get("minGroupCount", 1))
        there = sum(
            pod in homes or self._is_left_to_others(self.pods[pod])
            for pod in self._below(group)
        )
        return bool(there >= gang.get("minCount", 1))

    def _is_left_to_others(self, pod: Json) -> bool:
        spec = pod["spec"]
        return not (
            self.in_order
            or spec.get("resourceClaims")
            or spec.get("schedulingGates")
        )

    def _is_in_one_domain(
        self, group: Json, homes: Mapping[tuple[str, str], str]
    ) -> bool:
        constraints = (
            group["spec"].get("schedulingConstraints", {}).get("topology", [])
        )
        if not constraints or (
            self.in_order and group["kind"] == "CompositePodGroup"
        ):
            return True
        nodes = [
            self.nodes[homes[pod]] for pod in self._below(group) if pod in homes
        ]
        domains = {labels_of(node).get(constraints[0]["key"]) for node in nodes}
        return len(domains) == 1 and None not in domains


def name_of(document: Json) -> tuple[str, str]:
    metadata = document["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def labels_of(document: Json) -> dict[str, str]:
    labels: dict[str, str] = document["metadata"].get("labels", {})
    return labels


def taints_of(node: Json) -> list[Json]:
    taints: list[Json] = node.get("spec", {}).get("taints", [])
    return taints


def in_one_domain(key: str, node: Json, other: Json) -> bool:
    return key in labels_of(node) and labels_of(node)[key] == labels_of(
        other
    ).get(key)


def terms_of(pod: Json, way: str) -> list[Json]:
    affinity = pod["spec"].get("affinity", {}).get(way, {})
    terms: list[Json] = affinity.get(
        "requiredDuringSchedulingIgnoredDuringExecution", []
    )
    return terms


def selects(selector: Json, labels: Mapping[str, str]) -> bool:
    if any(
        labels.get(key) != value
        for key, value in selector.get("matchLabels", {}).items()
    ):
        return False
    return all(
        holds(requirement, labels)
        for requirement in selector.get("matchExpressions", [])
    )


def holds(requirement: Json, labels: Mapping[str, str]) -> bool:
    key, operator, values = (
        requirement["key"],
        requirement["operator"],
        requirement.get("values", []),
    )
    if operator in ("Exists", "DoesNotExist"):
        return bool((key in labels) == (operator == "Exists"))
    if operator in ("Gt", "Lt"):
        sign = 1 if operator == "Gt" else -1
        return (
            key in labels
            and labels[key].isdecimal()
            and sign * (int(labels[key]) - int(values[0])) > 0
        )
    return bool((labels.get(key) in values) == (operator == "In"))


def is_selected(pod: Json, node: Json) -> bool:
    spec = pod["spec"]
    if any(
        labels_of(node).get(key) != value
        for key, value in spec.get("nodeSelector", {}).items()
    ):
        return False
    affinity = (
        spec.get("affinity", {})
        .get("nodeAffinity", {})
        .get("requiredDuringSchedulingIgnoredDuringExecution")
    )
    if affinity is None:
        return True
    for term in affinity["nodeSelectorTerms"]:
        conditions = (
            term.get("matchExpressions", []),
            term.get("matchFields", []),
        )
        name = {"metadata.name": name_of(node)[1]}
        by_labels = all(
            holds(requirement, labels_of(node)) for requirement in conditions[0]
        )
        if (
            any(conditions)
            and by_labels
            and all(holds(requirement, name) for requirement in conditions[1])
        ):
            return True
    return False


def is_tolerated(pod: Json, taints: Sequence[Json]) -> bool:
    for taint in taints:
        if taint["effect"] == "PreferNoSchedule":
            continue
        tolerations = [
            toleration
            for toleration in pod["spec"].get("tolerations", [])
            if toleration.get("key", taint["key"]) == taint["key"]
            and toleration.get("effect", taint["effect"]) == taint["effect"]
            and (
                toleration.get("operator") == "Exists"
                or toleration.get("value", "") == taint.get("value", "")
            )
        ]
        if not tolerations:
            return False
    return True


def is_allowed(pod: Json, node: Json, _: There) -> bool:
    """Whether a pod may be on a node at all."""
    cordoned = (
        [{"key": HIDDEN, "effect": "NoSchedule"}]
        if node.get("spec", {}).get("unschedulable")
        else []
    )
    return is_selected(pod, node) and is_tolerated(
        pod, [*taints_of(node), *cordoned]
    )


def has_room(pod: Json, node: Json, there: There) -> bool:
    """Whether a node has what a pod requests beside the pods on it."""
    allocatable = node.get("status", {}).get("allocatable", {})
    if not allocatable or pod["spec"].get("schedulerName") == LAX:
        return True
    taken: Counter[str] = Counter()
    for other, home in there:
        if name_of(home) == name_of(node):
            taken.update(requests(other))
    return all(
        amount <= 0
        or taken[name] + amount <= number(allocatable.get(name, "0"))
        for name, amount in requests(pod).items()
    )


def requests(pod: Json) -> dict[str, Fraction]:
    """What a pod takes of its node: the most at any time while its containers start and run."""
    spec = pod["spec"]
    running: Counter[str] = Counter()
    moments: list[Counter[str]] = []
    for container in spec.get("initContainers", []):
        own = asked(container)
        moments.append(running + own)
        if container.get("restartPolicy") == "Always":
            running = running + own
    for container in spec.get("containers", []):
        running = running + asked(container)
    moments.append(running)
    amounts = {
        name: max(moment[name] for moment in moments)
        for moment in moments
        for name in moment
    }
    amounts |= asked(spec)
    overhead = {
        name: number(amount)
        for name, amount in spec.get("overhead", {}).items()
    }
    total = {
        name: Fraction(amounts.get(name, 0) + overhead.get(name, 0))
        for name in {*amounts, *overhead}
    }
    return {**total, "pods": Fraction(1)}


def asked(container: Json) -> Counter[str]:
    resources = container.get("resources", {})
    amounts = {**resources.get("limits", {}), **resources.get("requests", {})}
    requested: Counter[Any] = Counter(
        {name: number(amount) for name, amount in amounts.items()}
    )
    return requested


def number(text: str) -> Fraction:
    for suffix, unit in UNITS.items():
        if text.endswith(suffix):
            return Fraction(text.removesuffix(suffix)) * unit
    return Fraction(text)


def has_ports(pod: Json, node: Json, there: There) -> bool:
    """Whether no other pod on a node has a port that a pod wants."""
    taken = [
        port
        for other, home in there
        if name_of(home) == name_of(node)
        for port in ports(other)
    ]
    return not any(
        pod_port[1:] == other[1:]
        and (pod_port[0] == other[0] or "0.0.0.0" in (pod_port[0], other[0]))
        for pod_port in ports(pod)
        for other in taken
    )


def ports(pod: Json) -> list[tuple[str, str, int]]:
    return [
        (
            port.get("hostIP", "0.0.0.0"),
            port.get("protocol", "TCP"),
            port["hostPort"],
        )
        for container in pod["spec"].get("containers", [])
        for port in container.get("ports", [])
    ]
