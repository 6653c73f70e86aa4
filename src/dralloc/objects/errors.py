"""The error tree. Everything dralloc raises on purpose descends from `DrallocError`.

::

    DrallocError
    ├── InputError                 what was given cannot be used; one `Finding` per defect
    ├── ChoiceError                a word that is none of those known, e.g. a mode or a goal
    ├── QuantityError              text that is not a Kubernetes quantity
    ├── AllocationError            an attempt to allocate ended with an error, not with "does not fit"
    │   ├── FatalError             ends the attempt on every node
    │   │   └── ExpressionFailure  a selector that fails on a device
    │   └── NodeError              another node may still do
    ├── SnapshotError              a live cluster cannot be read
    ├── ApplyError                 an answer cannot be written to a live cluster
    ├── RedactionError             a name would be left in redacted objects
    ├── ModelError                 the exact model cannot be built or solved (int64 overflow, invalid options)
    └── CheckError                 an answer failed the independent checker: a defect of dralloc

What is wrong with a CEL selector is a `kubecel.CelError`, which becomes an `AllocationError` or a finding.

A message names the object, the field path and the rule. The command line prints it as it is, without a traceback.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from itertools import islice
from typing import Final

__all__ = [
    "AllocationError",
    "ApplyError",
    "CheckError",
    "ChoiceError",
    "DrallocError",
    "ExpressionFailure",
    "FatalError",
    "Finding",
    "InputError",
    "Level",
    "ModelError",
    "NodeError",
    "QuantityError",
    "RedactionError",
    "SnapshotError",
    "UnknownField",
    "did_you_mean",
    "file_of",
    "no_node",
]


class DrallocError(Exception):
    """Base of every error that dralloc raises on purpose.

    Examples
    --------
    >>> import dralloc
    >>> try:
    ...     dralloc.allocate(dralloc.example(), nodes=["node-9"])
    ... except dralloc.DrallocError as error:
    ...     print(error)
    node "node-9" does not exist: neither a Node object nor a slice names it, did you mean "node-1"?
    """


class Level(StrEnum):
    """The severity of a violation; the levels compare by `rank`."""

    ERROR = "error"
    """The API server refuses the object."""
    WARNING = "warning"
    """The object is accepted and will hurt."""
    INFO = "info"
    """Worth knowing."""

    @property
    def rank(self) -> int:
        """0 for the worst level."""
        return list(Level).index(self)

    def reaches(self, threshold: Level) -> bool:
        """Return whether this level is at least as bad as the other."""
        return self.rank <= threshold.rank


_DOCUMENT: Final = re.compile(r": document [0-9]+$")


def file_of(source: str) -> str:
    """Return the file of a source, which also names the document if there are several."""
    return _DOCUMENT.sub("", source)


@dataclass(frozen=True, slots=True)
class Finding:
    """A defect of the input, or a remark about it.

    Parameters
    ----------
    source
        Where the object was read: a file name or ``<stdin>``, with the document's number when there are several.
    subject
        Kind and name of the object, e.g. ``ResourceSlice gpu-0``; empty when the document is not an object.
    path
        Field path inside the object, e.g. ``spec.devices[3].name``; empty for the object as a whole.
    rule
        What is wrong, as a sentence without the location.
    line, column
        Where that is in the file, from 1; 0 where nobody has looked, or it cannot be told.
    """

    source: str
    subject: str
    path: str
    rule: str
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)

    @property
    def place(self) -> str:
        """Where it is: ``file:line:column``, or the source as far as lines are not known."""
        if not self.line:
            return self.source
        return f"{file_of(self.source)}:{self.line}:{self.column}"

    def __str__(self) -> str:
        return ": ".join(
            part
            for part in (self.place, self.subject, self.path, self.rule)
            if part
        )


class UnknownField(Finding):
    """A field that is in no version of the API that is read, and was left out."""


class InputError(DrallocError):
    """The given objects cannot be used. `findings` holds one entry per defect.

    Examples
    --------
    >>> import dralloc
    >>> from dralloc.objects.load import load_documents
    >>> try:
    ...     load_documents([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": 5}}], source="nodes.yaml")
    ... except dralloc.InputError as error:
    ...     print(error)
    nodes.yaml: Node 5: metadata.name: must be a string, not 5
    """

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))


_COMPARED: Final = 1000
"""With so many words one is compared: thousands of names may be missing among thousands."""

_LONGER: Final = 3
"""By so many characters what is meant may be longer or shorter."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``, did you mean "x"?`` for what is nearly one of the words that are known; else an empty text.

    Examples
    --------
    >>> did_you_mean("gup", ["gpu", "nic"])
    ', did you mean "gpu"?'
    """
    folded = word.casefold()
    candidates = {
        name.casefold(): name
        for name in islice(known, _COMPARED)
        if name != word
    }
    longer = [name for name in candidates if folded and _parts_of(name, folded)]
    near = [
        name for name in candidates if abs(len(name) - len(word)) <= _LONGER
    ]
    nearest = longer or get_close_matches(folded, near, n=1, cutoff=0.66)
    return f', did you mean "{candidates[nearest[0]]}"?' if nearest else ""


def _parts_of(name: str, word: str) -> bool:
    """Return whether a name only adds to a word: the suffixes of a pod to its owner's name, or a domain before it."""
    return name.startswith(f"{word}-") or name.endswith(f"/{word}")


def no_node(name: str, known: Iterable[str]) -> str:
    """Return the message for the name of a node that does not exist."""
    meant = did_you_mean(name, known)
    return f'node "{name}" does not exist: neither a Node object nor a slice names it{meant}'


class ChoiceError(DrallocError, ValueError):
    """A word is none of those known: ``there is no goal 'fast'; known goals: ...``.

    Examples
    --------
    >>> import dralloc
    >>> dralloc.allocate(dralloc.example(), goal="fast")
    Traceback (most recent call last):
    dralloc.objects.errors.ChoiceError: there is no goal 'fast'; known goals: fewest-nodes, fewest-devices, ...
    """

    def __init__(self, subject: str, word: str, choices: Iterable[str]) -> None:
        plural = (
            f"{subject[:-1]}ies" if subject.endswith("y") else f"{subject}s"
        )
        super().__init__(
            f"there is no {subject} {word!r}; known {plural}: {', '.join(choices)}"
        )


class QuantityError(DrallocError, ValueError):
    """A text is not a Kubernetes quantity."""


class AllocationError(DrallocError):
    """An attempt to allocate ended with an error (and not with "does not fit")."""


class FatalError(AllocationError):
    """The attempt ends here, for every node."""


class ExpressionFailure(FatalError):  # noqa: N818 - it is what happened, and an error only to first fit
    """An expression fails on a device. The same ones on other devices can be told in one line.

    Parameters
    ----------
    message
        All of it, for whoever is told of this one.
    what, owner, expression
        The part that the expression has, whose it is, and its text.
    driver, device
        Where it failed.
    reason
        Why, without advice.
    """

    def __init__(  # noqa: PLR0913 - one parameter for each part of the line
        self,
        message: str,
        *,
        what: str = "",
        owner: str = "",
        expression: str = "",
        driver: str = "",
        device: str = "",
        reason: str = "",
    ) -> None:
        super().__init__(message)
        self.what = what
        self.owner = owner
        self.expression = expression
        self.driver = driver
        self.device = device
        self.reason = reason


class NodeError(AllocationError):
    """The attempt ends for this node; another node may still do."""


class SnapshotError(DrallocError):
    """A live cluster cannot be read."""


class ApplyError(DrallocError):
    """An answer cannot be written to a live cluster: an earlier run did not end, nothing fences, ..."""


class RedactionError(DrallocError):
    """A name would be left in redacted objects."""


class ModelError(DrallocError):
    """The exact model cannot be built or solved."""


class CheckError(DrallocError):
    """An answer broke a rule of the problem it answers. Always a defect of dralloc, never of the input."""
