"""Kubernetes quantities: exact values that never become floats. What they are is `kubecel.kubernetes_types`'s."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import gcd

import kubecel
from dralloc.objects.errors import QuantityError
from kubecel import NANOS, Format, Quantity

__all__ = ["NANOS", "Format", "Quantity", "common_unit", "parse_quantity"]


@lru_cache(maxsize=65536)
def parse_quantity(text: str) -> Quantity:
    """Parse the text of a quantity.

    Raises
    ------
    QuantityError
        The text does not follow the grammar of Kubernetes quantities.
    """
    try:
        return kubecel.parse_quantity(text)
    except kubecel.QuantitySyntaxError as error:
        raise QuantityError(str(error)) from None


def common_unit(quantities: Iterable[Quantity]) -> int:
    """Return the largest number of nanos of which all quantities are whole multiples (1 when there are none but zeros).

    Dividing by it turns the quantities of one counter or capacity into the smallest exact integers.
    """
    return gcd(*(quantity.nanos for quantity in quantities)) or 1
