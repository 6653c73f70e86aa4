"""Rules about counters: the sets that slices share and what devices consume of them (KEP-4815, KEP-5963)."""

from __future__ import annotations

from typing import Final

from dralloc.validate.checks import distinct, form, forms, keys, limit, required
from dralloc.validate.names import dns_label
from dralloc.validate.places import CONSUMPTIONS, COUNTER_SETS, DEVICES, SLICES
from dralloc.validate.rule import errors

__all__ = ["RULES"]

MAX_COUNTERS: Final = 32
_GROUPS: Final = "compatibilityGroups"

RULES: Final = (
    *errors(
        SLICES,
        ("counter-set-limit", limit(8, "sharedCounters", "counter sets"), "A slice has at most 8 counter sets."),
        ("counter-set-unique", distinct("sharedCounters", "name"), "The names of a slice's counter sets differ."),
    ),
    *errors(
        COUNTER_SETS,
        ("counter-set-name", form("name", dns_label), "A counter set's name is a DNS label."),
        ("counter-set-empty", required("counters"), "A counter set has counters."),
        ("counter-limit", limit(MAX_COUNTERS, "counters", "counters"), "A counter set has at most 32 counters."),
        ("counter-name", keys("counters", dns_label), "A counter's name is a DNS label."),
    ),
    *errors(
        DEVICES,
        (
            "consumption-limit",
            limit(2, "consumesCounters", "counter sets"),
            "A device consumes counters of at most 2 sets.",
        ),
        ("consumption-unique", distinct("consumesCounters", "counter_set"), "A device names each counter set once."),
    ),
    *errors(
        CONSUMPTIONS,
        ("consumption-set", form("counterSet", dns_label), "A counter set's name is a DNS label."),
        ("consumption-empty", required("counters"), "A consumption names counters."),
        (
            "consumption-counter-limit",
            limit(MAX_COUNTERS, "counters", "counters"),
            "A consumption names at most 32 counters.",
        ),
        ("consumption-counter-name", keys("counters", dns_label), "A counter's name is a DNS label."),
        ("compatibility-group-limit", limit(2, _GROUPS, "groups"), "A consumption has at most 2 groups."),
        ("compatibility-group-unique", distinct(_GROUPS), "A consumption lists each group once."),
        ("compatibility-group-name", forms(_GROUPS, dns_label), "A group's name is a DNS label."),
    ),
)
