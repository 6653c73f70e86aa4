"""Kubernetes' named string formats."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from typing import Final

from kubecel.cost import tenths
from kubecel.data import NONE, Optional, Value
from kubecel.effort import slow
from kubecel.overloads.registry import accepts, function, method
from kubecel.overloads.temporal import parse_timestamp
from kubecel.runtime_types import NamedFormat, size_of
from kubecel.url import is_url

__all__ = ["FORMATS"]

_Check = Callable[[str], tuple[str, ...]]
_BOUNDS: Final = "and must start and end with an alphanumeric character"
_LABEL: Final = f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_BOUNDS}"
_SUBDOMAIN: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, "
    f"'-' or '.', {_BOUNDS}"
)
_LABEL_1035: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character"
)
_NAME: Final = (
    f"name part must consist of alphanumeric characters, '-', '_' or '.', {_BOUNDS}"
)
_VALUE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.',"
    " and must start and end with an alphanumeric character"
)
_DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_WORD: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_UUID: Final = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}",
    re.ASCII | re.IGNORECASE,
)
_BASE64: Final = re.compile(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})",
    re.ASCII,
)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


def _pattern(pattern: str, limit: int, message: str, *, empty: bool = False) -> _Check:
    compiled = re.compile(pattern, re.ASCII)

    def check(text: str) -> tuple[str, ...]:
        found = []
        if len(text.encode()) > limit:
            found.append(f"must be no more than {limit} bytes")
        if not compiled.fullmatch(text) and not (empty and not text):
            found.append(message)
        return tuple(found)

    return check


def _prefix(check: _Check) -> _Check:
    """A prefix of a name may end with a dash."""
    return lambda text: check(
        f"{text[:-1]}a" if len(text) > 1 and text[-1] == "-" else text
    )


_subdomain = _pattern(rf"{_DNS_LABEL}(\.{_DNS_LABEL})*", 253, _SUBDOMAIN)
_name = _pattern(_WORD, 63, _NAME)


def _qualified_name(text: str) -> tuple[str, ...]:
    *prefixes, name = text.split("/")
    if len(prefixes) > 1:
        return (
            f"a qualified name {_NAME.removeprefix('name part ')} with an optional DNS subdomain prefix and '/'",
        )
    found = []
    if prefixes:
        problems = _subdomain(prefixes[0]) if prefixes[0] else ("must be non-empty",)
        found += [f"prefix part {problem}" for problem in problems]
    if not name:
        found.append("name part must be non-empty")
    return (*found, *_name(name))


_is_date = accepts(date.fromisoformat)
_is_datetime = accepts(lambda text: parse_timestamp(text.upper()))


def _test(right: Callable[[str], object], message: str) -> _Check:
    return lambda text: () if right(text) else (message,)


_label = _pattern(_DNS_LABEL, 63, _LABEL)
_label_1035 = _pattern("[a-z]([-a-z0-9]*[a-z0-9])?", 63, _LABEL_1035)
_NAMED: Final = {
    name: NamedFormat(name, check, cost)
    for name, check, cost in (
        ("byte", _test(_BASE64.fullmatch, "invalid base64"), 21),
        (
            "date",
            _test(
                lambda text: _DATE.fullmatch(text) and _is_date(text), "invalid date"
            ),
            18,
        ),
        ("datetime", _test(_is_datetime, "invalid datetime"), 18),
        ("dns1035Label", _label_1035, 8),
        ("dns1035LabelPrefix", _prefix(_label_1035), 8),
        ("dns1123Label", _label, 8),
        ("dns1123LabelPrefix", _prefix(_label), 8),
        ("dns1123Subdomain", _subdomain, 15),
        ("dns1123SubdomainPrefix", _prefix(_subdomain), 15),
        ("labelValue", _pattern(f"({_WORD})?", 63, _VALUE, empty=True), 10),
        ("qualifiedName", _qualified_name, 15),
        ("uri", _test(is_url, "invalid URI for request"), 276),
        ("uuid", _test(_UUID.fullmatch, "does not match the UUID format"), 18),
    )
}


def _validate(form: NamedFormat, text: str) -> Optional:
    found = form.validate(text)
    return Optional(found) if found else NONE


def _validation_cost(args: Sequence[Value]) -> int:
    form, text = args
    return tenths(1 + size_of(text)) * int(form.cost)


def _named(name: str) -> Optional:
    form = _NAMED.get(name)
    return NONE if form is None else Optional(form)


FORMATS: Final = (
    *(
        function(f"format.{name}", "-> format", partial(_NAMED.__getitem__, name))
        for name in _NAMED
    ),
    function("format.named", "string -> optional(format)", _named),
    method(
        "validate",
        "format, string -> optional(list(string))",
        _validate,
        _validation_cost,
        lambda args: slow(args[1:]),
    ),
)
"""The formats and what validates by them."""
