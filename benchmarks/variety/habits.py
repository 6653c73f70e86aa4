"""What a varied cluster is like as a whole: which hardware it has, and how often its pods do what."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final, NamedTuple

__all__ = ["Habits", "habits_of"]

_PRIORITIES: Final = (
    (0,),
    (0, 10),
    (0, 5, 50, 100),
    (0, 1, 2, 3, 4, 5),
)


class Habits(NamedTuple):
    """What is drawn once for a cluster; parts are from 0 to 1.

    Parameters
    ----------
    hardware
        The kinds of hardware of its nodes.
    shares
        How often a node has each of them.
    used
        The part of whole devices that is in use.
    demand
        What is asked for, as a part of what is free.
    counts_cpu
        Whether nodes and pods say what they have and need of CPU and memory.
    rack_nodes
        How many nodes a rack has.
    priorities
        The priorities of pods.
    keep_apart
        The part of pods that keep away from others of their app, or stay with them.
    spread
        The part of pods that are spread over nodes or zones.
    in_gangs
        How often pods come as a gang.
    share
        The part of pods that share their claim with others.
    ask_twice
        The part of pods with two claims.
    choose
        The part of claims with alternatives, where a kind of hardware has some.
    use_ports
        The part of pods that need a port of their node.
    watch
        The part of pods with a claim for admin access.
    use_fabric
        The part of pods that want a device of their rack.
    bare
        The part of nodes without devices.
    without_claims
        Pods without claims, as a part of all others.
    use_licences
        The part of pods that take seats of a licence of the whole cluster.
    use_plugins
        The part of pods that want what a device plugin offers on some nodes.
    by_name
        The part of pods that ask for GPUs by the name of an extended resource (KEP-5004), where there are whole GPUs.
    in_blocks
        The part of nodes that can be used as blocks of hosts, and about as many pods that want them.
    started
        How often a gang has members that run already.
    """

    hardware: Sequence[str]
    shares: Sequence[float]
    used: float
    demand: float
    counts_cpu: bool
    rack_nodes: int
    priorities: Sequence[int]
    keep_apart: float
    spread: float
    in_gangs: float
    share: float
    ask_twice: float
    choose: float
    use_ports: float
    watch: float
    use_fabric: float
    bare: float
    without_claims: float
    use_licences: float
    use_plugins: float
    by_name: float
    in_blocks: float
    started: float


def habits_of(hardware: Sequence[str], random: Random) -> Habits:
    """Draw what a cluster is like. Most habits are often missing, so that each of them meets few others, too."""
    kinds = random.sample(list(hardware), random.randint(2, 5))
    return Habits(
        hardware=kinds,
        shares=[random.uniform(0.2, 1.2) for _ in kinds],
        used=random.choice((0.0, 0.2, 0.5)),
        demand=random.choice((0.8, 1.2, 1.6)),
        counts_cpu=random.random() < 0.8,
        rack_nodes=random.choice((4, 8, 16)),
        priorities=random.choice(_PRIORITIES),
        keep_apart=random.choice((0.0, 0.0, 0.03, 0.15)),
        spread=random.choice((0.0, 0.0, 0.05, 0.2)),
        in_gangs=random.choice((0.0, 0.1, 0.3)),
        share=random.choice((0.0, 0.0, 0.05)),
        ask_twice=random.choice((0.0, 0.1, 0.3)),
        choose=random.choice((0.0, 0.2, 0.5)),
        use_ports=random.choice((0.0, 0.0, 0.1)),
        watch=random.choice((0.0, 0.0, 0.03)),
        use_fabric=random.choice((0.0, 0.0, 0.1)),
        bare=random.choice((0.0, 0.0, 0.25)),
        without_claims=random.choice((0.0, 0.0, 0.3)),
        use_licences=random.choice((0.0, 0.0, 0.1)),
        use_plugins=random.choice((0.0, 0.0, 0.1)),
        by_name=random.choice((0.0, 0.0, 0.2)),
        in_blocks=random.choice((0.0, 0.0, 0.5)),
        started=random.choice((0.0, 0.3)),
    )
