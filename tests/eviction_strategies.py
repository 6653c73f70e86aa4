"""Hypothesis strategies of small houses: hosts with guests, some of whom wait, in plain words and in wire form.

What binds guests is what binds pods: devices with alternatives, shares of devices and admin access beside these, CPU, a
port, a taint, affinity, anti-affinity, topology spread, gangs with fewer needed than there are, groups in one domain,
and groups of groups. Those who are in keep to the rules as things are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import NAMESPACE_DNS, uuid5

from hypothesis import strategies as st

from dralloc.objects.cluster import Cluster
from inventory_strategies import rarely
from settled import held
from wire import (
    Json,
    claim,
    cluster,
    device_class,
    first_available,
    gpus,
    node,
    pod,
    request,
    resource_slice,
    sub,
)

__all__ = [
    "ANNOTATION",
    "Ask",
    "Guest",
    "Host",
    "House",
    "Team",
    "Term",
    "has_room",
    "houses",
    "shared_houses",
]


ANNOTATION = "example.com/cost"
MEMORY = 4
"""So much of it has each device that is shared."""

HOST, ZONE = "kubernetes.io/hostname", "zone"
APPS = ("x", "y")

Ask = tuple[int, int]
"""How many devices, and from which index on."""

Term = tuple[str, str]
"""Guests of which app, and the topology key."""


@dataclass(frozen=True)
class Host:
    """A node; without ``cpu`` it does not say what it has."""

    name: str
    labels: Mapping[str, str]
    cpu: int | None
    devices: int
    is_tainted: bool


@dataclass(frozen=True)
class Team:
    """A PodGroup: ``needed`` of its guests, or each by itself (None); those of a ``tree`` are in a group of groups."""

    name: str
    needed: int | None
    priority: int | None
    goes_as_whole: bool
    topology: str
    tree: str


@dataclass(frozen=True)
class Guest:
    """A pod. Who is in has a ``home`` and ``holds`` devices there; all others wait.

    With ``memory`` each device is shared, and that much of it is held or asked for; ``is_admin`` asks to take nothing.
    """

    name: str
    app: str
    priority: int
    cpu: int
    asks: tuple[Ask, ...]
    home: str = ""
    holds: tuple[int, ...] = ()
    memory: int = 0
    is_admin: bool = False
    tolerates: bool = False
    takes_port: bool = False
    near: tuple[Term, ...] = ()
    apart: tuple[Term, ...] = ()
    spread: tuple[str, str, int] | None = None
    team: str = ""
    cost: int = 0


@dataclass(frozen=True)
class House:
    """All of it; ``trees`` say how many of their groups they need. ``asked`` is the guest who is to come in."""

    hosts: tuple[Host, ...]
    guests: tuple[Guest, ...]
    teams: Mapping[str, Team]
    trees: Mapping[str, int]
    asked: str
    is_shared: bool = False

    def host(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    @property
    def cluster(self) -> Cluster:
        sharing: Json = {
            "allowMultipleAllocations": True,
            "capacity": {"memory": {"value": str(MEMORY)}},
        }
        slices = [
            resource_slice(
                gpus(host.devices, **(sharing if self.is_shared else {})),
                name=host.name,
                pool=host.name,
                nodeName=host.name,
            )
            for host in self.hosts
            if host.devices
        ]
        guests = [part for guest in self.guests for part in _pods(guest)]
        groups = [
            *map(_pod_group, self.teams.values()),
            *(_tree(*tree) for tree in self.trees.items()),
        ]
        return cluster(
            _PRIVILEGED,
            device_class(),
            list(map(_node, self.hosts)),
            slices,
            groups,
            guests,
        )


_PRIVILEGED: Json = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {
        "name": "default",
        "labels": {"resource.kubernetes.io/admin-access": "true"},
    },
}


def _node(host: Host) -> Json:
    plain = node(host.name)
    plain["metadata"]["labels"] = dict(host.labels)
    if host.is_tainted:
        plain["spec"] = {"taints": [{"key": "closed", "effect": "NoSchedule"}]}
    if host.cpu is not None:
        plain["status"] = {"allocatable": {"cpu": str(host.cpu), "pods": "110"}}
    return plain


def _pods(guest: Guest) -> Iterator[Json]:
    container: Json = {
        "name": "main",
        "resources": {"requests": {"cpu": str(guest.cpu)}},
    }
    if guest.takes_port:
        container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    spec: Json = {"containers": [container], "priority": guest.priority}
    if guest.tolerates:
        spec["tolerations"] = [{"operator": "Exists"}]
    if guest.home:
        spec["nodeName"] = guest.home
    if guest.team:
        spec["schedulingGroup"] = {"podGroupName": guest.team}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    rules = {"podAffinity": guest.near, "podAntiAffinity": guest.apart}
    spec["affinity"] = {
        rule: {required: [_term(*term) for term in terms]}
        for rule, terms in rules.items()
    }
    if guest.spread:
        app, key, skew = guest.spread
        constraint = {
            "maxSkew": skew,
            "whenUnsatisfiable": "DoNotSchedule",
            **_term(app, key),
        }
        spec["topologySpreadConstraints"] = [constraint]
    needs_claim = bool(guest.holds) if guest.home else bool(guest.asks)
    plain = pod(guest.name, *([guest.name] if needs_claim else []), **spec)
    plain["metadata"] |= {
        "labels": {"app": guest.app},
        "annotations": {ANNOTATION: str(guest.cost)},
    }
    yield plain
    if needs_claim:
        yield _held(guest) if guest.home else _claim(guest)


def _held(guest: Guest) -> Json:
    claim_object = held(
        guest.name,
        guest.home,
        *(f"gpu-{device_index}" for device_index in guest.holds),
    )
    if guest.memory:
        share = {
            "shareID": str(uuid5(NAMESPACE_DNS, guest.name)),
            "consumedCapacity": {"memory": str(guest.memory)},
        }
        allocation = claim_object["status"]["allocation"]["devices"]
        allocation["results"] = [
            {**device, **share} for device in allocation["results"]
        ]
    return claim_object


def _term(app: str, key: str) -> Json:
    return {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}


def _claim(guest: Guest) -> Json:
    asks = [
        (f'device.attributes["gpu.example.com"].index >= {least}', count)
        for count, least in guest.asks
    ]
    amounts: Json = (
        {"capacity": {"requests": {"memory": str(guest.memory)}}}
        if guest.memory
        else {}
    )
    if len(asks) == 1:
        [(selector, count)] = asks
        admin: Json = {"adminAccess": True} if guest.is_admin else {}
        return claim(
            guest.name,
            request("gpu", selector, count=count, **amounts, **admin),
        )
    entries = (
        sub("ab"[rank], selector, count=count, **amounts)
        for rank, (selector, count) in enumerate(asks)
    )
    return claim(guest.name, first_available("gpu", *entries))


def _pod_group(team: Team) -> Json:
    policy: Json = (
        {"basic": {}}
        if team.needed is None
        else {"gang": {"minCount": team.needed}}
    )
    spec: Json = {"schedulingPolicy": policy, "priority": team.priority}
    if team.goes_as_whole:
        spec["disruptionMode"] = {"all": {}}
    if team.topology:
        spec["schedulingConstraints"] = {"topology": [{"key": team.topology}]}
    if team.tree:
        spec["parentCompositePodGroupName"] = team.tree
    return _group("PodGroup", team.name, spec)


def _tree(name: str, needed: int) -> Json:
    return _group(
        "CompositePodGroup",
        name,
        {"schedulingPolicy": {"gang": {"minGroupCount": needed}}},
    )


def _group(kind: str, name: str, spec: Json) -> Json:
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


@dataclass(frozen=True)
class _Features:
    """What a house has at all: with everything in every house, hardly anybody would ever come in."""

    rules: tuple[str, ...]
    has_cpu: bool
    has_taints: bool
    has_ports: bool
    teams: tuple[str, ...]
    trees: Mapping[str, int]


@st.composite
def _features(draw: st.DrawFn) -> _Features:
    teams = draw(st.sampled_from([(), ("red",), ("red", "blue")]))
    return _Features(
        rules=draw(
            st.sampled_from(
                [
                    (),
                    (),
                    ("near",),
                    ("apart",),
                    ("spread",),
                    ("near", "apart", "spread"),
                ]
            )
        ),
        has_cpu=draw(st.booleans()),
        has_taints=draw(rarely()),
        has_ports=draw(rarely()),
        teams=teams,
        trees={"tree": draw(st.integers(1, 2))}
        if len(teams) > 1 and draw(st.booleans())
        else {},
    )


@st.composite
def houses(draw: st.DrawFn, *, peace: bool = True) -> House:
    """Draw up to three hosts, up to four guests who are in, and up to three who wait, often for each other.

    ``peace``: whether those who are in keep apart as they ask. Where something was different when they came, they may
    not.
    """
    features = draw(_features())
    hosts = tuple(
        draw(_hosts(host_index, features))
        for host_index in range(draw(st.integers(1, 3)))
    )
    teams = {
        name: draw(_teams(name, list(features.trees)))
        for name in features.teams
    }
    residents: list[Guest] = []
    for resident_index in range(draw(st.integers(0, 4))):
        guest = draw(
            _guests(f"in-{resident_index}", features, st.integers(0, 3))
        )
        residents.append(draw(_settled(guest, residents, hosts)))
    # Most often who waits is important.
    names = [f"new-{index}" for index in range(draw(st.integers(1, 3)))]
    waiting = [
        draw(_guests(name, features, st.sampled_from([2, 5, 5, 5])))
        for name in names
    ]
    waiting = [
        guest if guest.asks else replace(guest, asks=((1, 0),))
        for guest in waiting
    ]
    if peace:
        residents = list(_at_peace(residents, hosts))
    return House(hosts, (*residents, *waiting), teams, features.trees, "new-0")


@st.composite
def shared_houses(draw: st.DrawFn) -> House:
    """Draw two or three hosts of a shared device, and one or two who wait for shares or for admin access, and for CPU.

    Those who are in have shares, or CPU, or both: some are in the way of the device, and others of the CPU.
    """
    hosts = [
        Host(
            name=f"host-{host_index}",
            labels={HOST: f"host-{host_index}"},
            cpu=draw(st.integers(3, 4)),
            devices=1,
            is_tainted=False,
        )
        for host_index in range(draw(st.integers(2, 3)))
    ]
    residents: list[Guest] = []
    for resident_index in range(draw(st.integers(3, 5))):
        guest = draw(_sharers(f"in-{resident_index}", st.integers(0, 3), 1))
        residents.append(draw(_settled(guest, residents, hosts)))
    waiting = [
        draw(_sharers(f"new-{index}", st.just(5), 2))
        for index in range(draw(st.integers(1, 2)))
    ]
    team = Team("red", 2, None, False, "", "")
    if draw(st.booleans()):
        waiting = [replace(guest, team=team.name) for guest in waiting]
    guests = (*residents, *waiting)
    return House(
        tuple(hosts), guests, {team.name: team}, {}, "new-0", is_shared=True
    )


@st.composite
def _sharers(
    draw: st.DrawFn, name: str, priorities: st.SearchStrategy[int], least: int
) -> Guest:
    """Guests who need so much CPU and memory at least."""
    return Guest(
        name=name,
        app="x",
        priority=draw(priorities),
        cpu=draw(st.integers(least, 3)),
        asks=((1, 0),),
        memory=draw(st.integers(least, MEMORY)),
        is_admin=bool(draw(st.integers(0, 3))),
        cost=draw(st.integers(0, 3)),
    )


@st.composite
def _hosts(draw: st.DrawFn, host_index: int, features: _Features) -> Host:
    labels = {HOST: f"host-{host_index}"} if draw(st.integers(0, 5)) else {}
    if draw(st.integers(0, 5)):
        labels[ZONE] = draw(st.sampled_from(("east", "west")))
    cpu = (
        draw(st.integers(1, 4))
        if features.has_cpu and draw(st.integers(0, 3))
        else None
    )
    devices = draw(st.sampled_from([0, 1, 1, 2, 3]))
    return Host(
        f"host-{host_index}",
        labels,
        cpu,
        devices,
        features.has_taints and draw(st.booleans()),
    )


@st.composite
def _teams(draw: st.DrawFn, name: str, trees: Sequence[str]) -> Team:
    return Team(
        name=name,
        needed=draw(st.sampled_from([None, 1, 1, 2, 2, 3])),
        priority=draw(st.sampled_from([None, None, None, 1, 4])),
        goes_as_whole=draw(st.booleans()),
        topology=ZONE if draw(rarely()) else "",
        tree=draw(st.sampled_from(["", *trees])),
    )


@st.composite
def _guests(
    draw: st.DrawFn,
    name: str,
    features: _Features,
    priorities: st.SearchStrategy[int],
) -> Guest:
    asks = st.tuples(
        st.sampled_from([1, 1, 1, 2]), st.sampled_from([0, 0, 0, 1, 3])
    )
    terms = st.tuples(st.sampled_from(APPS), st.sampled_from((HOST, ZONE)))
    rule = draw(st.sampled_from(["", *features.rules]))
    some = (
        tuple(draw(st.lists(terms, min_size=1, max_size=2, unique=True)))
        if rule in ("near", "apart")
        else ()
    )
    return Guest(
        name=name,
        app=draw(st.sampled_from(APPS)),
        priority=draw(priorities),
        cpu=draw(st.integers(0, 2)) if features.has_cpu else 0,
        asks=tuple(
            draw(st.lists(asks, min_size=draw(st.integers(0, 2)), max_size=2))
        ),
        tolerates=draw(st.booleans()),
        takes_port=features.has_ports and draw(st.booleans()),
        near=some if rule == "near" else (),
        apart=some if rule == "apart" else (),
        spread=(*draw(terms), draw(st.integers(1, 2)))
        if rule == "spread"
        else None,
        team=draw(
            st.sampled_from(
                ["", *features.teams, *features.teams, *features.teams]
            )
        ),
        cost=draw(st.integers(0, 3)),
    )


def has_room(guest: Guest, device: int, holders: Sequence[Guest]) -> bool:
    """Whether a device of a host can be held beside these holders: a share of it, or as a whole by nobody else."""
    shares = [other.memory for other in holders if device in other.holds]
    return guest.memory + sum(shares) <= MEMORY if guest.memory else not shares


@st.composite
def _settled(
    draw: st.DrawFn,
    guest: Guest,
    others: Sequence[Guest],
    hosts: Sequence[Host],
) -> Guest:
    """The guest on some host, with devices, CPU and port as far as they are free there."""
    host = draw(st.sampled_from(hosts))
    there = [other for other in others if other.home == host.name]
    free = [
        device_index
        for device_index in range(host.devices)
        if has_room(guest, device_index, there)
    ]
    cpu = (
        host.cpu is None
        or sum(other.cpu for other in there) + guest.cpu <= host.cpu
    )
    return replace(
        guest,
        home=host.name,
        holds=tuple(free[: draw(st.integers(0, 2))]),
        cpu=guest.cpu if cpu else 0,
        takes_port=guest.takes_port
        and not any(other.takes_port for other in there),
    )


def _at_peace(
    residents: Sequence[Guest], hosts: Sequence[Host]
) -> Iterator[Guest]:
    """The residents, without terms of anti-affinity that do not hold among them."""
    labels = {host.name: host.labels for host in hosts}
    for guest in residents:
        others = [other for other in residents if other is not guest]

        def holds(
            term: Term, home: str = guest.home, others: Sequence[Guest] = others
        ) -> bool:
            app, key = term
            domain = labels[home].get(key)
            met = (
                other
                for other in others
                if other.app == app and labels[other.home].get(key) == domain
            )
            return domain is None or not any(met)

        yield replace(
            guest, apart=tuple(term for term in guest.apart if holds(term))
        )
