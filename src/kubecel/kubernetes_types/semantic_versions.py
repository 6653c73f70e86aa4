"""Semantic versions, as the library behind Kubernetes' CEL type (blang/semver) reads and compares them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, TypeAlias

__all__ = ["Semver", "normalize", "parse_semver"]

_NUMBER: Final = re.compile(r"[0-9]+", re.ASCII)
_WORD: Final = re.compile(r"[0-9A-Za-z-]+", re.ASCII)
_UINT64: Final = 2**64
_UINT64_DIGITS: Final = 20
_Part: TypeAlias = tuple[int, int, str]


@dataclass(frozen=True, slots=True, order=True)
class Semver:
    """A version. Build metadata is kept out of it: neither equality nor order looks at that.

    `release` is 1 without a pre-release and 0 with one, so that the fields compare in their order.
    """

    major: int
    minor: int
    patch: int
    release: int = 1
    pre: tuple[_Part, ...] = field(default=())

    def __str__(self) -> str:
        words = ".".join(word or str(number) for _, number, word in self.pre)
        return f"{self.major}.{self.minor}.{self.patch}" + (
            f"-{words}" if words else ""
        )


@lru_cache(maxsize=65536)
def parse_semver(text: str) -> Semver:
    """Read a version.

    Raises
    ------
    ValueError
        The text is not a version.
    """
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    without_build, *build = parts[2].split("+", 1)
    patch_text, *pre_release = without_build.split("-", 1)
    major = _number("Major", parts[0])
    minor = _number("Minor", parts[1])
    patch = _number("Patch", patch_text)
    if build and not all(_WORD.fullmatch(word) for word in build[0].split(".")):
        raise ValueError(f"Invalid build metadata {build[0]!r}")
    if not pre_release:
        return Semver(major, minor, patch)
    words = tuple(_pre(word) for word in pre_release[0].split("."))
    return Semver(major, minor, patch, release=0, pre=words)


def _number(name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(
            f"Invalid character(s) found in {name.lower()} number {text!r}"
        )
    if len(text) > 1 and text[0] == "0":
        raise ValueError(
            f"{name} number must not contain leading zeroes {text!r}"
        )
    if len(text) > _UINT64_DIGITS or (value := int(text)) >= _UINT64:
        raise ValueError(f"{name} number {text!r} is out of range")
    return value


def _pre(word: str) -> _Part:
    """A part of the pre-release: numbers come before words."""
    if _NUMBER.fullmatch(word):
        if len(word) > 1 and word[0] == "0":
            raise ValueError(
                f"Numeric PreRelease version must not contain leading zeroes {word!r}"
            )
        if len(word) > _UINT64_DIGITS or int(word) >= _UINT64:
            raise ValueError(f"PreRelease number {word!r} is out of range")
        return (0, int(word), "")
    if not _WORD.fullmatch(word):
        raise ValueError(f"Invalid character(s) found in prerelease {word!r}")
    return (1, 0, word)


def normalize(text: str) -> str:
    """Drop a leading ``v`` and leading zeroes, and fill up a missing minor and patch number.

    Raises
    ------
    ValueError
        A short version carries a pre-release or build metadata.
    """
    parts = [
        _strip_zeroes(part) for part in text.removeprefix("v").split(".", 2)
    ]
    if len(parts) < 3:
        if any(mark in parts[-1] for mark in "+-"):
            raise ValueError(
                "short version cannot contain PreRelease/Build meta data"
            )
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def _strip_zeroes(part: str) -> str:
    if len(part) <= 1:
        return part
    stripped = part.lstrip("0")
    if stripped and stripped[0] in "0123456789":
        return stripped
    return f"0{stripped}"
