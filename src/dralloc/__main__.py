"""``python -m dralloc``: the command line."""

from dralloc.cli import main

main()
