"""Plain data of which there are a million."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

__all__ = ["record"]

T = TypeVar("T")


@dataclass_transform(frozen_default=True)
def record(cls: type[T]) -> type[T]:
    """A dataclass that is frozen for whoever checks types, and made in a quarter of the time of one that is really so.

    As such, it has a hash. Named tuples are made as fast, but reading their fields takes twice as long.
    """
    return dataclass(slots=True, unsafe_hash=True)(cls)
