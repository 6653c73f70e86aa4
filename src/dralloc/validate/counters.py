"""Rules about counters: the sets that slices share and what devices consume of them (KEP-4815, KEP-5963)."""

from __future__ import annotations

from typing import Final

from dralloc.validate.checks import distinct, form, forms, keys, limit, required
from dralloc.validate.names import dns_label
from dralloc.validate.places import CONSUMPTIONS, COUNTER_SETS, DEVICES, SLICES
from dralloc.validate.rule import error

__all__ = ["RULES"]

MAX_SETS: Final = 8
MAX_COUNTERS: Final = 32
MAX_CONSUMPTIONS: Final = 2
MAX_GROUPS: Final = 2
_GROUPS: Final = "compatibilityGroups"

RULES: Final = (
    error(
        "counter-set-limit",
        SLICES,
        limit(MAX_SETS, "sharedCounters", "counter sets"),
        "A slice has at most 8 counter sets.",
    ),
    error(
        "counter-set-unique", SLICES, distinct("sharedCounters", "name"), "The names of a slice's counter sets differ."
    ),
    error("counter-set-name", COUNTER_SETS, form("name", dns_label), "A counter set's name is a DNS label."),
    error("counter-set-empty", COUNTER_SETS, required("counters"), "A counter set has counters."),
    error(
        "counter-limit",
        COUNTER_SETS,
        limit(MAX_COUNTERS, "counters", "counters"),
        "A counter set has at most 32 counters.",
    ),
    error("counter-name", COUNTER_SETS, keys("counters", dns_label), "A counter's name is a DNS label."),
    error(
        "consumption-limit",
        DEVICES,
        limit(MAX_CONSUMPTIONS, "consumesCounters", "counter sets"),
        "A device consumes counters of at most 2 sets.",
    ),
    error(
        "consumption-unique",
        DEVICES,
        distinct("consumesCounters", "counter_set"),
        "A device names each counter set once.",
    ),
    error("consumption-set", CONSUMPTIONS, form("counterSet", dns_label), "A counter set's name is a DNS label."),
    error("consumption-empty", CONSUMPTIONS, required("counters"), "A consumption names counters."),
    error(
        "consumption-counter-limit",
        CONSUMPTIONS,
        limit(MAX_COUNTERS, "counters", "counters"),
        "A consumption names at most 32 counters.",
    ),
    error("consumption-counter-name", CONSUMPTIONS, keys("counters", dns_label), "A counter's name is a DNS label."),
    error(
        "compatibility-group-limit",
        CONSUMPTIONS,
        limit(MAX_GROUPS, _GROUPS, "groups"),
        "A consumption has at most 2 groups.",
    ),
    error("compatibility-group-unique", CONSUMPTIONS, distinct(_GROUPS), "A consumption lists each group once."),
    error("compatibility-group-name", CONSUMPTIONS, forms(_GROUPS, dns_label), "A group's name is a DNS label."),
)
