"""The referee for rules between pods, read straight from objects: what the API says, asked for one pod after the other.

Nothing of the package is used: objects are plain data in wire form. Every claim is for one device, one as good as the
other; who uses a claim that somebody else has comes to its node. From any state each pod may come to each node that all
filters let it have; of the states that are reached so, whoever came first, the answers are those without half a gang.

Sources: ``interpodaffinity/filtering.go`` and ``podtopologyspread/filtering.go`` of ``kubernetes/pkg/scheduler``, and
the API's description of ``PodAffinityTerm`` and ``TopologySpreadConstraint``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from wire import Json

__all__ = ["Answer", "Company"]

Labels = Mapping[str, str]
Answer = frozenset[tuple[str, str]]
"""Pods, as ``namespace/name``, each with the name of its node."""

NAME_LABEL = "kubernetes.io/metadata.name"
PREVENTING = ("NoSchedule", "NoExecute")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Company:
    """The pods of some objects.

    Parameters
    ----------
    objects
        Nodes, namespaces, slices with devices for one node each, and pods.
    as_upstream
        Whether a term of a pod that comes takes every namespace for one that its ``namespaceSelector`` selects if that
        selects a namespace without labels. So kube-scheduler does, which has no labels at hand there; the API does not
        say so.
    """

    def __init__(
        self, objects: Iterable[Json], *, as_upstream: bool = False
    ) -> None:
        by_kind: dict[str, list[Json]] = {}
        for document in objects:
            by_kind.setdefault(document["kind"], []).append(document)
        self.as_upstream = as_upstream
        self.nodes: dict[str, Json] = {
            node["metadata"]["name"]: node for node in by_kind["Node"]
        }
        self.pods = {_key(pod): pod for pod in by_kind["Pod"]}
        self.running = [
            (pod, pod["spec"]["nodeName"])
            for pod in by_kind["Pod"]
            if "nodeName" in pod["spec"]
        ]
        self.waiting = [
            key
            for key, pod in self.pods.items()
            if "nodeName" not in pod["spec"]
        ]
        self.claims = {
            _key(claim): claim for claim in by_kind.get("ResourceClaim", ())
        }
        self.groups = {
            _key(group): group for group in by_kind.get("PodGroup", ())
        }
        self.spaces = {
            namespace["metadata"]["name"]: namespace["metadata"]["labels"]
            for namespace in by_kind.get("Namespace", ())
        }
        self.devices: Counter[str] = Counter()
        for published in by_kind["ResourceSlice"]:
            self.devices[published["spec"]["nodeName"]] += len(
                published["spec"]["devices"]
            )
        for claim in self.claims.values():
            self.devices.subtract(_homes(claim))

    @cached_property
    def answers(self) -> frozenset[Answer]:
        """Everything that can come about."""
        nobody: Answer = frozenset()
        reached = {nobody}
        fresh = [nobody]
        while fresh:
            state = fresh.pop()
            for later in self._after(state):
                if later not in reached:
                    reached.add(later)
                    fresh.append(later)
        return frozenset(filter(self._are_gangs_whole, reached))

    def worth(self, answer: Answer) -> list[int]:
        """How many pods of each priority an answer places, the highest first."""
        placed = Counter(_priority(self.pods[key]) for key, _ in answer)
        return [placed[priority] for priority in self._priorities]

    @cached_property
    def best(self) -> list[int]:
        """The worth of the best answer."""
        return max(map(self.worth, self.answers))

    @cached_property
    def _priorities(self) -> list[int]:
        return sorted(
            {_priority(self.pods[key]) for key in self.waiting}, reverse=True
        )

    def _are_gangs_whole(self, state: Answer) -> bool:
        """Whether of every gang enough pods are there, or none has come."""
        coming = Counter(self._group_of(self.pods[key]) for key, _ in state)
        running = Counter(self._group_of(pod) for pod, _ in self.running)
        return all(
            not coming[key]
            or coming[key] + running[key]
            >= group["spec"]["schedulingPolicy"]["gang"]["minCount"]
            for key, group in self.groups.items()
        )

    @staticmethod
    def _group_of(pod: Json) -> str:
        name = pod["spec"].get("schedulingGroup", {}).get("podGroupName", "")
        return f"{_space(pod)}/{name}"

    def _after(self, state: Answer) -> Iterator[Answer]:
        there = [
            *self.running,
            *((self.pods[key], node) for key, node in state),
        ]
        held = {
            key: home
            for key, claim in self.claims.items()
            for home in _homes(claim)
        }
        given = {
            claim: node
            for key, node in state
            for claim in self._claims_of(key)
            if claim not in held
        }
        taken = Counter(given.values())
        come = {key for key, _ in state}
        for key in self.waiting:
            if key in come:
                continue
            had = {
                claim: home
                for claim, home in {**held, **given}.items()
                if claim in self._claims_of(key)
            }
            needed = len(self._claims_of(key)) - len(had)
            for node in self.nodes:
                is_free = taken[node] + needed <= self.devices[node] and set(
                    had.values()
                ) <= {node}
                if is_free and self._lets(self.pods[key], node, there):
                    yield state | {(key, node)}

    def _claims_of(self, key: str) -> list[str]:
        """The claims of a pod: those that it names, and its own, which are called after it."""
        pod = self.pods[key]
        entries = pod["spec"].get("resourceClaims", ())
        named = [
            f"{_space(pod)}/{entry['resourceClaimName']}"
            for entry in entries
            if "resourceClaimName" in entry
        ]
        own = [
            f"{key}:{entry['name']}"
            for entry in entries
            if "resourceClaimTemplateName" in entry
        ]
        return named + own

    def _lets(
        self, pod: Json, node: str, there: Sequence[tuple[Json, str]]
    ) -> bool:
        """Whether every filter lets a pod have a node, with these pods on nodes."""
        return (
            _wants(pod, self.nodes[node])
            and _tolerates(pod, self.nodes[node])
            and self._is_near(pod, node, there)
            and self._is_apart(pod, node, there)
            and self._is_even(pod, node, there)
        )

    def _is_near(
        self, pod: Json, node: str, there: Sequence[tuple[Json, str]]
    ) -> bool:
        terms = _terms(pod, "podAffinity")
        meant = [
            home
            for other, home in there
            if terms and self._all_mean(terms, pod, other)
        ]
        pairs = {
            (key, self._label(home, key))
            for home in meant
            for key in map(_topology, terms)
        }
        pairs = {(key, value) for key, value in pairs if value is not None}
        here = {(key, self._label(node, key)) for key in map(_topology, terms)}
        if any(value is None for _, value in here):
            return False
        return here <= pairs or (not pairs and self._all_mean(terms, pod, pod))

    def _all_mean(
        self, terms: Sequence[Json], owner: Json, other: Json
    ) -> bool:
        return all(
            self._means(term, owner, other, comes=True) for term in terms
        )

    def _is_apart(
        self, pod: Json, node: str, there: Sequence[tuple[Json, str]]
    ) -> bool:
        for other, home in there:
            for term in _terms(pod, "podAntiAffinity"):
                if self._are_together(term, node, home) and self._means(
                    term, pod, other, comes=True
                ):
                    return False
            for term in _terms(other, "podAntiAffinity"):
                if self._are_together(term, node, home) and self._means(
                    term, other, pod, comes=False
                ):
                    return False
        return True

    def _are_together(self, term: Json, node: str, home: str) -> bool:
        value = self._label(node, term["topologyKey"])
        return value is not None and value == self._label(
            home, term["topologyKey"]
        )

    def _means(
        self, term: Json, owner: Json, other: Json, *, comes: bool
    ) -> bool:
        """Whether a term of a pod means another; ``comes``: whether its owner is the one that comes."""
        space, selector = _space(other), term.get("namespaceSelector")
        if not term.get("namespaces") and selector is None:
            selected = space == _space(owner)
        else:
            labels = {NAME_LABEL: space, **self.spaces.get(space, {})}
            selected = space in term.get("namespaces", ()) or _selects(
                selector, labels
            )
            selected = selected or (
                self.as_upstream and comes and _selects(selector, {})
            )
        mine = _labels(owner)
        same = all(
            _labels(other).get(key) == mine[key]
            for key in term.get("matchLabelKeys", ())
            if key in mine
        )
        different = all(
            _labels(other).get(key) != mine[key]
            for key in term.get("mismatchLabelKeys", ())
            if key in mine
        )
        return (
            selected
            and same
            and different
            and _selects(term.get("labelSelector"), _labels(other))
        )

    def _is_even(
        self, pod: Json, node: str, there: Sequence[tuple[Json, str]]
    ) -> bool:
        spread = pod["spec"].get("topologySpreadConstraints", ())
        constraints = [
            constraint
            for constraint in spread
            if constraint["whenUnsatisfiable"] == "DoNotSchedule"
        ]
        keys = list(map(_topology, constraints))
        labelled = [
            name
            for name in self.nodes
            if all(self._label(name, key) is not None for key in keys)
        ]
        if any(self._label(node, key) is None for key in keys):
            return False
        return all(
            self._keeps_skew(constraint, pod, node, labelled, there)
            for constraint in constraints
        )

    def _keeps_skew(
        self,
        constraint: Json,
        pod: Json,
        node: str,
        labelled: Sequence[str],
        there: Sequence[tuple[Json, str]],
    ) -> bool:
        key = constraint["topologyKey"]
        eligible = [
            name
            for name in labelled
            if self._is_eligible(constraint, pod, name)
        ]
        counts: Counter[str | None] = Counter(
            {self._label(name, key): 0 for name in eligible}
        )
        for other, home in there:
            if (
                home in eligible
                and _space(other) == _space(pod)
                and _counts(constraint, pod, other)
            ):
                counts[self._label(home, key)] += 1
        fewest = min(counts.values(), default=0)
        if len(counts) < constraint.get("minDomains", 1):
            fewest = 0
        itself = _selects_of_spread(constraint, pod, pod)
        most: int = constraint["maxSkew"]
        return counts[self._label(node, key)] + itself - fewest <= most

    def _is_eligible(self, constraint: Json, pod: Json, node: str) -> bool:
        if constraint.get(
            "nodeAffinityPolicy", "Honor"
        ) == "Honor" and not _wants(pod, self.nodes[node]):
            return False
        return constraint.get(
            "nodeTaintsPolicy", "Ignore"
        ) == "Ignore" or _tolerates(pod, self.nodes[node])

    def _label(self, node: str, key: str) -> str | None:
        value: str | None = self.nodes[node]["metadata"]["labels"].get(key)
        return value


def _key(document: Json) -> str:
    return f"{_space(document)}/{document['metadata']['name']}"


def _space(document: Json) -> str:
    name: str = document["metadata"]["namespace"]
    return name


def _homes(claim: Json) -> list[str]:
    """The node of each device that a claim holds."""
    allocation = claim.get("status", {}).get("allocation", {})
    return [
        result["pool"]
        for result in allocation.get("devices", {}).get("results", ())
    ]


def _labels(pod: Json) -> Labels:
    labels: Labels = pod["metadata"]["labels"]
    return labels


def _priority(pod: Json) -> int:
    priority: int = pod["spec"].get("priority", 0)
    return priority


def _topology(rule: Json) -> str:
    key: str = rule["topologyKey"]
    return key


def _terms(pod: Json, sort: str) -> list[Json]:
    terms: list[Json] = (
        pod["spec"].get("affinity", {}).get(sort, {}).get(REQUIRED, [])
    )
    return terms


def _wants(pod: Json, node: Json) -> bool:
    labels = node["metadata"]["labels"]
    return all(
        labels.get(key) == value
        for key, value in pod["spec"].get("nodeSelector", {}).items()
    )


def _tolerates(pod: Json, node: Json) -> bool:
    """Whether a pod, which tolerates everything or nothing, may go to a node with its taints."""
    taints = [
        taint
        for taint in node["spec"].get("taints", ())
        if taint["effect"] in PREVENTING
    ]
    return not taints or bool(pod["spec"].get("tolerations"))


def _counts(constraint: Json, pod: Json, other: Json) -> bool:
    """Whether a constraint of a pod counts another; with nothing to select by it counts nobody."""
    selector = constraint.get("labelSelector")
    keys = [
        key
        for key in constraint.get("matchLabelKeys", ())
        if key in _labels(pod)
    ]
    return (bool(selector) or bool(keys)) and _selects_of_spread(
        constraint, pod, other
    )


def _selects_of_spread(constraint: Json, pod: Json, other: Json) -> bool:
    mine = _labels(pod)
    same = all(
        _labels(other).get(key) == mine[key]
        for key in constraint.get("matchLabelKeys", ())
        if key in mine
    )
    return same and _selects(constraint.get("labelSelector"), _labels(other))


def _selects(selector: Json | None, labels: Labels) -> bool:
    """Whether a label selector selects something with these labels; without one nothing is selected."""
    if selector is None:
        return False
    if any(
        labels.get(key) != value
        for key, value in selector.get("matchLabels", {}).items()
    ):
        return False
    return all(
        _holds(expression, labels)
        for expression in selector.get("matchExpressions", ())
    )


def _holds(expression: Json, labels: Labels) -> bool:
    key, values = expression["key"], expression.get("values", ())
    match expression["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
