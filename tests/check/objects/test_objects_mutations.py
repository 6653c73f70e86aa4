"""Right answers with one thing changed: those that break a rule are refused, and no others."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, islice, permutations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from brute_objects import LAX, Arrival, Referee
from dralloc.check.objects import Binding, Filters, Promise, violations
from dralloc.compile.compiler import compile_cluster
from dralloc.objects.cluster import Cluster
from dralloc.objects.names import ClaimKey
from dralloc.solve.first_fit import first_fit
from dralloc.solve.scheduler import schedule
from dralloc.solve.scheduler.profile import Profile
from examples import INDEPENDENT, examples
from object_strategies import ruled_clusters
from wire import Json, cluster

LOG = logging.getLogger(__name__)
Bindings = tuple[Binding, ...]
LAX_FILTERS = frozenset({"NodeResourcesFit"})

thoroughly = settings(
    deadline=None,
    database=None,
    max_examples=examples(40),
    backend=INDEPENDENT,
    suppress_health_check=list(HealthCheck),
)


def test_all_mutations_that_break_a_rule_are_refused_and_no_others() -> None:
    tried: Counter[tuple[str, bool]] = Counter()

    @thoroughly
    @given(ruled_clusters(), st.booleans(), st.integers(0, 9), lax_pods())
    def mutate(
        ruled: list[Json], in_order: bool, seed: int, lax: frozenset[int]
    ) -> None:
        objects = list(with_lax(ruled, lax if in_order else frozenset()))
        given, referee = cluster(objects), Referee(objects, in_order)
        answer = scheduled(given, seed) if in_order else placed(given)
        if not is_right(referee, answer):
            # Whether the searches are right is another question.
            return
        promise = Promise(
            [node.name for node in given.nodes],
            in_order=in_order,
            filters={LAX: Filters(off=LAX_FILTERS)},
        )
        assert violations(given, answer, promise) == []
        for kind, mutant in mutants(given, answer, in_order=in_order):
            keeps_rules = is_right(referee, mutant)
            messages = violations(given, mutant, promise)
            assert (messages == []) == keeps_rules, (kind, mutant, messages)
            tried[kind, keeps_rules] += 1

    mutate()
    LOG.info(
        "mutations of bindings, and whether they keep the rules: %s",
        dict(sorted(tried.items())),
    )
    breaking, harmless = (
        sum(n for (_, keeps), n in tried.items() if keeps is kind)
        for kind in (False, True)
    )
    assert min(breaking, harmless) >= 2 * examples(40)


def lax_pods() -> st.SearchStrategy[frozenset[int]]:
    """The pods, by position, whose scheduler does not look at what nodes have left; mostly none."""
    return st.just(frozenset[int]()) | st.frozensets(st.integers(0, 5))


def with_lax(objects: list[Json], lax: frozenset[int]) -> Iterator[Json]:
    """The objects, with these pods for the lax scheduler."""
    position = 0
    for document in objects:
        if document["kind"] != "Pod":
            yield document
            continue
        spec = document["spec"]
        yield (
            {**document, "spec": {**spec, "schedulerName": LAX}}
            if position in lax
            else document
        )
        position += 1


def is_right(referee: Referee, answer: Bindings) -> bool:
    return referee.accepts(
        [
            Arrival((binding.pod.namespace, binding.pod.name), binding.node)
            for binding in answer
        ]
    )


def placed(given: Cluster) -> Bindings:
    """What first fit places."""
    compiled = compile_cluster(given)
    solution = first_fit(compiled.whole)
    demands, nodes = compiled.problem.demands, compiled.problem.nodes
    return tuple(
        Binding(demands[placement.demand].key, nodes[placement.node].name)
        for placement in solution.placements
    )


def scheduled(given: Cluster, seed: int) -> Bindings:
    """What the scheduler binds, in order."""
    return tuple(
        Binding(*binding)
        for binding in schedule(
            compile_cluster(given),
            (Profile(), Profile(LAX, no_filters=LAX_FILTERS)),
            seed=seed,
        ).bindings
    )


def mutants(
    given: Cluster, answer: Bindings, *, in_order: bool
) -> Iterator[tuple[str, Bindings]]:
    """The answer with one change of each kind, wherever it can be made."""
    nodes = [node.name for node in given.nodes]
    for position, binding in enumerate(answer):
        before, after = answer[:position], answer[position + 1 :]
        yield "left out", before + after
        for node in nodes:
            if node != binding.node:
                yield "moved", (*before, binding._replace(node=node), *after)
    if answer:
        yield "twice", (*answer, answer[0])
    for first, second in combinations(range(len(answer)), 2):
        yield "exchanged", exchanged(answer, first, second)
    for key in waiting(given, answer, in_order=in_order):
        for node in nodes:
            yield "added", (*answer, Binding(key, node))
    if in_order and len(answer) > 1:
        # Every other order of those that came last.
        start = max(0, len(answer) - 4)
        for order in islice(permutations(answer[start:]), 1, None):
            yield "order", (*answer[:start], *order)
        yield "order", answer[::-1]


def exchanged(answer: Bindings, first: int, second: int) -> Bindings:
    """Two pods on each other's nodes."""
    changed = list(answer)
    changed[first] = answer[first]._replace(node=answer[second].node)
    changed[second] = answer[second]._replace(node=answer[first].node)
    return tuple(changed)


def waiting(
    given: Cluster, answer: Sequence[Binding], *, in_order: bool
) -> Iterator[ClaimKey]:
    """The pods without a node; in a batch, those with claims."""
    there = {binding.pod for binding in answer}
    for pod in given.pods:
        if (
            pod.key not in there
            and not pod.spec.node_name
            and (in_order or given.pod_claims(pod))
        ):
            yield pod.key
