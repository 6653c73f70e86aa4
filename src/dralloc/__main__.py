"""``python -m dralloc``: the command line."""

from __future__ import annotations

from dralloc.cli import main

__all__ = ["main"]

if __name__ == "__main__":
    main()
