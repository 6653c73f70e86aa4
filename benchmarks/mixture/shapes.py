"""What pods claim, by the kind of nodes that it is meant for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from benchmarks.clusters import MIXES
from benchmarks.mixture.hardware import GIBIBYTES, SHARED_CLASS, SLICES
from benchmarks.nodes import GPU_CLASS, MIG_CLASS, NIC_CLASS, PCI_ROOT, PROFILES
from benchmarks.objects import (
    DRIVER,
    Json,
    claim_spec,
    exactly,
    first_available,
)

__all__ = ["SHAPES", "ClaimShape"]


class ClaimShape(NamedTuple):
    """What a pod claims.

    Parameters
    ----------
    name
        Of its template; the one with alternatives has ``-or`` behind it.
    weight
        How often pods ask for it.
    units
        What it takes, in the unit of the kind of nodes.
    large
        Whether pods that ask for it may be members of gangs.
    spec
        The claim.
    alternatives
        The same as a prioritized list, if somebody may be content with something else.
    """

    name: str
    weight: float
    units: int
    large: bool
    spec: Json
    alternatives: Json | None = None


_WHOLE_PROFILE: Final = PROFILES[-1].name
_ROOT: Final = {"matchAttribute": PCI_ROOT}


def _profile(name: str) -> str:
    return f"device.attributes['{DRIVER}'].profile == '{name}'"


def _whole(count: int, weight: float) -> ClaimShape:
    """Some GPUs; instead of these as many MIG devices of a whole GPU each."""
    instead = first_available(
        "gpus",
        ("whole", GPU_CLASS, (), {"count": count}),
        ("mig", MIG_CLASS, [_profile(_WHOLE_PROFILE)], {"count": count}),
    )
    spec = claim_spec(exactly("gpus", GPU_CLASS, count=count))
    return ClaimShape(
        f"gpus-{count}", weight, count, count > 1, spec, claim_spec(instead)
    )


def _pairs(pairs: int, weight: float) -> ClaimShape:
    """Pairs of a GPU and a network adapter, each on a PCIe root."""
    requests = []
    constraints = []
    for pair in range(pairs):
        names = [f"gpu-{pair}", f"nic-{pair}"]
        requests += [
            exactly(name, kind)
            for name, kind in zip(names, (GPU_CLASS, NIC_CLASS), strict=True)
        ]
        constraints.append({"requests": names, **_ROOT})
    spec = claim_spec(*requests, constraints=constraints)
    return ClaimShape(f"pairs-{pairs}", weight, pairs, pairs > 1, spec)


def _partition(profile: str, weight: float) -> ClaimShape:
    """A MIG device; the larger ones also as a smaller one."""
    slices = {mig_profile.name: mig_profile.slices for mig_profile in PROFILES}
    order = [name for name in slices if name in MIXES["mixed"]]
    entries: list[tuple[str, str, Sequence[str], Json]] = [
        (f"first-{profile[0]}g", MIG_CLASS, [_profile(profile)], {})
    ]
    if order.index(profile):
        smaller = order[order.index(profile) - 1]
        entries.append(
            (f"then-{smaller[0]}g", MIG_CLASS, [_profile(smaller)], {})
        )
    spec = claim_spec(exactly("mig", MIG_CLASS, _profile(profile)))
    alternatives = (
        claim_spec(first_available("mig", *entries))
        if len(entries) > 1
        else None
    )
    return ClaimShape(
        _dns(f"mig-{profile}"),
        weight,
        slices[profile],
        slices[profile] >= SLICES // 2,
        spec,
        alternatives,
    )


def _partitions(count: int, profile: str, weight: float) -> ClaimShape:
    """Several MIG devices of a profile, wherever they are on a node."""
    [slices] = [
        mig_profile.slices
        for mig_profile in PROFILES
        if mig_profile.name == profile
    ]
    spec = claim_spec(exactly("mig", MIG_CLASS, _profile(profile), count=count))
    return ClaimShape(
        _dns(f"mig-{count}x{profile}"), weight, count * slices, True, spec
    )


def _share(gibibytes: int, cores: int, weight: float) -> ClaimShape:
    """A share of a GPU; no cores means that the default will do. Half of the memory is an alternative."""
    wanted: Json = {"memory": f"{gibibytes}Gi"}
    if cores:
        wanted["cores"] = str(cores)
    less = wanted | {"memory": f"{gibibytes // 2}Gi"}
    instead = first_available(
        "share",
        ("roomy", SHARED_CLASS, (), {"capacity": {"requests": wanted}}),
        ("narrow", SHARED_CLASS, (), {"capacity": {"requests": less}}),
    )
    spec = claim_spec(
        exactly("share", SHARED_CLASS, capacity={"requests": wanted})
    )
    large = gibibytes >= GIBIBYTES // 2
    return ClaimShape(
        f"share-{gibibytes}-{cores}",
        weight,
        gibibytes,
        large,
        spec,
        claim_spec(instead),
    )


def _shares(
    count: int, gibibytes: int, cores: int, weight: float
) -> ClaimShape:
    """Shares of as many different GPUs: a request never takes a shared device twice."""
    capacity = {"requests": {"memory": f"{gibibytes}Gi", "cores": str(cores)}}
    spec = claim_spec(
        exactly("share", SHARED_CLASS, count=count, capacity=capacity)
    )
    return ClaimShape(
        f"shares-{count}x{gibibytes}-{cores}",
        weight,
        count * gibibytes,
        True,
        spec,
    )


def _dns(name: str) -> str:
    return name.replace(".", "-")


_ONE_ROOT: Final = ClaimShape(
    "root-2",
    2,
    2,
    True,
    claim_spec(exactly("gpus", GPU_CLASS, count=2), constraints=[_ROOT]),
)
"""Two GPUs on one PCIe root."""

SHAPES: Final[Mapping[str, Sequence[ClaimShape]]] = {
    "gpus": [
        *(
            _whole(count, weight)
            for count, weight in (
                (1, 8),
                (2, 3),
                (3, 1),
                (4, 2),
                (5, 0.3),
                (6, 0.3),
                (8, 0.4),
            )
        ),
        _ONE_ROOT,
        *(
            _pairs(pairs, weight)
            for pairs, weight in ((1, 4), (2, 1.5), (4, 0.5))
        ),
    ],
    "mig": [
        *(
            _partition(profile, weight)
            for profile, weight in MIXES["mixed"].items()
        ),
        _partitions(2, "1g.10gb", 5),
        _partitions(3, "2g.20gb", 3),
        _partitions(2, "3g.40gb", 3),
    ],
    "sharing": [
        *(
            _share(gibibytes, cores, 1)
            for gibibytes, cores in (
                (5, 5),
                (7, 20),
                (9, 0),
                (12, 10),
                (15, 30),
                (19, 15),
                (24, 0),
                (31, 40),
                (40, 25),
            )
        ),
        _share(48, 60, 0.7),
        _shares(2, 20, 25, 0.5),
        _shares(4, 10, 10, 0.3),
    ],
}
"""By the kind of nodes."""
