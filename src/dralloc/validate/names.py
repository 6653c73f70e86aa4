"""Forms of names. Each function says what is wrong with a text, or nothing.

Source: ``k8s.io/apimachinery/pkg/util/validation`` and ``pkg/apis/core/validation`` of Kubernetes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

__all__ = [
    "MAX_VERSION",
    "Judge",
    "annotation_key",
    "before_137",
    "c_identifier",
    "dns_label",
    "dns_subdomain",
    "driver_name",
    "extended_resource_name",
    "fully_qualified_name",
    "label_name",
    "label_value",
    "node_resource_name",
    "pool_name",
    "qualified_name",
    "uuid",
    "version",
]

MAX_LABEL: Final = 63
MAX_SUBDOMAIN: Final = 253
MAX_DRIVER: Final = 63
MAX_IDENTIFIER: Final = 32
MAX_VERSION: Final = 64

_LABEL: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(rf"{_LABEL.pattern}(?:\.{_LABEL.pattern})*")
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORD: Final = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NUMBER: Final = r"(?:0|[1-9][0-9]*)"
_PRE: Final = r"(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
_BUILD: Final = r"[0-9A-Za-z-]+"
_VERSION: Final = re.compile(rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}(?:-{_PRE}(?:\.{_PRE})*)?(?:\+{_BUILD}(?:\.{_BUILD})*)?")

Judge = Callable[[str], str]


def _remembered(judge: Judge) -> Judge:
    """The same names come up for every device."""
    return lru_cache(maxsize=16384)(judge)


def _length(text: str, limit: int) -> str:
    size = len(text.encode(errors="surrogatepass"))
    return f"is {size} bytes long, at most {limit} are allowed" if size > limit else ""


@_remembered
def dns_label(text: str) -> str:
    """RFC 1123 label."""
    if not _LABEL.fullmatch(text):
        return "must consist of lower case letters, digits and '-', and start and end with a letter or digit"
    return _length(text, MAX_LABEL)


@_remembered
def dns_subdomain(text: str) -> str:
    """RFC 1123 subdomain."""
    if not _SUBDOMAIN.fullmatch(text):
        return "must consist of lower case letters, digits, '-' and '.', each part starting and ending alphanumeric"
    return _length(text, MAX_SUBDOMAIN)


@_remembered
def driver_name(text: str) -> str:
    """A subdomain of at most 63 bytes, upper case allowed."""
    return _length(text, MAX_DRIVER) or dns_subdomain(text.lower())


@_remembered
def pool_name(text: str) -> str:
    """Subdomains joined by slashes (KEP-4381)."""
    too_long = _length(text, MAX_SUBDOMAIN)
    if too_long:
        return too_long
    wrong = any(dns_subdomain(part) for part in text.split("/"))
    return "must be one or more DNS subdomains, joined by slashes" if wrong else ""


@_remembered
def c_identifier(text: str) -> str:
    """An identifier of C of at most 32 bytes."""
    if not _IDENTIFIER.fullmatch(text):
        return "must be an identifier as in C: letters, digits and '_', not starting with a digit"
    return _length(text, MAX_IDENTIFIER)


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
    return f"has a domain that {reason}" if reason else c_identifier(name)


@_remembered
def fully_qualified_name(text: str) -> str:
    """A qualified name with its domain."""
    return qualified_name(text) or ("" if "/" in text else "must be a domain and a name separated by a slash")


def before_137(judge: Judge) -> Judge:
    """As API servers before Kubernetes 1.37 judge: they accept any name with more than one slash."""
    return lambda text: "" if text.count("/") > 1 else judge(text)


@_remembered
def label_name(text: str) -> str:
    """Key of a label, taint or condition: a word of at most 63 bytes, after a subdomain and a slash or alone."""
    domain, slash, name = text.rpartition("/")
    if slash and (not domain or "/" in domain or dns_subdomain(domain)):
        return "must have a DNS subdomain before its only slash"
    if not _WORD.fullmatch(name):
        return "must consist of letters, digits, '-', '_' and '.', and start and end with a letter or digit"
    return _length(name, MAX_LABEL)


def annotation_key(text: str) -> str:
    """As `label_name`, where case does not matter."""
    return label_name(text.lower())


@_remembered
def label_value(text: str) -> str:
    """A word of at most 63 bytes, or nothing."""
    if text and not _WORD.fullmatch(text):
        return "must consist of letters, digits, '-', '_' and '.', and start and end with a letter or digit"
    return _length(text, MAX_LABEL)


def extended_resource_name(text: str) -> str:
    """Name of a resource outside of kubernetes.io, such that ``requests.<name>`` can stand in a quota."""
    native = "/" not in text or "kubernetes.io/" in text
    if native or text.startswith("requests.") or label_name(f"requests.{text}"):
        return "must be an extended resource name: a domain other than kubernetes.io, a slash and a name"
    return ""


def node_resource_name(text: str) -> str:
    """A resource of nodes that a driver can manage (KEP-5517)."""
    if text in ("cpu", "memory") or text.startswith("hugepages-"):
        return ""
    return "must be cpu, memory or hugepages-<size>"


@_remembered
def uuid(text: str) -> str:
    """A UUID in its normal form."""
    return "" if _UUID.fullmatch(text) else "must be a UUID in lower case, xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"


@_remembered
def version(text: str) -> str:
    """A semantic version."""
    return "" if _VERSION.fullmatch(text) else "must be a version as semver.org 2.0.0 has it, e.g. 1.2.3"
