"""Rules that users add to those of the API: constraints over several claims, and caps of what namespaces may use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from dralloc.objects.errors import DrallocError, QuantityError
from dralloc.objects.quantity import Quantity, parse_quantity

__all__ = [
    "ACROSS",
    "Across",
    "Budget",
    "BudgetKey",
    "Cap",
    "annotated",
    "parsed_across",
    "parsed_caps",
]

# ----------------------------------------------------------------------------
# How users write constraints over the claims of a pod, or of all pods of a gang.

ACROSS: Final = "dralloc.dev/across"
"""The annotation of pods, PodGroups and Workloads."""

_REQUEST: Final = r"[-a-z0-9]+(?:/[-a-z0-9]+)?"
_GRAMMAR: Final = re.compile(
    rf"(matchAttribute|distinctAttribute)=([-a-z0-9.]+/[A-Za-z_]\w*)(?::({_REQUEST}(?:,{_REQUEST})*))?",
    re.ASCII,
)
_FORM: Final = "matchAttribute=DOMAIN/NAME or distinctAttribute=DOMAIN/NAME, then maybe :REQUEST,REQUEST"


@dataclass(frozen=True, slots=True)
class Across:
    """A constraint like those of a claim, over several claims.

    Parameters
    ----------
    over
        ``"pod"`` for the claims of each pod, ``"gang"`` for those of all pods of each gang.
    kind
        ``"matchAttribute"`` or ``"distinctAttribute"``.
    attribute
        The qualified name.
    requests
        The names of the requests and subrequests that it covers, in whichever claim; empty covers all.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.Across.parse("gang:distinctAttribute=example.com/rack:gpu").requests
    ('gpu',)
    """

    over: str
    kind: str
    attribute: str
    requests: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Across:
        """Read ``pod:matchAttribute=DOMAIN/NAME`` or ``gang:distinctAttribute=DOMAIN/NAME:REQUEST,REQUEST``.

        Raises
        ------
        DrallocError
            It has another form.
        """
        over, _, constraint = text.partition(":")
        if over not in ("pod", "gang"):
            raise DrallocError(
                f"--across {text}: expected pod: or gang:, then {_FORM}"
            )
        try:
            return replace(_read(constraint), over=over)
        except ValueError as error:
            raise DrallocError(f"--across {text}: {error}") from None


def parsed_across(across: Iterable[Across | str]) -> tuple[Across, ...]:
    """Return the constraints; those that are text are parsed."""
    return tuple(
        Across.parse(constraint) if isinstance(constraint, str) else constraint
        for constraint in across
    )


def annotated(text: str, over: str) -> tuple[Across, ...]:
    """Return the constraints of an annotation, which are separated by semicolons.

    Raises
    ------
    ValueError
        One of them has another form, as the message says.
    """
    return tuple(
        replace(_read(constraint.strip()), over=over)
        for constraint in text.split(";")
    )


def _read(text: str) -> Across:
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text}" is not {_FORM}')
    kind, attribute, requests = match.groups()
    return Across(
        "", kind, attribute, tuple(requests.split(",")) if requests else ()
    )


# ----------------------------------------------------------------------------
# What the claims of a namespace may use of something, and what is to be shared
# fairly.


@dataclass(frozen=True, slots=True)
class Cap:
    """At most this much of a counter or capacity for the claims of a namespace, those allocated before included.

    Examples
    --------
    >>> import dralloc
    >>> cap = dralloc.Cap.parse("team-a=memory:80Gi")
    >>> cap.namespace, cap.resource, str(cap.most)
    ('team-a', 'memory', '80Gi')
    """

    namespace: str
    resource: str
    most: Quantity

    @classmethod
    def parse(cls, text: str) -> Cap:
        """Read ``NAMESPACE=COUNTER:AMOUNT``.

        Raises
        ------
        DrallocError
            It has another form, or the amount is no quantity of 0 or more.
        """
        namespace, equals, capped = text.partition("=")
        resource, colon, amount = capped.rpartition(":")
        if not (namespace and equals and resource and colon and amount):
            raise DrallocError(
                f"--cap {text}: expected NAMESPACE=COUNTER:AMOUNT"
            )
        try:
            limit = parse_quantity(amount)
        except QuantityError as error:
            raise DrallocError(f"--cap {text}: {error}") from None
        if limit.nanos < 0:
            raise DrallocError(f"--cap {text}: the amount is negative")
        return cls(namespace, resource, limit)


def parsed_caps(caps: Iterable[Cap | str]) -> tuple[Cap, ...]:
    """Return the caps; those that are text are parsed."""
    return tuple(
        Cap.parse(cap) if isinstance(cap, str) else cap for cap in caps
    )


class BudgetKey(NamedTuple):
    """The key of a budget."""

    namespace: str
    resource: str


@dataclass(frozen=True, slots=True)
class Budget:
    """A namespace and something that it uses: a counter or a capacity, by name. Amounts in nanos.

    Parameters
    ----------
    used
        What its allocated claims use already.
    total
        How much there is of it at all.
    most
        How much it may use; None if nothing says.
    fair
        Whether it is to be shared fairly with the other namespaces of which that is said, too.
    """

    namespace: str
    resource: str
    used: int
    total: int
    most: int | None = None
    fair: bool = False

    @property
    def key(self) -> BudgetKey:
        """The namespace and what it uses."""
        return BudgetKey(self.namespace, self.resource)

    @property
    def left(self) -> int | None:
        """The amount that it may still take, 0 if it has too much already; None without a cap."""
        return None if self.most is None else max(0, self.most - self.used)
