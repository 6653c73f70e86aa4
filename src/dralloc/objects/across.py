"""How users write constraints over the claims of a pod, or of all pods of a gang."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from dralloc.objects.errors import DrallocError

__all__ = ["ACROSS", "Across", "annotated", "parsed"]

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
        over, _, rest = text.partition(":")
        if over not in ("pod", "gang"):
            raise DrallocError(f"--across {text}: expected pod: or gang:, then {_FORM}")
        try:
            return replace(_read(rest), over=over)
        except ValueError as error:
            raise DrallocError(f"--across {text}: {error}") from None


def parsed(across: Iterable[Across | str]) -> tuple[Across, ...]:
    """The constraints; those that are text are parsed."""
    return tuple(Across.parse(one) if isinstance(one, str) else one for one in across)


def annotated(text: str, over: str) -> tuple[Across, ...]:
    """The constraints of an annotation, which are separated by semicolons.

    Raises
    ------
    ValueError
        One of them has another form, as the message says.
    """
    return tuple(replace(_read(one.strip()), over=over) for one in text.split(";"))


def _read(text: str) -> Across:
    found = _GRAMMAR.fullmatch(text)
    if found is None:
        raise ValueError(f'"{text}" is not {_FORM}')
    kind, attribute, requests = found.groups()
    return Across("", kind, attribute, tuple(requests.split(",")) if requests else ())
