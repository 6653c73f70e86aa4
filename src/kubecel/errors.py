"""The errors of this package.

::

    CelError
    ├── CelCompileError    an expression that does not parse or is not well typed
    ├── CelRuntimeError    an expression that fails on one device
    └── QuantitySyntaxError      a text that is not a Kubernetes quantity
"""

from __future__ import annotations

__all__ = ["CelCompileError", "CelError", "CelRuntimeError", "QuantitySyntaxError"]


class CelError(Exception):
    """Base of every error that this package raises on purpose."""


class CelCompileError(CelError):
    """An expression does not parse, is not well typed, or cannot give a bool. The message shows where."""


class CelRuntimeError(CelError):
    """An expression failed while it was evaluated for one device."""


class QuantitySyntaxError(CelError, ValueError):
    """A text is not a Kubernetes quantity."""
