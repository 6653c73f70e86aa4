"""Hypothesis strategies of small clusters whose pods mind each other: affinity, anti-affinity, topology spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

import wire
from inventory_strategies import rarely
from scheduling_wire import node, pod
from wire import Json

__all__ = ["HOST", "TEMPLATE", "companies", "neighbours", "template"]

HOST = "kubernetes.io/hostname"
KEYS = (
    (HOST,),
    (HOST, "zone"),
    (HOST, "zone"),
    ("zone", "rack"),
    (HOST, "zone", "rack"),
)
SORTS = ("podAffinity", "podAntiAffinity", "spread")
SPACES = {"default": {"team": "a"}, "other": {"team": "b"}}
TAINTED = [{"key": "t", "effect": "NoSchedule"}]
TOLERANT = [{"operator": "Exists"}]
TEMPLATE = "one"
GROUP = "gang"
LOOSE, HELD = "loose", "held"
"""Claims that several pods name: one that waits, and one that a pod has already."""


@dataclass(frozen=True)
class _Theme:
    """What pods of a cluster can say at all: with everything in every cluster, no two rules would ever meet.

    Parameters
    ----------
    most
        So many rules of each sort a pod may have.
    keys
        Topology keys that rules are about.
    labelled
        One in so many nodes lacks a label of the topology.
    is_wide
        Whether pods are in several namespaces, of several versions, and choose among several selectors.
    """

    most: Mapping[str, int]
    keys: tuple[str, ...]
    labelled: int
    is_wide: bool
    has_gangs: bool
    has_shared_claims: bool


@st.composite
def _themes(draw: st.DrawFn) -> _Theme:
    sorts = draw(
        st.sampled_from(
            [
                *((sort,) for sort in SORTS),
                SORTS[:2],
                SORTS[1:],
                (SORTS[0], SORTS[2]),
                SORTS,
            ]
        )
    )
    return _Theme(
        most={
            sort: draw(st.integers(1, 2)) if sort in sorts else 0
            for sort in SORTS
        },
        keys=draw(st.sampled_from(KEYS)),
        labelled=draw(st.sampled_from((2, 4))),
        is_wide=draw(st.booleans()),
        has_gangs=draw(rarely()),
        has_shared_claims=draw(rarely()),
    )


@st.composite
def companies(draw: st.DrawFn, max_waiting: int = 4) -> list[Json]:
    """Draw two to four nodes with a few devices each, some of which lack labels, pods that run and pods that wait."""
    # Where more pods run than wait, what those who run take of a node cannot hide behind what those who wait would.
    running = draw(st.sampled_from((0, 0, 1, 1, 2, 2, 3, 4)))
    waiting = min(max_waiting, draw(st.sampled_from((1, 1, 2, 2, 2, 3, 4))))
    return draw(_objects(draw(_themes()), running, waiting))


@st.composite
def neighbours(draw: st.DrawFn) -> list[Json]:
    """Draw pods some of which are alone on their node among those whom they mean, and more pods that run."""
    theme = _Theme(
        most={
            **dict.fromkeys(SORTS, 0),
            "podAntiAffinity": draw(st.integers(1, 2)),
        },
        keys=(HOST,),
        labelled=4,
        is_wide=draw(rarely()),
        has_gangs=False,
        has_shared_claims=False,
    )
    running = draw(st.sampled_from((2, 3, 4, 5)))
    return draw(_objects(theme, running, draw(st.sampled_from((1, 1, 2)))))


@st.composite
def _objects(
    draw: st.DrawFn, theme: _Theme, number_running: int, number_waiting: int
) -> list[Json]:
    names = [
        f"n{index}" for index in range(draw(st.sampled_from((2, 2, 3, 3, 4))))
    ]
    objects: list[Json] = [
        wire.device_class(),
        *(draw(_nodes(name, theme)) for name in names),
    ]
    for name in names:
        devices = wire.gpus(draw(st.sampled_from((1, 1, 1, 2, 3))))
        objects.append(
            wire.resource_slice(devices, name=name, pool=name, nodeName=name)
        )
    objects += [
        _namespace(space, labels)
        for space, labels in SPACES.items()
        if not draw(rarely())
    ]
    objects += [template(space) for space in SPACES]
    # Few kinds, some of which are without rules, so that those who have rules meet others whom they mean.
    number_kinds = draw(st.sampled_from((2, 2, 3, 1)))
    kinds = [draw(_kinds(theme, turn)) for turn in range(number_kinds)]
    if theme.has_gangs:
        objects += [_gang(space, draw(st.integers(1, 3))) for space in SPACES]
    shared = draw(_shared_claims(names)) if theme.has_shared_claims else []
    claims = [claim["metadata"]["name"] for claim in shared]
    for index in range(number_running):
        objects.append(draw(_running(f"r{index}", kinds, names)))
    for index in range(number_waiting):
        objects.append(draw(_waiting(f"p{index}", kinds, theme, claims)))
    used = {
        entry.get("resourceClaimName")
        for manifest in objects
        if manifest["kind"] == "Pod"
        for entry in manifest["spec"].get("resourceClaims", ())
    }
    # What nobody uses would be placed by itself.
    return [
        *objects,
        *(claim for claim in shared if claim["metadata"]["name"] in used),
    ]


@st.composite
def _nodes(draw: st.DrawFn, name: str, theme: _Theme) -> Json:
    labels = {
        "zone": draw(st.sampled_from("ab")),
        "rack": draw(st.sampled_from("uv")),
    }
    labels = {
        key: value
        for key, value in labels.items()
        if draw(st.integers(1, theme.labelled)) > 1
    }
    node_object = node(
        name, {}, labels=labels, taints=TAINTED if draw(rarely()) else []
    )
    match draw(st.integers(0, 15)):
        case 14:
            del node_object["metadata"]["labels"][HOST]
        case 15:
            # Nothing keeps two nodes from having the same hostname.
            node_object["metadata"]["labels"][HOST] = "n0"
    return node_object


def _namespace(name: str, labels: Json) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": labels},
    }


def template(space: str) -> Json:
    """What the claims of pods are made of: one GPU each."""
    return {
        "apiVersion": wire.VERSION,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": TEMPLATE, "namespace": space},
        "spec": {"spec": {"devices": {"requests": [wire.request()]}}},
    }


def _gang(space: str, least: int) -> Json:
    """A PodGroup, so many pods of which are placed, or none."""
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
    metadata = {"name": GROUP, "namespace": space}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
    }


@st.composite
def _shared_claims(draw: st.DrawFn, nodes: Sequence[str]) -> list[Json]:
    """Claims of the default namespace for one device each that several pods may use; one may hold a device already."""
    held = []
    if draw(st.booleans()):
        home = draw(st.sampled_from(nodes))
        allocated = wire.allocated(HELD, {"device": "gpu-0", "pool": home})
        fields = [{"key": "metadata.name", "operator": "In", "values": [home]}]
        allocated["status"]["allocation"]["nodeSelector"] = {
            "nodeSelectorTerms": [{"matchFields": fields}]
        }
        held.append(allocated)
    return [wire.claim(LOOSE, wire.request()), *held]


@st.composite
def _kinds(draw: st.DrawFn, theme: _Theme, turn: int) -> Json:
    """What pods have in common: labels, namespace and rules, so many of each sort at most.

    Parameters
    ----------
    turn
        Kinds take turns with the key of their first term, so that several keys meet.
    """
    labels = {"app": draw(st.sampled_from("xxxxxy"))}
    if theme.is_wide and draw(st.booleans()):
        labels["version"] = draw(st.sampled_from("12"))
    most = {
        sort: limit if draw(st.integers(0, 3)) else 0
        for sort, limit in theme.most.items()
    }
    affinity = {
        sort: {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        for sort in ("podAffinity", "podAntiAffinity")
        if (
            terms := [
                draw(_terms(theme, turn if term_index == 0 else None))
                for term_index in range(
                    draw(st.integers(min(1, most[sort]), most[sort]))
                )
            ]
        )
    }
    # A pod may have one constraint for a topology.
    least = min(1, most["spread"])
    constraints = st.lists(
        _constraints(theme),
        min_size=least,
        max_size=most["spread"],
        unique_by=lambda constraint: constraint["topologyKey"],
    )
    spec: Json = {
        "affinity": affinity,
        "topologySpreadConstraints": draw(constraints),
    }
    if draw(rarely()):
        spec["nodeSelector"] = {"zone": draw(st.sampled_from("ab"))}
    if draw(rarely()):
        spec["tolerations"] = TOLERANT
    space = (
        draw(st.sampled_from(("default", "default", "default", "other")))
        if theme.is_wide
        else "default"
    )
    return {"labels": labels, "space": space, "spec": spec}


@st.composite
def _terms(draw: st.DrawFn, theme: _Theme, turn: int | None) -> Json:
    keys = theme.keys if turn is None else (theme.keys[turn % len(theme.keys)],)
    term: Json = {
        "topologyKey": draw(st.sampled_from(keys)),
        "labelSelector": draw(_selectors(theme)),
    }
    if not theme.is_wide:
        return term
    if draw(rarely()):
        del term["labelSelector"]
    elif draw(rarely()):
        field = draw(st.sampled_from(("matchLabelKeys", "mismatchLabelKeys")))
        term[field] = ["version"]
    if draw(rarely()):
        term["namespaces"] = [draw(st.sampled_from(list(SPACES)))]
    if draw(rarely()):
        term["namespaceSelector"] = draw(_space_selectors())
    return term


def _selectors(theme: _Theme) -> st.SearchStrategy[Json]:
    expressions = [
        {"key": "app", "operator": "In", "values": ["x", "y"]},
        {"key": "app", "operator": "NotIn", "values": ["y"]},
        {"key": "version", "operator": "DoesNotExist"},
    ]
    by_expression = (
        {"matchExpressions": [expression]} for expression in expressions
    )
    by_label = [{"matchLabels": {"app": app}} for app in "xxxxxy"]
    return st.sampled_from(
        [*by_label, *by_expression, {}] if theme.is_wide else by_label
    )


def _space_selectors() -> st.SearchStrategy[Json]:
    expressions = [
        {"key": "team", "operator": "NotIn", "values": ["b"]},
        {"key": "team", "operator": "Exists"},
        {
            "key": "kubernetes.io/metadata.name",
            "operator": "In",
            "values": ["other"],
        },
    ]
    by_expression = (
        {"matchExpressions": [expression]} for expression in expressions
    )
    return st.sampled_from([{}, {"matchLabels": {"team": "b"}}, *by_expression])


@st.composite
def _constraints(draw: st.DrawFn, theme: _Theme) -> Json:
    constraint: Json = {
        "maxSkew": draw(st.sampled_from((1, 1, 1, 2))),
        "topologyKey": draw(st.sampled_from(theme.keys)),
        "whenUnsatisfiable": "ScheduleAnyway"
        if draw(rarely())
        else "DoNotSchedule",
        "labelSelector": draw(_selectors(theme)),
    }
    if draw(rarely()):
        constraint["matchLabelKeys"] = ["version"]
    if draw(rarely()) and constraint["whenUnsatisfiable"] == "DoNotSchedule":
        constraint["minDomains"] = draw(st.integers(2, 3))
    for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if draw(rarely()):
            constraint[policy] = draw(st.sampled_from(("Honor", "Ignore")))
    return constraint


@st.composite
def _running(
    draw: st.DrawFn, name: str, kinds: Sequence[Json], nodes: Sequence[str]
) -> Json:
    """A pod on a node, wherever its own rules, or those of others, would have it; often without rules, or unmeant."""
    kind = draw(st.sampled_from(kinds))
    bare = {
        "labels": {"app": draw(st.sampled_from("xxy"))},
        "space": kind["space"],
        "spec": {},
    }
    return _pod(
        name,
        draw(st.sampled_from((kind, bare))),
        on=draw(st.sampled_from((nodes[0], nodes[-1], *nodes))),
    )


@st.composite
def _waiting(
    draw: st.DrawFn,
    name: str,
    kinds: Sequence[Json],
    theme: _Theme,
    shared: Sequence[str],
) -> Json:
    kind = draw(st.sampled_from(kinds))
    own: Json = {"name": "gpu", "resourceClaimTemplateName": TEMPLATE}
    claims = [own]
    if shared and kind["space"] == "default" and draw(st.booleans()):
        with_others = {
            "name": "with-others",
            "resourceClaimName": draw(st.sampled_from(shared)),
        }
        # Somebody with nothing but a claim that is allocated waits for no device.
        claims = (
            [own, with_others]
            if with_others["resourceClaimName"] == HELD or draw(rarely())
            else [with_others]
        )
    spec: Json = {
        "resourceClaims": claims,
        "priority": 7 if draw(rarely()) else 0,
    }
    if theme.has_gangs and draw(st.booleans()):
        spec["schedulingGroup"] = {"podGroupName": GROUP}
    return _pod(name, kind, **spec)


def _pod(name: str, kind: Json, on: str = "", **spec: Any) -> Json:
    pod_object = pod(name, on=on, labels=kind["labels"], **kind["spec"], **spec)
    pod_object["metadata"]["namespace"] = kind["space"]
    return pod_object
