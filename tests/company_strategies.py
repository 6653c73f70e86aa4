"""Hypothesis strategies of small clusters whose pods mind each other: affinity, anti-affinity, topology spread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

import wire
from inventory_strategies import rarely
from scheduling_wire import node, pod
from wire import Json

__all__ = ["HOST", "TEMPLATE", "companies", "template"]

HOST = "kubernetes.io/hostname"
KEYS = (HOST, "zone", "rack")
APPS = ("x", "x", "y")
SPACES = {"default": {"team": "a"}, "other": {"team": "b"}}
TAINTED = [{"key": "t", "effect": "NoSchedule"}]
TOLERANT = [{"operator": "Exists"}]
TEMPLATE = "one"


@st.composite
def companies(draw: st.DrawFn, max_waiting: int = 4) -> list[Json]:
    """Draw two to four nodes with a few devices each, some of which lack labels, pods that run and pods that wait."""
    names = [f"n{number}" for number in range(draw(st.integers(2, 4)))]
    objects: list[Json] = [wire.device_class(), *(draw(_nodes(name)) for name in names)]
    for name in names:
        devices = wire.gpus(draw(st.sampled_from((1, 1, 2, 3))))
        objects.append(
            wire.resource_slice(devices, name=name, pool=name, nodeName=name)
        )
    objects += [
        _namespace(space, labels)
        for space, labels in SPACES.items()
        if not draw(rarely())
    ]
    objects += [template(space) for space in SPACES]
    # Few sorts of rules in one cluster, so that they meet.
    most = {
        sort: draw(st.sampled_from((0, 0, 1, 2)))
        for sort in ("podAffinity", "podAntiAffinity", "spread")
    }
    kinds = draw(st.lists(_kinds(most), min_size=1, max_size=3))
    for number in range(draw(st.integers(0, 3))):
        objects.append(draw(_running(f"r{number}", kinds, names)))
    for number in range(draw(st.integers(1, max_waiting))):
        objects.append(draw(_waiting(f"p{number}", kinds)))
    return objects


@st.composite
def _nodes(draw: st.DrawFn, name: str) -> Json:
    labels = {"zone": draw(st.sampled_from("ab")), "rack": draw(st.sampled_from("uv"))}
    labels = {key: value for key, value in labels.items() if draw(st.integers(0, 3))}
    found = node(name, {}, labels=labels, taints=TAINTED if draw(rarely()) else [])
    match draw(st.integers(0, 15)):
        case 14:
            del found["metadata"]["labels"][HOST]
        case 15:
            # Nothing keeps two nodes from having the same hostname.
            found["metadata"]["labels"][HOST] = "n0"
    return found


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


@st.composite
def _kinds(draw: st.DrawFn, most: Mapping[str, int]) -> Json:
    """What pods have in common: labels, namespace and rules, so many of each sort at most."""
    labels = {"app": draw(st.sampled_from(APPS))}
    if draw(st.booleans()):
        labels["version"] = draw(st.sampled_from("12"))
    affinity = {
        sort: {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        for sort in ("podAffinity", "podAntiAffinity")
        if (terms := draw(st.lists(_terms(), max_size=most[sort])))
    }
    # A pod may have one constraint for a topology.
    constraints = st.lists(
        _constraints(),
        max_size=most["spread"],
        unique_by=lambda one: one["topologyKey"],
    )
    spec: Json = {"affinity": affinity, "topologySpreadConstraints": draw(constraints)}
    if draw(rarely()):
        spec["nodeSelector"] = {"zone": draw(st.sampled_from("ab"))}
    if draw(rarely()):
        spec["tolerations"] = TOLERANT
    return {
        "labels": labels,
        "space": draw(st.sampled_from(("default", "default", "default", "other"))),
        "spec": spec,
    }


@st.composite
def _terms(draw: st.DrawFn) -> Json:
    term: Json = {
        "topologyKey": draw(st.sampled_from(KEYS)),
        "labelSelector": draw(_selectors()),
    }
    if draw(rarely()):
        del term["labelSelector"]
    elif draw(rarely()):
        keys = draw(st.sampled_from(("matchLabelKeys", "mismatchLabelKeys")))
        term[keys] = ["version"]
    if draw(rarely()):
        term["namespaces"] = [draw(st.sampled_from(list(SPACES)))]
    if draw(rarely()):
        term["namespaceSelector"] = draw(_space_selectors())
    return term


def _selectors() -> st.SearchStrategy[Json]:
    expressions = [
        {"key": "app", "operator": "In", "values": ["x", "y"]},
        {"key": "app", "operator": "NotIn", "values": ["y"]},
        {"key": "version", "operator": "DoesNotExist"},
    ]
    by_expression = ({"matchExpressions": [one]} for one in expressions)
    by_label = ({"matchLabels": {"app": app}} for app in "xxxxyy")
    return st.sampled_from([*by_label, *by_expression, {}])


def _space_selectors() -> st.SearchStrategy[Json]:
    expressions = [
        {"key": "team", "operator": "NotIn", "values": ["b"]},
        {"key": "team", "operator": "Exists"},
        {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["other"]},
    ]
    by_expression = ({"matchExpressions": [one]} for one in expressions)
    return st.sampled_from([{}, {"matchLabels": {"team": "b"}}, *by_expression])


@st.composite
def _constraints(draw: st.DrawFn) -> Json:
    constraint: Json = {
        "maxSkew": draw(st.sampled_from((1, 1, 1, 2))),
        "topologyKey": draw(st.sampled_from(KEYS)),
        "whenUnsatisfiable": "ScheduleAnyway" if draw(rarely()) else "DoNotSchedule",
        "labelSelector": draw(_selectors()),
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
    """A pod on a node, wherever its own rules, or those of others, would have it."""
    return _pod(name, draw(st.sampled_from(kinds)), on=draw(st.sampled_from(nodes)))


@st.composite
def _waiting(draw: st.DrawFn, name: str, kinds: Sequence[Json]) -> Json:
    claims = [{"name": "gpu", "resourceClaimTemplateName": TEMPLATE}]
    priority = 7 if draw(rarely()) else 0
    return _pod(
        name, draw(st.sampled_from(kinds)), resourceClaims=claims, priority=priority
    )


def _pod(name: str, kind: Json, on: str = "", **spec: Any) -> Json:
    found = pod(name, on=on, labels=kind["labels"], **kind["spec"], **spec)
    found["metadata"]["namespace"] = kind["space"]
    return found
