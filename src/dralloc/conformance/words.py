"""The words of an error, as far as they can be the same."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["comparable"]

_SYNTAX_ERROR: Final = "Syntax error"
_NODE_BEFORE: Final = re.compile(r"^node \S+: ")
_DEFAULT_NAMESPACE: Final = "claim default/"


def comparable(message: str) -> str:
    """An error without what depends on the recorder or on the parser.

    That is the node that recorded batches put before it, the default namespace, which upstream's own tables leave out,
    and the rest of a syntax error, where upstream lists the tokens of its parser generator.
    """
    head, found, _ = _NODE_BEFORE.sub("", message).replace(_DEFAULT_NAMESPACE, "claim ").partition(_SYNTAX_ERROR)
    return head + found
