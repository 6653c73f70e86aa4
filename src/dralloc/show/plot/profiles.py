"""What a request asks for, in short: its class with what its selectors and amounts narrow it to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dralloc.objects.api import DeviceSubRequest, ExactDeviceRequest
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from dralloc.show.plot.texts import clean, shortened

__all__ = ["UNKNOWN", "RequestProfile", "RequestProfiles"]

_LONGEST: Final = 28
_COMPARED: Final = re.compile(
    r"""\.(\w+)\s*(==|!=|>=|<=|>|<)\s*(?:quantity\()?(?:"([^"]*)"|'([^']*)'|(\d+|true|false))"""
)


@dataclass(frozen=True, slots=True)
class RequestProfile:
    """A class of requests: all that ask for the same class with the same selectors and amounts.

    Parameters
    ----------
    device_class
        Name of the class.
    selectors, amounts
        Expressions of the request's selectors, and requested capacity by name.
    """

    device_class: str
    selectors: tuple[str, ...] = ()
    amounts: tuple[tuple[str, str], ...] = ()

    @property
    def profile(self) -> str:
        """The values that narrow its class down, e.g. ``1g.10gb``; empty if it takes any device of the class."""
        return ", ".join(
            (
                *map(_gist, self.selectors),
                *(f"{amount} {name}" for name, amount in self.amounts),
            )
        )

    @property
    def short(self) -> str:
        """A label for narrow places: the profile, or the first part of the class's name."""
        return shortened(
            clean(self.profile or self.device_class.partition(".")[0] or "any"),
            _LONGEST,
        )

    @property
    def label(self) -> str:
        """A label that names class and profile."""
        return shortened(
            clean(" ".join(filter(None, (self.device_class, self.profile))))
            or "any",
            2 * _LONGEST,
        )


UNKNOWN: Final = RequestProfile("unknown request")
"""The request profile of a request that its claim does not have (any more)."""


class RequestProfiles:
    """The profiles of all requests of a cluster, in the order in which its claims show them first."""

    def __init__(self, cluster: Cluster) -> None:
        self._of: Mapping[tuple[ClaimKey, str], RequestProfile] = {
            (claim.key, name): _profile_of(alternative)
            for claim in cluster.claims
            for name, alternative in claim.spec.devices.alternatives
        }
        self.all: tuple[RequestProfile, ...] = tuple(
            dict.fromkeys(self._of.values())
        )

    def of(self, claim: ClaimKey, request: str) -> RequestProfile:
        """Return the request profile of a request, or of the alternative ``request/sub``, of a claim."""
        return self._of.get((claim, request), UNKNOWN)


def _profile_of(
    request: ExactDeviceRequest | DeviceSubRequest,
) -> RequestProfile:
    amounts = request.capacity.requests if request.capacity else {}
    return RequestProfile(
        request.device_class_name,
        tuple(
            selector.cel.expression
            for selector in request.selectors
            if selector.cel
        ),
        tuple(
            (name.rpartition("/")[2], str(amount))
            for name, amount in sorted(amounts.items())
        ),
    )


def _gist(expression: str) -> str:
    """Return the values that an expression compares attributes with; the expression itself if there are none."""
    comparisons = [
        (name, sign, first or second or plain)
        for name, sign, first, second, plain in _COMPARED.findall(expression)
    ]
    narrowing = [
        comparison for comparison in comparisons if comparison[0] != "driver"
    ] or comparisons
    if not narrowing:
        return " ".join(expression.split())
    return ", ".join(_compared(*comparison) for comparison in narrowing)


def _compared(name: str, sign: str, value: str) -> str:
    """Return a comparison in short; just the value if it speaks for itself, as names of profiles do."""
    if sign == "==" and not value.isalnum():
        return value
    return f"{name}{'=' if sign == '==' else sign}{value}"
