"""Images that nodes have already. Source: ``framework/plugins/imagelocality/image_locality.go``."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Final

from dralloc.pods.kinds import PodKind
from dralloc.scheduling.cycle import Cycle
from dralloc.scheduling.nodes import NodeInfo
from dralloc.scheduling.plugins.plugin import MAX_SCORE, Plugin, Scoring
from dralloc.scheduling.snapshot import image_names

__all__ = ["IMAGE_LOCALITY"]

_MEBIBYTE: Final = 1024 * 1024
_LEAST: Final = 23 * _MEBIBYTE
_MOST: Final = 1000 * _MEBIBYTE
"""What images have to come to for a score at all, and for the best one, by container."""


def _score(cycle: Cycle, _: Sequence[NodeInfo]) -> Scoring:
    kind, worth = cycle.pod.kind, cycle.snapshot.images
    wanted = _images(kind)
    most = _MOST * len(kind.containers)

    def score(node: NodeInfo) -> int:
        here = image_names(node.node)
        sizes = sum(worth[image] for image in wanted if image in here) if here else 0
        return MAX_SCORE * (min(max(sizes, _LEAST), max(most, _LEAST)) - _LEAST) // (most - _LEAST)

    return Scoring(score)


def _images(kind: PodKind) -> list[str]:
    """The images of containers and of volumes, with their tags."""
    images = [one.image for one in kind.containers]
    images += [volume.image.reference for volume in kind.spec.volumes if volume.image is not None]
    return [_tagged(image) for image in images]


def _tagged(image: str) -> str:
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


IMAGE_LOCALITY: Final = Plugin("ImageLocality", score=_score, view=attrgetter("place"))
