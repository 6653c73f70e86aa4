"""Forms of names. Each function says what is wrong with a text, or nothing.

Source: ``k8s.io/apimachinery/pkg/util/validation`` and ``pkg/apis/core/validation`` of Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from math import inf
from typing import Final

__all__ = [
    "Judge",
    "annotation_key",
    "before_137",
    "dns_label",
    "dns_subdomain",
    "driver_name",
    "extended_resource_name",
    "fully_qualified_name",
    "generated_prefix",
    "label_name",
    "label_value",
    "length",
    "node_resource_name",
    "pool_name",
    "qualified_name",
    "size_of",
    "uuid",
    "version",
]

_LABEL: Final = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_PRE: Final = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD: Final = r"[0-9A-Za-z-]+"
_VERSION: Final = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRE}(?:\.{_PRE})*)?(?:\+{_BUILD}(?:\.{_BUILD})*)?"

Judge = Callable[[str], str]


def size_of(text: str) -> int:
    """How many bytes a text has on the wire."""
    return len(text.encode(errors="surrogatepass"))


def _remembered(judge: Judge) -> Judge:
    """The same names come up for every device."""
    return lru_cache(maxsize=16384)(judge)


def length(text: str, limit: float) -> str:
    """At most so many bytes."""
    size = size_of(text)
    return f"is {size} bytes long, at most {limit} are allowed" if size > limit else ""


def _like(pattern: str, otherwise: str, most: float = inf) -> Judge:
    """Text that a regular expression describes, of at most so many bytes."""
    whole = re.compile(pattern)
    return _remembered(
        lambda text: length(text, most) if whole.fullmatch(text) else otherwise
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
    """As `dns_subdomain` for what a name begins with: it may end in a dash, as something alphanumeric follows."""
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
    """A subdomain of at most 63 bytes, upper case allowed."""
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
    """A qualified name with its domain."""
    return qualified_name(text) or (
        "" if "/" in text else "must be a domain and a name separated by a slash"
    )


def before_137(judge: Judge) -> Judge:
    """As API servers before Kubernetes 1.37 judge: they accept any name with more than one slash."""
    return lambda text: "" if text.count("/") > 1 else judge(text)


@_remembered
def label_name(text: str) -> str:
    """Key of a label, taint or condition: a word of at most 63 bytes, after a subdomain and a slash or alone."""
    domain, slash, name = text.rpartition("/")
    if slash and (not domain or "/" in domain or dns_subdomain(domain)):
        return "must have a DNS subdomain before its only slash"
    return _word(name)


def annotation_key(text: str) -> str:
    """As `label_name`, where case does not matter."""
    return label_name(text.lower())


def label_value(text: str) -> str:
    """A word of at most 63 bytes, or nothing."""
    return _word(text) if text else ""


def extended_resource_name(text: str) -> str:
    """Name of a resource outside of kubernetes.io, such that ``requests.<name>`` can stand in a quota."""
    native = "/" not in text or "kubernetes.io/" in text
    if native or text.startswith("requests.") or label_name(f"requests.{text}"):
        return "must be an extended resource name: a domain other than kubernetes.io, a slash and a name"
    return ""
