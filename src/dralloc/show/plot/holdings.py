"""The contents of a device map: profiles of requests, physical devices, their holders, and the places they hold."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Final, NamedTuple

from dralloc.objects.api import DeviceSubRequest, ExactDeviceRequest
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from dralloc.problem import (
    Charge,
    CounterIndex,
    DeviceIndex,
    NodeIndex,
    Problem,
    numbered,
)
from dralloc.show.plan import Plan

__all__ = [
    "UNKNOWN",
    "Block",
    "Box",
    "HeldDevice",
    "MapRow",
    "PhysicalDevice",
    "RequestProfile",
    "RequestProfiles",
    "blocks",
    "clean",
    "held_devices",
    "rows",
    "shortened",
]

# ----------------------------------------------------------------------------
# What a request asks for, in short: its class with what its selectors and amounts
# narrow it to.

_LONGEST: Final = 28
_ELLIPSIS: Final = "\N{HORIZONTAL ELLIPSIS}"
_COMPARED: Final = re.compile(
    r"""\.(\w+)\s*(==|!=|>=|<=|>|<)\s*(?:quantity\()?(?:"([^"]*)"|'([^']*)'|(\d+|true|false))"""
)


@dataclass(frozen=True, slots=True)
class RequestProfile:
    """A class of requests: all that ask for the same class with the same selectors and amounts.

    Parameters
    ----------
    device_class
        Name of the class.
    selectors, amounts
        Expressions of the request's selectors, and requested capacity by name.
    """

    device_class: str
    selectors: tuple[str, ...] = ()
    amounts: tuple[tuple[str, str], ...] = ()

    @property
    def profile(self) -> str:
        """The values that narrow its class down, e.g. ``1g.10gb``; empty if it takes any device of the class."""
        return ", ".join(
            (
                *map(_gist, self.selectors),
                *(f"{amount} {name}" for name, amount in self.amounts),
            )
        )

    @property
    def short(self) -> str:
        """A label for narrow places: the profile, or the first part of the class's name."""
        return shortened(
            clean(self.profile or self.device_class.partition(".")[0] or "any"),
            _LONGEST,
        )

    @property
    def label(self) -> str:
        """A label that names class and profile."""
        return shortened(
            clean(" ".join(filter(None, (self.device_class, self.profile))))
            or "any",
            2 * _LONGEST,
        )


UNKNOWN: Final = RequestProfile("unknown request")
"""The request profile of a request that its claim does not have (any more)."""


class RequestProfiles:
    """The profiles of all requests of a cluster, in the order in which its claims show them first."""

    def __init__(self, cluster: Cluster) -> None:
        self._of: Mapping[tuple[ClaimKey, str], RequestProfile] = {
            (claim.key, name): _profile_of(alternative)
            for claim in cluster.claims
            for name, alternative in claim.spec.devices.alternatives
        }
        self.all: tuple[RequestProfile, ...] = tuple(
            dict.fromkeys(self._of.values())
        )

    def of(self, claim: ClaimKey, request: str) -> RequestProfile:
        """Return the request profile of a request, or of the alternative ``request/sub``, of a claim."""
        return self._of.get((claim, request), UNKNOWN)


def _profile_of(
    request: ExactDeviceRequest | DeviceSubRequest,
) -> RequestProfile:
    amounts = request.capacity.requests if request.capacity else {}
    return RequestProfile(
        request.device_class_name,
        tuple(
            selector.cel.expression
            for selector in request.selectors
            if selector.cel
        ),
        tuple(
            (name.rpartition("/")[2], str(amount))
            for name, amount in sorted(amounts.items())
        ),
    )


def _gist(expression: str) -> str:
    """Return the values that an expression compares attributes with; the expression itself if there are none."""
    comparisons = [
        (name, sign, first or second or plain)
        for name, sign, first, second, plain in _COMPARED.findall(expression)
    ]
    narrowing = [
        comparison for comparison in comparisons if comparison[0] != "driver"
    ] or comparisons
    if not narrowing:
        return " ".join(expression.split())
    return ", ".join(_compared(*comparison) for comparison in narrowing)


def _compared(name: str, sign: str, value: str) -> str:
    """Return a comparison in short; just the value if it speaks for itself, as names of profiles do."""
    if sign == "==" and not value.isalnum():
        return value
    return f"{name}{'=' if sign == '==' else sign}{value}"


def clean(text: str) -> str:
    """Return the text with everything that fonts or SVG may lack replaced by a question mark; ellipses stay."""
    drawn = (
        char.isprintable() and (ord(char) < 0x250 or char == _ELLIPSIS)
        for char in text
    )
    return "".join(
        char if is_drawn else "?"
        for char, is_drawn in zip(text, drawn, strict=True)
    )


def shortened(text: str, longest: int) -> str:
    """Return the text, with an ellipsis in place of its middle if it is too long: names often differ at their ends."""
    if len(text) <= longest:
        return text
    tail = max(1, (longest - 1) // 3)
    return f"{text[: longest - 1 - tail]}{_ELLIPSIS}{text[-tail:]}"


# ----------------------------------------------------------------------------
# What a device map has boxes for: counter sets that partitions are cut from, and
# devices that stand alone.

_NUMBERED: Final = re.compile(r"(.*?)(\d+)")
_SET_ENDING: Final = re.compile(r"[-_.]?counters?([-_.]?set)?$")


@dataclass(frozen=True, slots=True)
class PhysicalDevice:
    """A box of the map.

    Parameters
    ----------
    title
        Its name: the counter set's without its ending, or the device's.
    driver
        Who publishes it.
    devices
        Indices of the devices in it: the partitions of a counter set, or one device.
    counters
        Indices of the counters of the set; none if the device stands alone.
    tracks
        Indices of those counters that give a partition its place, in order, e.g. ``memory-slice-0`` to
        ``memory-slice-7``: the longest row of counters whose names differ in a number at the end. Empty if there is
        none.
    shareable
        Whether it is one device that allows multiple allocations.
    """

    title: str
    driver: str
    devices: tuple[DeviceIndex, ...]
    counters: tuple[CounterIndex, ...] = ()
    tracks: tuple[CounterIndex, ...] = ()
    shareable: bool = False


@dataclass(frozen=True, slots=True)
class MapRow:
    """The units that the same nodes reach: mostly those of one node."""

    name: str
    nodes: tuple[NodeIndex, ...]
    units: tuple[PhysicalDevice, ...]


def rows(problem: Problem) -> tuple[MapRow, ...]:
    """Return all rows, in the order of the nodes; units that several nodes reach come behind those of single nodes."""
    reach: dict[DeviceIndex, list[NodeIndex]] = defaultdict(list)
    for node_index, node in numbered(problem.nodes):
        for device in node.devices():
            if problem.on_node(device, node_index):
                reach[device].append(node_index)
    by_nodes: dict[tuple[NodeIndex, ...], list[PhysicalDevice]] = defaultdict(
        list
    )
    for unit in _units(problem, reach):
        by_nodes[
            tuple(
                sorted(
                    {node for device in unit.devices for node in reach[device]}
                )
            )
        ].append(unit)
    ordered = sorted(by_nodes, key=lambda nodes: (len(nodes) > 1, nodes))
    return tuple(
        MapRow(_name(problem, nodes), nodes, tuple(by_nodes[nodes]))
        for nodes in ordered
    )


def _name(problem: Problem, nodes: Sequence[NodeIndex]) -> str:
    if len(nodes) == 1:
        return problem.nodes[nodes[0]].name
    return f"reached by {'all' if len(nodes) == len(problem.nodes) else ''} {len(nodes)} nodes".replace(
        "  ", " "
    )


def _units(
    problem: Problem, reached: Iterable[DeviceIndex]
) -> Iterator[PhysicalDevice]:
    by_unit: dict[tuple[str, str, str] | int, list[DeviceIndex]] = defaultdict(
        list
    )
    for index in reached:
        device = problem.devices[index]
        sets = sorted(
            {
                problem.counters[counter_index].id[:3]
                for counter_index, _ in device.consumes
            }
        )
        for unit_key in sets or (device.slot,):
            by_unit[unit_key].append(index)
    counters: dict[tuple[str, str, str], list[CounterIndex]] = defaultdict(list)
    for counter_index, counter in numbered(problem.counters):
        counters[counter.id[:3]].append(counter_index)
    for key, devices in by_unit.items():
        if isinstance(key, int):
            lone = problem.devices[devices[0]]
            yield PhysicalDevice(
                lone.id.device,
                lone.id.driver,
                (devices[0],),
                shareable=lone.shareable,
            )
        else:
            yield _partitioned(problem, key, devices, counters[key])


def _partitioned(
    problem: Problem,
    key: tuple[str, str, str],
    devices: list[DeviceIndex],
    counters: list[CounterIndex],
) -> PhysicalDevice:
    rows_of_counters: dict[str, dict[int, CounterIndex]] = defaultdict(dict)
    for index in counters:
        match = _NUMBERED.fullmatch(problem.counters[index].id.counter)
        if match and problem.counters[index].total:
            rows_of_counters[match[1]][int(match[2])] = index
    longest = max(rows_of_counters.values(), key=len, default={})
    tracks = (
        tuple(longest[suffix] for suffix in sorted(longest))
        if len(longest) > 1
        else ()
    )
    title = _SET_ENDING.sub("", key[2]) or key[2]
    return PhysicalDevice(
        title, key[0], tuple(devices), tuple(counters), tracks
    )


# ----------------------------------------------------------------------------
# Who holds what under a plan: claims that were allocated before, and those that the
# plan places.


@dataclass(frozen=True, slots=True)
class HeldDevice:
    """A device, or a share of it, that a claim holds.

    Parameters
    ----------
    owner
        The demand that it was placed with; the claim itself if it was allocated before.
    claim, profile
        The claim, and the request profile of the request that is served.
    device
        Index of the device.
    new
        Whether the plan placed it.
    amounts
        What it consumes of the capacity of a shareable device, in nanos.
    counters
        What it consumes of counters, by index, in nanos.
    admin
        Whether it has admin access, which takes nothing.
    """

    owner: ClaimKey
    claim: ClaimKey
    profile: RequestProfile
    device: DeviceIndex
    new: bool
    amounts: tuple[tuple[str, int], ...] = ()
    counters: tuple[tuple[CounterIndex, int], ...] = ()
    admin: bool = False


def held_devices(
    plan: Plan, profiles: RequestProfiles
) -> tuple[HeldDevice, ...]:
    """Return everything that is held once the plan is carried out: first what was held before, both in order."""
    return tuple(chain(_before(plan, profiles), _new(plan, profiles)))


def _before(plan: Plan, profiles: RequestProfiles) -> Iterator[HeldDevice]:
    devices = plan.compiled.problem.devices
    device_indices = {device.id: index for index, device in numbered(devices)}
    for claim in plan.compiled.cluster.claims:
        for result in claim.results:
            device_index = device_indices.get(result.device_id)
            if device_index is not None:
                amounts = tuple(
                    (name, amount.nanos)
                    for name, amount in result.consumed_capacity.items()
                )
                profile, counters = (
                    profiles.of(claim.key, result.request),
                    devices[device_index].consumes,
                )
                yield HeldDevice(
                    claim.key,
                    claim.key,
                    profile,
                    device_index,
                    False,
                    amounts,
                    counters,
                    result.admin_access,
                )


def _new(plan: Plan, profiles: RequestProfiles) -> Iterator[HeldDevice]:
    problem = plan.compiled.problem
    for placement, claim, grant in plan.grants():
        alternative = claim.requests[grant.request].alternatives[
            grant.alternative
        ]
        charge = (
            problem.eligibility.charge(alternative.index, grant.device)
            or Charge()
        )
        yield HeldDevice(
            owner=plan.demands[placement.demand].key,
            claim=claim.key,
            profile=profiles.of(claim.key, str(alternative.name)),
            device=grant.device,
            new=True,
            amounts=charge.capacity,
            counters=(
                *problem.devices[grant.device].consumes,
                *charge.counters,
            ),
            admin=alternative.admin,
        )


# ----------------------------------------------------------------------------
# Where in a unit each holding lies: partitions by the counters that they consume,
# shares stacked, both to scale.


class Box(NamedTuple):
    """A rectangle in a unit; the unit is a square from 0 to 1, its y axis points down."""

    x: float
    top: float
    width: float
    height: float


class Block(NamedTuple):
    """A holding and its place."""

    holding: HeldDevice
    box: Box


def blocks(
    problem: Problem, unit: PhysicalDevice, held: Sequence[HeldDevice]
) -> list[Block]:
    """Return the blocks of a unit. Admin access takes nothing: in a counter set it has no block."""
    if not unit.counters:
        if unit.shareable:
            return list(
                _stacked(
                    [(holding,) for holding in held],
                    [_share_of_device(problem, holding) for holding in held],
                )
            )
        return list(_beside(held, Box(0, 0, 1, 1)))
    groups = _by_device([holding for holding in held if not holding.admin])
    placed = [_tracks(problem, unit, group) for group in groups]
    if unit.tracks and all(placed):
        return list(_in_tracks(unit, groups, placed))
    return list(
        _stacked(
            groups, [_share_of_set(problem, unit, group) for group in groups]
        )
    )


def _by_device(held: Sequence[HeldDevice]) -> list[tuple[HeldDevice, ...]]:
    by_device: dict[int, list[HeldDevice]] = {}
    for holding in held:
        by_device.setdefault(holding.device, []).append(holding)
    return [tuple(group) for group in by_device.values()]


def _beside(group: Sequence[HeldDevice], box: Box) -> Iterator[Block]:
    """Yield the holders of one device side by side."""
    width = box.width / len(group) if group else 0
    for column, holding in enumerate(group):
        yield Block(
            holding, box._replace(x=box.x + column * width, width=width)
        )


def _stacked(
    groups: Sequence[Sequence[HeldDevice]], shares: Sequence[float]
) -> Iterator[Block]:
    """Stack holdings below each other; squeezed if they hold more than there is."""
    scale = 1 / max(1.0, sum(shares))
    top = 0.0
    for group, share in zip(groups, shares, strict=True):
        yield from _beside(group, Box(0, top, 1, share * scale))
        top += share * scale


def _share_of_device(problem: Problem, holding: HeldDevice) -> float:
    """Return the largest share that it has of any capacity of its device."""
    capacity = problem.devices[holding.device].capacity
    shares = [
        amount / capacity[name].total
        for name, amount in holding.amounts
        if capacity[name].total
    ]
    return max(shares, default=0.0) or 1 / 16


def _share_of_set(
    problem: Problem, unit: PhysicalDevice, group: Sequence[HeldDevice]
) -> float:
    """Return the largest share that a device in use has of any counter of the set."""
    set_counters = set(unit.counters)
    return max(
        (
            amount / problem.counters[index].total
            for holding in group
            for index, amount in holding.counters
            if index in set_counters and problem.counters[index].total
        ),
        default=0.0,
    )


def _tracks(
    problem: Problem, unit: PhysicalDevice, group: Sequence[HeldDevice]
) -> Mapping[int, float]:
    """Return the share that a device in use has of each track, by the track's position."""
    positions = {index: position for position, index in enumerate(unit.tracks)}
    return {
        positions[index]: amount / problem.counters[index].total
        for index, amount in group[0].counters
        if index in positions and amount
    }


def _in_tracks(
    unit: PhysicalDevice,
    groups: Sequence[Sequence[HeldDevice]],
    placed: Sequence[Mapping[int, float]],
) -> Iterator[Block]:
    filled: dict[int, float] = defaultdict(float)
    height = 1 / len(unit.tracks)
    for group, shares in zip(groups, placed, strict=True):
        for positions in _runs(shares, filled):
            start, width = filled[positions[0]], shares[positions[0]]
            box = Box(
                start,
                positions[0] * height,
                min(width, 1 - start),
                len(positions) * height,
            )
            yield from _beside(group, box)
        for position, share in shares.items():
            filled[position] += share


def _runs(
    shares: Mapping[int, float], filled: Mapping[int, float]
) -> Iterator[list[int]]:
    """Tracks that follow each other and look the same."""
    numbered = enumerate(sorted(shares))
    for _, run in groupby(
        numbered,
        lambda numbered_track: (
            numbered_track[1] - numbered_track[0],
            shares[numbered_track[1]],
            filled.get(numbered_track[1], 0.0),
        ),
    ):
        yield [position for _, position in run]
