"""``dralloc plan headroom``."""

from __future__ import annotations

from typing import Annotated

import typer

import dralloc
from dralloc.cli.console import Answers
from dralloc.cli.options import Nodes, Paths, Search
from dralloc.cli.plan.wished import Wished
from dralloc.errors import DrallocError

__all__ = ["headroom_command"]


def headroom_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    wished: Wished,
    points: Annotated[
        int, typer.Option(min=0, metavar="N", help="Most points to show of what fits together; 0 shows all.")
    ] = 25,
    node: Nodes = None,
    *,
    search: Search,
    session: Answers,
) -> None:
    """Say how many more of a claim fit beside what is allocated; of two or three claims, also together."""
    wishes = wished.wishes()
    if not wishes:
        raise DrallocError("say what is wanted: --claim, --template or --pod NAMESPACE/NAME")
    rules, options = search.keywords(), search.options
    cluster = session.read(paths, search)
    with session.busy("looking for headroom"):
        found = dralloc.headroom(cluster, *wishes, nodes=node or (), points=points or None, options=options, **rules)
    session.answer(found)
