"""Checks of single fields: forms of names, and rules of one shape such as a limit or differing items."""

from __future__ import annotations

import json
import re
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    Iterator,
    Sequence,
    Sized,
)
from functools import lru_cache
from math import inf
from typing import Any, Final

from dralloc.lint.validate.rule import Check, Issue, place_of, walk

__all__ = [
    "JUDGED",
    "Judge",
    "annotation_key",
    "at_most",
    "before_137",
    "choice",
    "distinct",
    "dns_label",
    "dns_subdomain",
    "driver_name",
    "extended_resource_name",
    "form",
    "fully_qualified_name",
    "generated_prefix",
    "keys",
    "label_name",
    "label_value",
    "length",
    "limit",
    "longest",
    "named",
    "node_resource_name",
    "not_false",
    "not_negative",
    "on",
    "one_term",
    "pool_name",
    "positive",
    "qualified_name",
    "raw_object",
    "required",
    "size_of",
    "told",
    "unique",
    "uuid",
    "version",
]

# ----------------------------------------------------------------------------
# Forms of names. Each function says what is wrong with a text, or nothing.
#
# Source: ``k8s.io/apimachinery/pkg/util/validation`` and ``pkg/apis/core/validation``
# of Kubernetes.

_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_PRE: Final = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD: Final = r"[0-9A-Za-z-]+"
_VERSION: Final = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRE}(?:\.{_PRE})*)?(?:\+{_BUILD}(?:\.{_BUILD})*)?"

Judge = Callable[[str], str]


def size_of(text: str) -> int:
    """Return the number of bytes that a text has on the wire."""
    return len(text.encode(errors="surrogatepass"))


def _remembered(judge: Judge) -> Judge:
    """Remember what is said of a name, as the same names come up for every device."""
    return lru_cache(maxsize=16384)(judge)


def length(text: str, limit: float) -> str:
    """Return the fault of a text of more than so many bytes; empty if it has fewer."""
    size = size_of(text)
    return (
        f"is {size} bytes long, at most {limit} are allowed"
        if size > limit
        else ""
    )


def _like(pattern: str, otherwise: str, maximum: float = inf) -> Judge:
    """Text that a regular expression describes, of at most so many bytes."""
    expression = re.compile(pattern)
    return _remembered(
        lambda text: (
            length(text, maximum) if expression.fullmatch(text) else otherwise
        )
    )


dns_label: Final = _like(
    _LABEL,
    "must consist of lower case letters, digits and '-', and start and end with a letter or digit",
    63,
)
"""RFC 1123 label."""
dns_subdomain: Final = _like(
    rf"{_LABEL}(?:\.{_LABEL})*",
    "must consist of lower case letters, digits, '-' and '.', each part starting and ending alphanumeric",
    253,
)
"""RFC 1123 subdomain."""


def generated_prefix(text: str) -> str:
    """Judge what a name begins with, as `dns_subdomain`: it may end in a dash, as something alphanumeric follows."""
    # Upstream's maskTrailingDash puts a letter in the place of the dash and of what is before it.
    return dns_subdomain(
        f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text
    )


_identifier: Final = _like(
    "[A-Za-z_][A-Za-z0-9_]*",
    "must be an identifier as in C: letters, digits and '_', not starting with a digit",
    32,
)
_word: Final = _like(
    r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?",
    "must consist of letters, digits, '-', '_' and '.', and start and end with a letter or digit",
    63,
)
uuid: Final = _like(
    "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "must be a UUID in lower case, xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
)
"""A UUID in its normal form."""
version: Final = _like(
    _VERSION, "must be a version as semver.org 2.0.0 has it, e.g. 1.2.3"
)
"""A semantic version."""
node_resource_name: Final = _like(
    "cpu|memory|hugepages-(?s:.*)", "must be cpu, memory or hugepages-<size>"
)
"""A resource of nodes that a driver can manage (KEP-5517)."""


def driver_name(text: str) -> str:
    """Judge the name of a driver: a subdomain of at most 63 bytes, upper case allowed."""
    return length(text, 63) or dns_subdomain(text.lower())


def pool_name(text: str) -> str:
    """Subdomains joined by slashes (KEP-4381)."""
    if too_long := length(text, 253):
        return too_long
    return (
        "must be one or more DNS subdomains, joined by slashes"
        if any(map(dns_subdomain, text.split("/")))
        else ""
    )


@_remembered
def qualified_name(text: str) -> str:
    """Name of an attribute or capacity: an identifier, after a domain and a slash or alone (KEP-4381)."""
    domain, slash, name = text.rpartition("/")
    if "/" in domain:
        return "must not contain more than one slash"
    if slash and not domain:
        return "must have a domain before the slash"
    if slash and not name:
        return "must have a name after the slash"
    reason = driver_name(domain) if domain else ""
    return f"has a domain that {reason}" if reason else _identifier(name)


def fully_qualified_name(text: str) -> str:
    """Judge a qualified name that must have its domain."""
    return qualified_name(text) or (
        ""
        if "/" in text
        else "must be a domain and a name separated by a slash"
    )


def before_137(judge: Judge) -> Judge:
    """Judge as API servers before Kubernetes 1.37: they accept any name with more than one slash."""
    return lambda text: "" if text.count("/") > 1 else judge(text)


@_remembered
def label_name(text: str) -> str:
    """Key of a label, taint or condition: a word of at most 63 bytes, after a subdomain and a slash or alone."""
    domain, slash, name = text.rpartition("/")
    if slash and (not domain or "/" in domain or dns_subdomain(domain)):
        return "must have a DNS subdomain before its only slash"
    return _word(name)


def annotation_key(text: str) -> str:
    """Judge as `label_name`, where case does not matter."""
    return label_name(text.lower())


def label_value(text: str) -> str:
    """Judge the value of a label: a word of at most 63 bytes, or nothing."""
    return _word(text) if text else ""


def extended_resource_name(text: str) -> str:
    """Name of a resource outside of kubernetes.io, such that ``requests.<name>`` can stand in a quota."""
    native = "/" not in text or "kubernetes.io/" in text
    if native or text.startswith("requests.") or label_name(f"requests.{text}"):
        return "must be an extended resource name: a domain other than kubernetes.io, a slash and a name"
    return ""


# ----------------------------------------------------------------------------
# What rules of one shape ask of fields: a limit, a form of name, differing items, one
# of some values.
#
# A check names its fields by their path on the wire, below the part that the rule is
# about, as `Places` has it; no name is the part itself. A field that is absent
# passes, but for `required`.

JUDGED: Final = '"{0}" {1}'
"""A text, and what one of the functions of `dralloc.lint.validate.checks` says of it."""


def on(fields: str, of_field: Check, *, absent: bool = False) -> Check:
    """A check that looks at each of the fields, also at those that are absent if that is asked for."""
    steps = place_of(fields)

    def check(part: Any, at: str) -> Iterator[Issue]:
        for path, value in walk(part, steps, at, absent=absent):
            yield from of_field(value, path)

    return check


def told(
    fields: str,
    why: Callable[[Any], object],
    words: str,
    *,
    at: str = "",
    absent: bool = False,
) -> Check:
    """Check a condition of the fields.

    Parameters
    ----------
    why
        What is wrong with a value; nothing true if it is in order.
    words
        The message, in which ``{0}`` stands for the value and ``{1}`` for what is wrong with it.
    at
        The field of the value with which the issue is, if that is not the value as a whole.
    absent
        Whether absent fields are looked at, too.
    """

    def of_field(value: Any, path: str) -> Iterator[Issue]:
        if wrong := why(value):
            yield Issue(
                ".".join(filter(None, (path, at))), words.format(value, wrong)
            )

    return on(fields, of_field, absent=absent)


def form(fields: str, judge: Judge, *, empty: bool = False) -> Check:
    """A name has the form that a function above asks for, or is empty if that is allowed."""
    return on(
        fields,
        lambda text, at: () if empty and not text else named(text, at, judge),
    )


def keys(fields: str, judge: Judge) -> Check:
    """Check the form of all keys of a map; the issue is with the map, as the API server has it."""
    return on(
        fields,
        lambda entries, at: (
            issue for key in entries for issue in named(key, at, judge)
        ),
    )


def limit(maximum: int, fields: str, items_word: str) -> Check:
    """There are at most so many items."""
    return on(fields, lambda items, at: at_most(maximum, items, at, items_word))


def longest(maximum: int, fields: str) -> Check:
    """A text has at most so many bytes."""
    return told(
        fields,
        lambda text: size_of(str(text)) > maximum,
        f"is longer than {maximum} bytes",
    )


def distinct(fields: str, by: str = "") -> Check:
    """The items of a list differ, in a field of theirs if that is named."""
    return on(
        fields,
        lambda items, at: unique(
            (getattr(item, by) if by else item for item in items), at
        ),
    )


def choice(
    fields: str, allowed: Sequence[str], *, empty: bool = False
) -> Check:
    """A text is one of some, or empty if that is allowed."""
    accepted = (*allowed, "") if empty else allowed
    return told(
        fields,
        lambda text: text not in accepted,
        f'"{{}}" is not one of {", ".join(allowed)}',
    )


def required(fields: str) -> Check:
    """Check that a field is there, and not empty."""
    return told(fields, lambda value: not value, "is required", absent=True)


def not_false(fields: str) -> Check:
    """A switch is on or absent."""
    return told(
        fields, lambda value: value is False, "must be true or left out"
    )


def positive(fields: str) -> Check:
    """A number is above zero."""
    return told(
        fields, lambda number: number <= 0, "{} is not greater than zero"
    )


def not_negative(fields: str) -> Check:
    """A number is zero or above; what is no number has been refused before."""
    return told(
        fields,
        lambda number: isinstance(number, int) and number < 0,
        "{} is negative",
    )


def one_term(word: str) -> Check:
    """A node selector has no more than one term."""
    text = f"exactly one term is {word}, not {{1}}"
    return told(
        "nodeSelector.nodeSelectorTerms",
        lambda terms: len(terms) > 1 and len(terms),
        text,
    )


def raw_object(fields: str, maximum: int) -> Check:
    """Check that a value is an object whose JSON is not too long."""

    def of_field(value: Any, at: str) -> Iterator[Issue]:
        if not isinstance(value, dict):
            yield Issue(at, "must be a JSON object")
        elif (
            size := size_of(
                json.dumps(value, separators=(",", ":"), ensure_ascii=False)
            )
        ) > maximum:
            yield Issue(
                at,
                f"is {size} bytes long as JSON, at most {maximum} are allowed",
            )

    return on(fields, of_field)


def named(text: Any, path: str, judge: Judge) -> Iterator[Issue]:
    """Yield an issue if the text lacks the form that one of the functions above asks for."""
    text = str(text or "")
    if not text:
        yield Issue(path, "is required")
    elif reason := judge(text):
        shown = text if len(text) <= 80 else f"{text[:38]}...{text[-38:]}"
        yield Issue(path, JUDGED.format(shown, reason))


def at_most(
    maximum: int, items: Sized, path: str, items_word: str
) -> Iterator[Issue]:
    """Yield an issue if there are more items than allowed."""
    if len(items) > maximum:
        yield Issue(
            path,
            f"has {len(items)} {items_word}, at most {maximum} are allowed",
        )


def unique(
    keys: Iterable[Hashable], path: str, *, field: str = ""
) -> Iterator[Issue]:
    """Yield an issue for every item of the list at `path` whose key came before."""
    seen: dict[Hashable, int] = {}
    for index, key in enumerate(keys):
        first = seen.setdefault(key, index)
        if first != index:
            shown = (
                "/".join(str(part) for part in key if part)
                if isinstance(key, tuple)
                else key
            )
            yield Issue(
                f"{path}[{index}]{field}",
                f'"{shown}" is there before, at {path}[{first}]',
            )
