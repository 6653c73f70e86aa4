"""Patterns of shared devices: which shares of one fit beside each other (KEP-5075).

Rows alone let demands have fractions of what is left: of a device with 48 Gi and 100 multiprocessors, three demands for
16 Gi and 40 get all the memory. Where equal devices are shared in a few different ways, the sets of shares that fit on
one are listed, as in cutting stock: what is granted of so many devices is in so many of these sets (Gilmore and Gomory,
Operations Research 9, 1961). Shares that would make the list too long, the smallest, are left out of it: they draw on
the rows alone. Devices are equal where limits and shares are, whatever they are called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from dralloc.problem import NodeIndex
from dralloc.problem.indices import grouped
from dralloc.solve.optimum.relax.demand_kinds import ResourceRow
from dralloc.solve.optimum.relax.offers import (
    NodeOffers,
    PatternClass,
    WayIndex,
)
from dralloc.solve.optimum.shares import (
    Share,
    SharePattern,
    TooManyPatterns,
    share_patterns,
)

__all__ = ["with_patterns"]

_MOST_PATTERNS: Final = 400
_PATTERNS_PER_DEVICE: Final = 25
"""So many patterns are listed of equal devices at most: of few devices, a long list says little for its length."""

_MOST_CLASSES: Final = 8
"""Patterns are listed for so many kinds of devices, those of which there are most."""


class _SharedDevice(NamedTuple):
    """A device that several claims may share.

    Parameters
    ----------
    rows
        Those of its capacities.
    limits
        What is left of each.
    shares
        What is taken of it in each way.
    """

    node: NodeIndex
    rows: Sequence[int]
    limits: tuple[int, ...]
    shares: Mapping[WayIndex, Share]


def with_patterns(offers: NodeOffers) -> NodeOffers:
    """Return the same offers, with rows for shares behind all others, and draws on them."""
    rows = list(offers.rows)
    draws: dict[WayIndex, list[tuple[int, int]]] = defaultdict(list)
    classes: list[PatternClass] = []
    by_kind = grouped(
        ((device.limits, frozenset(device.shares.values())), device)
        for device in _shared_devices(offers)
    )
    kinds = sorted(by_kind.items(), key=lambda item: len(item[1]), reverse=True)
    for (limits, shares), devices in kinds[:_MOST_CLASSES]:
        longest = min(_MOST_PATTERNS, _PATTERNS_PER_DEVICE * len(devices))
        listed, patterns = _listed(limits, shares, longest)
        # Of equal shares, the rows say how many there are.
        if len(listed) < 2:
            continue
        row_of: dict[Share, int] = {}
        for share_index, share in enumerate(listed):
            row_of[share] = len(rows)
            of_device = max(pattern[share_index] for pattern in patterns)
            limit = of_device * len(devices)
            name = "pattern", limits, shares, share
            rows.append(ResourceRow(None, name, limit, name))
        for device in devices:
            for way, share in device.shares.items():
                if share in row_of:
                    draws[way].append((row_of[share], 1))
        classes.append(
            PatternClass(
                tuple(row_of.values()),
                np.array(patterns, dtype=np.int64),
                tuple([device.node for device in devices]),
                frozenset(row for device in devices for row in device.rows),
            )
        )
    return replace(offers.with_draws(draws), rows=rows, pattern_classes=classes)


def _shared_devices(offers: NodeOffers) -> Iterator[_SharedDevice]:
    """The shared devices that a single node reaches."""
    device_of = {
        row: device
        for device, rows in enumerate(offers.shared_devices)
        for row in rows
    }
    draws_of: dict[int, dict[WayIndex, dict[int, int]]] = defaultdict(dict)
    for index, way in offers.ways():
        for row, amount in way.draws:
            if row in device_of:
                draws = draws_of[device_of[row]].setdefault(index, {})
                draws[row] = amount
    for device, draws_by_way in draws_of.items():
        rows = offers.shared_devices[device]
        node = offers.rows[rows[0]].node
        if node is not None:
            yield _shared_device(node, rows, draws_by_way, offers)


def _shared_device(
    node: NodeIndex,
    rows: Iterable[int],
    draws_by_way: Mapping[WayIndex, Mapping[int, int]],
    offers: NodeOffers,
) -> _SharedDevice:
    """Return a device by what each way to use it draws on its rows."""

    def key(row: int) -> tuple[int, list[int]]:
        amounts = [draws.get(row, 0) for draws in draws_by_way.values()]
        return offers.rows[row].limit, sorted(amounts)

    # In an order that does not depend on who came first.
    ordered_rows = sorted(rows, key=key)
    shares: dict[WayIndex, Share] = {}
    for index, draws in draws_by_way.items():
        shares[index] = tuple([draws.get(row, 0) for row in ordered_rows])
    limits = tuple([offers.rows[row].limit for row in ordered_rows])
    return _SharedDevice(node, ordered_rows, limits, shares)


def _listed(
    limits: Sequence[int], shares: Iterable[Share], most: int
) -> tuple[Sequence[Share], Sequence[SharePattern]]:
    """The largest shares, as many as it takes no more patterns for, and the patterns."""

    def size(share: Share) -> tuple[Fraction, Share]:
        parts = [
            Fraction(amount, limit)
            for amount, limit in zip(share, limits, strict=True)
            if limit
        ]
        return max(parts, default=Fraction(0)), share

    listed = sorted(shares, key=size, reverse=True)
    while listed:
        try:
            return listed, share_patterns(limits, listed, most)
        except TooManyPatterns:
            listed = listed[: len(listed) * 3 // 4]
    return (), ()
