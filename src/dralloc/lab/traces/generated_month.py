"""A month of a MIG cluster: our own generator.

The placements of an H100 with 80 GB, as NVIDIA's documentation of MIG has them: streaming multiprocessors, memory
slices, and the slices at which an instance begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from dralloc.lab.simulate import PoissonArrivals
from dralloc.lab.traces.cluster_trace import (
    Json,
    template_pod,
    wire_amounts,
    wire_class,
    wire_device,
    wire_node,
    wire_request,
    wire_slice,
    with_attribute,
)
from dralloc.objects.choices import Durations
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import DrallocError
from dralloc.objects.load import load_documents

__all__ = ["MigMonth", "mig_month"]

_SLICES: Final = 8
_MULTIPROCESSORS: Final = 132
_SETS_PER_SLICE: Final = 8
"""Counter sets that a ResourceSlice may have."""


class _MigProfile(NamedTuple):
    """A part of a GPU."""

    multiprocessors: int
    slices: int
    starts: tuple[int, ...]


_PROFILES: Final = {
    "1g.10gb": _MigProfile(16, 1, (0, 1, 2, 3, 4, 5, 6)),
    "1g.20gb": _MigProfile(26, 2, (0, 2, 4, 6)),
    "2g.20gb": _MigProfile(32, 2, (0, 2, 4)),
    "3g.40gb": _MigProfile(60, 4, (0, 4)),
    "4g.40gb": _MigProfile(64, 4, (0,)),
    "7g.80gb": _MigProfile(132, 8, (0,)),
}

_USUAL_MIX: Final = {
    "1g.10gb": 40,
    "2g.20gb": 25,
    "3g.40gb": 20,
    "4g.40gb": 5,
    "7g.80gb": 10,
}


@dataclass(frozen=True)
class MigMonth:
    """A cluster of H100s, and a process that draws who arrives there.

    Parameters
    ----------
    cluster
        Nodes with GPUs in all placements of their MIG profiles, and a pod for each profile.
    arrivals
        Drawn anew for each seed.
    """

    cluster: Cluster
    arrivals: PoissonArrivals


def mig_month(  # noqa: PLR0913 - all with usual values
    nodes: int = 8,
    gpus: int = 4,
    *,
    load: float = 0.9,
    days: float = 30,
    mean_hours: float = 6,
    mix: Mapping[str, float] | None = None,
) -> MigMonth:
    """Make a cluster of H100s, and arrivals by day and night that ask for MIG profiles for log-normal durations.

    Parameters
    ----------
    nodes, gpus
        How many nodes, with so many GPUs each.
    load
        What arrivals ask for on average, as a part of all memory slices.
    days
        For how long they arrive.
    mean_hours
        How long they run on average.
    mix
        How often each profile is asked for beside the others.

    Raises
    ------
    DrallocError
        There is no such profile, or a number is out of its range.
    """
    shares = dict(mix or _USUAL_MIX)
    unknown = shares.keys() - _PROFILES.keys()
    if unknown:
        raise DrallocError(
            f"mix: no profile {min(unknown)!r}; there are {', '.join(_PROFILES)}"
        )
    objects: list[Json] = []
    for node in range(nodes):
        objects += _mig_node(f"node-{node:04}", gpus)
    for profile in _PROFILES:
        objects.append(
            wire_class(_mig_class(profile), with_attribute("profile", profile))
        )
        objects += template_pod(
            _mig_class(profile), [wire_request("mig", _mig_class(profile))]
        )
    slices_per_arrival = sum(
        share * _PROFILES[profile].slices for profile, share in shares.items()
    ) / sum(shares.values())
    # Little's law: what is in use on average is arrivals per hour, times their hours, times their slices.
    per_hour = load * nodes * gpus * _SLICES / slices_per_arrival / mean_hours
    arrivals = PoissonArrivals(
        {_mig_class(profile): share for profile, share in shares.items()},
        per_hour=per_hour,
        hours=24 * days,
        mean_hours=mean_hours,
        durations=Durations.LOGNORMAL,
        shape=1.0,
        swing=0.3,
    )
    return MigMonth(load_documents(objects), arrivals)


def _mig_class(profile: str) -> str:
    return f"mig-{profile.replace('.', '-')}"


def _mig_node(node: str, gpus: int) -> Iterator[Json]:
    whole = _MigProfile(_MULTIPROCESSORS, _SLICES, (0,))
    sets = [
        {
            "name": f"gpu-{gpu}",
            "counters": wire_amounts(_mig_counters(whole, 0)),
        }
        for gpu in range(gpus)
    ]
    yield wire_node(node)
    # A slice has either counter sets or devices: there are some slices beside those of the GPUs.
    firsts = range(0, gpus, _SETS_PER_SLICE)
    slice_count = len(firsts) + gpus
    for first in firsts:
        yield wire_slice(
            node,
            f"{node}-counters-{first}",
            slice_count,
            sharedCounters=sets[first : first + _SETS_PER_SLICE],
        )
    for gpu in range(gpus):
        devices: list[Json] = []
        for name, profile in _PROFILES.items():
            for start in profile.starts:
                counters = wire_amounts(_mig_counters(profile, start))
                devices.append(
                    wire_device(
                        f"gpu-{gpu}-{_mig_class(name)}-{start}",
                        {"profile": name},
                        consumesCounters=[
                            {"counterSet": f"gpu-{gpu}", "counters": counters}
                        ],
                    )
                )
        yield wire_slice(node, f"{node}-{gpu}", slice_count, devices=devices)


def _mig_counters(profile: _MigProfile, start: int) -> dict[str, str]:
    slices = {
        f"memory-slice-{memory_slice}": "1"
        for memory_slice in range(start, start + profile.slices)
    }
    return {"multiprocessors": str(profile.multiprocessors), **slices}
