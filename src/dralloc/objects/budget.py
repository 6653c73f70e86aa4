"""What the claims of a namespace may use of something, and what is to be shared fairly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from dralloc.objects.errors import DrallocError, QuantityError
from dralloc.objects.quantity import Quantity, parse_quantity

__all__ = ["Budget", "BudgetKey", "Cap", "parsed"]


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
        namespace, equals, rest = text.partition("=")
        resource, colon, amount = rest.rpartition(":")
        if not (namespace and equals and resource and colon and amount):
            raise DrallocError(f"--cap {text}: expected NAMESPACE=COUNTER:AMOUNT")
        try:
            most = parse_quantity(amount)
        except QuantityError as error:
            raise DrallocError(f"--cap {text}: {error}") from None
        if most.nanos < 0:
            raise DrallocError(f"--cap {text}: the amount is negative")
        return cls(namespace, resource, most)


def parsed(caps: Iterable[Cap | str]) -> tuple[Cap, ...]:
    """The caps; those that are text are parsed."""
    return tuple(Cap.parse(one) if isinstance(one, str) else one for one in caps)


class BudgetKey(NamedTuple):
    """What tells budgets apart."""

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
        """What it may still take; None if nothing says. Nothing if it has too much already."""
        return None if self.most is None else max(0, self.most - self.used)
