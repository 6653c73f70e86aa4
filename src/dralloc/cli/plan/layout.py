"""``dralloc plan partition-layout``."""

from __future__ import annotations

import dralloc
from dralloc.cli.answers import read, show_answer
from dralloc.cli.console import Session, features_from, guarded
from dralloc.cli.options import (
    AsJson,
    FeatureSwitches,
    KubernetesVersion,
    Paths,
    Quiet,
    Seed,
    Strict,
    TimeLimit,
    Workers,
)
from dralloc.cli.plan.wished import Claims, Pods, Templates, wishes_from

__all__ = ["layout_command"]


def layout_command(  # noqa: PLR0913 - one parameter per option
    paths: Paths,
    claim: Claims = None,
    template: Templates = None,
    pod: Pods = None,
    as_json: AsJson = False,
    time_limit: TimeLimit = None,
    seed: Seed = 0,
    workers: Workers = 1,
    kubernetes: KubernetesVersion = None,
    feature: FeatureSwitches = None,
    strict: Strict = False,
    quiet: Quiet = False,
) -> None:
    """Say which fixed partitions per GPU serve some claims best, or all that is pending, and what that loses."""
    with guarded():
        session = Session(quiet=quiet)
        wishes = wishes_from(claim, template, pod)
        features = features_from(feature, kubernetes)
        cluster = read(session, paths, strict=strict)
        with session.busy("looking for layouts"):
            found = dralloc.partition_layout(
                cluster,
                *wishes,
                features=features,
                strict=strict,
                options=dralloc.Options(time_limit=time_limit, seed=seed, workers=workers),
            )
        show_answer(session, found, as_json=as_json)
