"""Which devices can serve a request as it is, and the request as it could be changed.

`Offers` answers for any `Eligibility`, but knows nothing to change about it. `TableOffers` knows the cluster's criteria
and can vary them: without a clause of a selector, with a taint tolerated, with other amounts. First selectors are taken
apart, clause by clause.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.inventory import amount_within, charge_for
from dralloc.compile.match import Criteria, MatchTable
from dralloc.objects.api import (
    CELDeviceSelector,
    DeviceClass,
    DeviceSelector,
    DeviceTaint,
    DeviceToleration,
)
from dralloc.objects.api.base import changed
from dralloc.objects.api.selecting import all_tolerated
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import Quantity
from dralloc.problem import AlternativeIndex, Charge, DeviceIndex, Eligibility
from dralloc.problem.problem import Overlay
from kubecel import CelError, compile_selector

__all__ = [
    "Clause",
    "Offers",
    "TableOffers",
    "Variation",
    "clauses_of",
    "split",
]

# ----------------------------------------------------------------------------
# Selectors taken apart: what a request or class demands of a device, clause by
# clause.


@dataclass(frozen=True, slots=True)
class Clause:
    """A selector, or one operand of its outermost ``&&``.

    Parameters
    ----------
    of_class
        Name of the class whose selector it is; empty if it is the request's own.
    selector
        The selector's number.
    text
        The CEL expression.
    written
        The selector as it is written, of which it is a part if it is not all of it.
    """

    of_class: str
    selector: int
    text: str
    written: str

    def __str__(self) -> str:
        owner = (
            f"selector of class {self.of_class}:"
            if self.of_class
            else "selector"
        )
        return (
            f"{owner} {self.written}"
            if self.text == self.written
            else f"{self.text} (part of {owner} {self.written})"
        )


def clauses_of(criteria: Criteria) -> tuple[Clause, ...]:
    """The clauses of class and request, in the order in which they are looked at."""
    clauses: list[Clause] = []
    if criteria.device_class is not None:
        name = criteria.device_class.metadata.name
        for selector_index, selector in enumerate(
            criteria.device_class.spec.selectors
        ):
            if selector.cel is not None:
                clauses += _clauses(
                    name, selector_index, selector.cel.expression
                )
    for selector_index, expression in enumerate(criteria.selectors):
        clauses += _clauses("", selector_index, expression)
    return tuple(clauses)


def _clauses(
    of_class: str, selector_index: int, expression: str
) -> Iterator[Clause]:
    return (
        Clause(of_class, selector_index, part, expression)
        for part in split(expression)
    )


_TOKENS: Final = re.compile(
    r"""//[^\n]*|[rR]?[bB]?"{3}[\s\S]*?"{3}|[rR]?[bB]?'{3}[\s\S]*?'{3}|[rR][bB]?"[^"\n]*"|[rR][bB]?'[^'\n]*'"""
    r"""|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|&&|\|\||\.\?|[?()\[\]{}]"""
)


@lru_cache(maxsize=1024)
def split(expression: str) -> tuple[str, ...]:
    """The operands of the outermost ``&&`` of an expression; the expression itself if it is no conjunction."""
    parts, depth, start = [], 0, 0
    for token in _TOKENS.finditer(expression):
        text = token[0]
        if text in ("(", "[", "{"):
            depth += 1
        elif text in (")", "]", "}"):
            depth -= 1
        elif depth == 0 and text in ("||", "?"):
            return (expression,)
        elif depth == 0 and text == "&&":
            parts.append(expression[start : token.start()].strip())
            start = token.end()
    parts.append(expression[start:].strip())
    return (
        tuple(parts)
        if len(parts) > 1 and all(map(_compiles, parts))
        else (expression,)
    )


def _compiles(expression: str) -> bool:
    try:
        compile_selector(expression)
    except CelError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Variation:
    """How a request is changed.

    Parameters
    ----------
    without
        Numbers of the clauses that are left out.
    tolerated
        Taints that are tolerated, too.
    amounts
        Capacity requests that are set or, with None, left out.
    unasked
        Capacities of which as little as possible is taken: nothing, or what the device's policy rounds that up to.
    substitute
        What is asked for in place of the request's own class, selectors, amounts and tolerations.
    """

    without: frozenset[int] = frozenset()
    tolerated: frozenset[DeviceTaint] = frozenset()
    amounts: tuple[tuple[str, Quantity | None], ...] = ()
    unasked: frozenset[str] = frozenset()
    substitute: Criteria | None = field(default=None, hash=False)

    def __or__(self, second: Variation) -> Variation:
        """Both variations together; what only one can say is said by the second."""
        return Variation(
            without=self.without | second.without,
            tolerated=self.tolerated | second.tolerated,
            amounts=tuple(dict((*self.amounts, *second.amounts)).items()),
            unasked=self.unasked | second.unasked,
            substitute=second.substitute or self.substitute,
        )


_SAME = Variation()


class Offers(Overlay):
    """Answers of an eligibility. It has no variations, and does not know the selectors behind the answers."""

    knows_selectors = False

    def __init__(self, eligibility: Eligibility) -> None:
        super().__init__(eligibility)
        self._device_keys: dict[tuple[int, ...], tuple[Hashable, ...]] = {}

    def device_keys(
        self, devices: tuple[DeviceIndex, ...]
    ) -> tuple[Hashable, ...]:
        """The keys of a pool's devices, found out once."""
        keys = self._device_keys.get(devices)
        if keys is None:
            keys = self._device_keys[devices] = tuple(
                map(self.device_key, devices)
            )
        return keys

    def could_serve(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> bool:
        """Whether a device could serve an alternative, whatever is in use: the same for all devices of one class."""
        return (
            self.selects(alternative, device) is True
            and self.charge(alternative, device) is not None
            and self.admits(alternative, device)
        )

    def clauses(self, alternative: AlternativeIndex) -> tuple[Clause, ...]:  # noqa: ARG002 - nothing is known here
        """Return what class and request demand, clause by clause."""
        return ()

    def class_name(self, alternative: AlternativeIndex) -> str:  # noqa: ARG002 - nothing is known here
        """The name of the class that the alternative asks for; empty if it is not known."""
        return ""

    def taints(
        self,
        alternative: AlternativeIndex,  # noqa: ARG002 - nothing is known here
        device: DeviceIndex,  # noqa: ARG002 - nothing is known here
    ) -> tuple[DeviceTaint, ...]:
        """The device's taints that keep the alternative away."""
        return ()

    def amounts(self, alternative: AlternativeIndex) -> Mapping[str, Quantity]:  # noqa: ARG002 - nothing is known here
        """Return the amounts of capacities that the alternative asks for."""
        return {}

    def amount_within(
        self,
        device: DeviceIndex,  # noqa: ARG002 - nothing is known here
        name: str,  # noqa: ARG002 - nothing is known here
        limit: Quantity,
    ) -> Quantity | None:
        """Return the largest amount of a capacity up to a limit that may be asked for; None if there is none."""
        return limit

    def vary(
        self, alternative: AlternativeIndex, variation: Variation
    ) -> AlternativeIndex:
        """The index of the changed alternative; a problem without its objects knows no changed ones."""
        assert variation == _SAME
        return alternative


class TableOffers(Offers):
    """Answers of a match table, for its alternatives and for variations of them. The given table stays as it is."""

    knows_selectors = True

    def __init__(self, compiled: CompiledCluster) -> None:
        table = compiled.table
        self.table = MatchTable(
            table.inventory, table.features, table.taint_rules
        )
        for criteria in table.criteria:
            self.table.add(criteria)
        # The table tells devices apart by what the selectors in it read, and variations may be made of any selector.
        expressions = tuple(dict.fromkeys(_expressions(compiled)))
        self.table.add(
            Criteria(
                ClaimKey("", ""),
                None,
                expressions,
                (),
                (),
                tuple(_derived(compiled.cluster)),
            )
        )
        super().__init__(self.table)
        self._varied: dict[tuple[int, Variation], AlternativeIndex] = {}
        self._unasked: dict[int, frozenset[str]] = {}
        self._least: dict[tuple[int, int], Charge | None] = {}
        self._clauses: dict[int, tuple[Clause, ...]] = {}

    def _taints(self, device: DeviceIndex) -> tuple[DeviceTaint, ...]:
        if not self.table.features.DeviceTaints:
            return ()
        if self.table.taint_rules.rules:
            return self.table.taints(device)
        return self.table.inventory.sources[device].device.taints

    def clauses(self, alternative: AlternativeIndex) -> tuple[Clause, ...]:
        """Return what class and request demand, clause by clause."""
        if alternative not in self._clauses:
            self._clauses[alternative] = clauses_of(
                self.table.criteria[alternative]
            )
        return self._clauses[alternative]

    def class_name(self, alternative: AlternativeIndex) -> str:
        """The name of the class that the alternative asks for."""
        device_class = self.table.criteria[alternative].device_class
        return "" if device_class is None else device_class.metadata.name

    def taints(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> tuple[DeviceTaint, ...]:
        """The device's taints that keep the alternative away."""
        tolerations = self.table.criteria[alternative].tolerations
        return tuple(
            taint
            for taint in self._taints(device)
            if not all_tolerated((taint,), tolerations)
        )

    def amounts(self, alternative: AlternativeIndex) -> Mapping[str, Quantity]:
        """Return the amounts of capacities that the alternative asks for."""
        return dict(self.table.criteria[alternative].amounts)

    def amount_within(
        self, device: DeviceIndex, name: str, limit: Quantity
    ) -> Quantity | None:
        """Return the largest amount up to a limit that the capacity's request policy does not round up."""
        entry = self.table.inventory.sources[device].device.capacity[name]
        return (
            amount_within(limit, entry.request_policy, self.table.features)
            if entry.consumable
            else limit
        )

    def vary(
        self, alternative: AlternativeIndex, variation: Variation
    ) -> AlternativeIndex:
        """The index of the changed alternative, which is entered into a table of its own."""
        if variation == _SAME:
            return alternative
        key = alternative, variation
        if key not in self._varied:
            index = self._varied[key] = self.table.add(
                self._changed(alternative, variation)
            )
            if variation.unasked:
                self._unasked[index] = variation.unasked
        return self._varied[key]

    def request_key(self, alternative: AlternativeIndex) -> Hashable:
        """As in `Eligibility`; variations are told apart."""
        return super().request_key(alternative), self._unasked.get(alternative)

    def charge(
        self, alternative: AlternativeIndex, device: DeviceIndex
    ) -> Charge | None:
        """As in `Eligibility`; of what is not asked, as little as the device's policy allows."""
        names = self._unasked.get(alternative)
        if not names or not self.table.features.ConsumableCapacity:
            return self.table.charge(alternative, device)
        key = alternative, device
        if key not in self._least:
            self._least[key] = self._least_charge(alternative, device, names)
        return self._least[key]

    def _least_charge(
        self,
        alternative: AlternativeIndex,
        device: DeviceIndex,
        names: frozenset[str],
    ) -> Charge | None:
        inventory = self.table.inventory
        source = inventory.sources[device]
        published = {
            *source.device.capacity,
            *(key for _, key in source.requested_counters),
        }
        amounts = {
            **self.amounts(alternative),
            **{name: Quantity(0) for name in names & published},
        }
        return charge_for(
            amounts,
            source,
            inventory.published,
            self.table.features,
            shareable=inventory.devices[device].shareable,
        )

    def _changed(
        self, alternative: AlternativeIndex, variation: Variation
    ) -> Criteria:
        criteria = self.table.criteria[alternative]
        if variation.substitute is not None:
            return replace(variation.substitute, claim=criteria.claim)
        amounts = {**dict(criteria.amounts), **dict(variation.amounts)}
        clauses = [
            clause
            for index, clause in enumerate(self.clauses(alternative))
            if index not in variation.without
        ]
        return replace(
            criteria,
            device_class=_class_of(criteria.device_class, clauses)
            if variation.without
            else criteria.device_class,
            selectors=_joined(clauses, "")
            if variation.without
            else criteria.selectors,
            tolerations=(
                *criteria.tolerations,
                *map(_toleration, sorted(variation.tolerated, key=repr)),
            ),
            amounts=tuple(
                (name, amount)
                for name, amount in amounts.items()
                if amount is not None and name not in variation.unasked
            ),
        )


def _expressions(compiled: CompiledCluster) -> list[str]:
    """Every selector that a variation can be made of: those of all claims and of all classes."""
    expressions = [
        expression
        for criteria in compiled.table.criteria
        for expression in criteria.selectors
    ]
    for claim in compiled.cluster.claims:
        for _, details in claim.spec.devices.alternatives:
            expressions += _written(details.selectors)
    for device_class in compiled.cluster.classes.values():
        expressions += _written(device_class.spec.selectors)
    return expressions


def _written(selectors: Iterable[DeviceSelector]) -> Iterator[str]:
    """The expressions of selectors, as far as they are CEL."""
    for selector in selectors:
        if selector.cel is not None:
            yield selector.cel.expression


def _derived(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Every attribute that a claim derives, with its expression."""
    for claim in cluster.claims:
        for _, details in claim.spec.devices.alternatives:
            for attribute in details.derived_attributes:
                yield attribute.name, attribute.expression


def _class_of(
    device_class: DeviceClass | None, clauses: list[Clause]
) -> DeviceClass | None:
    """The class with these of its clauses only; the table tells classes apart by name, so it gets one of its own."""
    if device_class is None:
        return None
    expressions = _joined(clauses, device_class.metadata.name)
    if expressions == tuple(_written(device_class.spec.selectors)):
        return device_class
    selectors = tuple(
        DeviceSelector(cel=CELDeviceSelector(expression=text))
        for text in expressions
    )
    metadata = changed(
        device_class.metadata,
        name=f"{device_class.metadata.name} {expressions}",
    )
    return changed(
        device_class,
        metadata=metadata,
        spec=changed(device_class.spec, selectors=selectors),
    )


def _joined(clauses: list[Clause], of_class: str) -> tuple[str, ...]:
    selectors: dict[int, list[str]] = {}
    for clause in clauses:
        if clause.of_class == of_class:
            selectors.setdefault(clause.selector, []).append(clause.text)
    # A clause may end in a comment, which goes to the end of its line.
    return tuple(
        "\n&& ".join(parts) if "//" in "".join(parts) else " && ".join(parts)
        for parts in selectors.values()
    )


def _toleration(taint: DeviceTaint) -> DeviceToleration:
    return DeviceToleration(
        key=taint.key, operator="Equal", value=taint.value, effect=taint.effect
    )
