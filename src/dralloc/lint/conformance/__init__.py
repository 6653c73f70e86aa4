"""Recorded answers of upstream, asked again: does dralloc give the same ones.

Cases are read in `dralloc.lint.conformance.cases`; those of the allocator are asked again in
`dralloc.lint.conformance.allocation_answers`, those of CEL in `dralloc.lint.conformance.cel_answers`. Here are recorded
runs of kube-scheduler, replayed attempt by attempt, and cycles in which it tried a group of pods.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import chain, groupby, islice, product
from typing import Any, Final

from dralloc.ask.answer_checks import check_bindings
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.write import allocations
from dralloc.lint.conformance.allocation_answers import (
    name_shares,
    run_first_fit,
    run_optimal,
)
from dralloc.lint.conformance.cases import (
    AllocationCase,
    Json,
    read_allocation_case,
    read_lines,
)
from dralloc.lint.conformance.cel_answers import run_cel
from dralloc.lint.conformance.differences import first_difference
from dralloc.lint.conformance.outcomes import CaseOutcome
from dralloc.objects.api import Node
from dralloc.objects.errors import CheckError, Finding, InputError
from dralloc.objects.features import ALL_FEATURES
from dralloc.objects.limits import LIMITS
from dralloc.objects.load import load_documents
from dralloc.objects.load.yaml_text import documents_of
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import parse_quantity
from dralloc.problem import NodeIndex, Numbered, indices, numbered
from dralloc.solve.scheduler import Attempt, Profile, Scheduler, profiles_of
from dralloc.solve.scheduler.groups import (
    GroupTrial,
    PlacementError,
    best_trials,
    find_groups,
    placement_scores,
    placements_of,
)
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.plugin import Places

__all__ = [
    "AllocationCase",
    "CaseOutcome",
    "Json",
    "read_allocation_case",
    "read_lines",
    "run_cel",
    "run_first_fit",
    "run_optimal",
    "run_scheduler",
]

# ----------------------------------------------------------------------------
# Attempts of the scheduler in the form of recorded ones, and in what they differ.

_SCORED: Final = frozenset({"scores", "totals"})


def _answer_of(recorded: Json, attempt: Attempt) -> dict[str, Any]:
    """Put an attempt into the form of a recorded one."""
    names = [node.name for node in attempt.feasible]
    scores: dict[str, dict[str, int]] = {}
    totals: dict[str, float] = {}
    # kube-scheduler does not score a node that is the only feasible one.
    if len(names) > 1:
        scores = _scores_by_node(names, attempt.scores)
        totals = dict(zip(names, attempt.totals.tolist(), strict=True))
    answer: dict[str, Any] = {
        "pod": recorded["pod"],
        "outcome": "bound" if names else "unschedulable",
        "scores": scores,
        "totals": totals,
        "best": [node.name for node in attempt.best],
        "message": attempt.message,
    }
    if names:
        answer |= {"evaluated": attempt.evaluated, "feasible": len(names)}
    return answer


def _scores_by_node(
    names: Iterable[str], scores: Mapping[str, Any]
) -> dict[str, dict[str, int]]:
    """Turn columns by plugin into rows by node."""
    rows: dict[str, dict[str, int]] = {}
    for position, name in enumerate(names):
        rows[name] = {
            plugin: int(column[position]) for plugin, column in scores.items()
        }
    return rows


def _node_of(recorded: Json, attempt: Attempt) -> NodeInfo:
    """Return the node of a pod that was feasible: the recorded one, or that of the best score.

    Equal scores are decided as recorded: the first of the nodes whose scores were written down.
    """
    names = [recorded["node"]] if recorded["node"] else list(recorded["totals"])
    nodes = [
        node for name in names for node in attempt.feasible if node.name == name
    ]
    positions = {
        node: position for position, node in enumerate(attempt.feasible)
    }
    order = [positions[node] for node in nodes] or list(positions.values())
    scores = {
        plugin: column[order] for plugin, column in attempt.scores.items()
    }
    return Attempt(
        attempt.pod,
        [attempt.feasible[position] for position in order],
        scores=scores,
    ).chosen


def _difference_of(recorded: Json, answer: Json) -> str:
    """Return in what an answer differs from what was recorded of an attempt; empty if it does not.

    Without an outcome, which came later or not at all, it is the nodes with their scores that are compared.
    """
    compared = {
        key: answer[key]
        for key in answer
        if recorded["outcome"] or key in _SCORED
    }
    difference = first_difference(
        {key: recorded.get(key, value) for key, value in compared.items()},
        compared,
    )
    if (
        not difference
        and recorded["outcome"] == "bound"
        and recorded["node"] not in answer["best"]
    ):
        difference = f"best: expected {recorded['node']} among them, got {answer['best']}"
    return difference


# ----------------------------------------------------------------------------
# Recorded cycles in which kube-scheduler tried a group of pods, replayed.
#
# Of an attempt inside of a cycle, ``cycle`` is its number, ``group`` the PodGroup and
# ``placement`` the domain whose nodes were tried; empty for all nodes. The outcome of
# a pod stands at its attempt in the domain that was taken, or in the first. A pod
# that was feasible while its group was not is "unschedulable", with its scores.

Replayed = tuple[Json, dict[str, Any], str]
"""A recorded attempt, the answer, and in what they differ."""


class RecordedCycle:
    """One cycle of a group."""

    def __init__(
        self,
        scheduler: Scheduler,
        compiled: CompiledCluster,
        trials: Sequence[Json],
    ) -> None:
        self._scheduler = scheduler
        self._trials = trials
        groups = find_groups(compiled.cluster, compiled.problem.features)
        self._group = groups[ClaimKey.parse(trials[0]["pod"])]

    @cached_property
    def _homes(self) -> Mapping[ClaimKey, str]:
        return {
            pod.key: node.name
            for node in self._scheduler.snapshot.nodes
            for pod in node.pods
        }

    def replayed(
        self, in_flight: Callable[[Json], Set[ClaimKey]], scores: Sequence[Json]
    ) -> Iterator[Replayed]:
        """Yield every attempt; the last one also tells in what the cycle as a whole differs.

        Parameters
        ----------
        scores
            The recorded scores by domain and plugin, if there are any.
        """
        parts = self._parts()
        domain_trials: dict[str, GroupTrial] = {}
        replayed: list[Replayed] = []
        for placement, trials in groupby(
            self._trials, key=lambda attempt: str(attempt["placement"])
        ):
            attempts, nodes = self._tried(
                list(trials), parts.get(placement), in_flight, replayed
            )
            domain_trials[placement] = GroupTrial(
                parts.get(placement), attempts, nodes
            )
        recorded, answer, difference = replayed.pop()
        yield from replayed
        yield (
            recorded,
            answer,
            difference or self._difference(set(parts), domain_trials, scores),
        )

    def bound(self) -> Iterator[tuple[ClaimKey, NodeInfo]]:
        """Yield the pods that were bound, with their nodes."""
        for recorded in self._trials:
            if recorded["outcome"] == "bound":
                yield (
                    ClaimKey.parse(recorded["pod"]),
                    self._scheduler.snapshot.by_name[recorded["node"]],
                )

    def _parts(self) -> Mapping[str, Places | None]:
        try:
            return placements_of(
                self._group, self._homes, self._scheduler.snapshot
            )
        except PlacementError:
            return {}

    def _tried(
        self,
        trials: Sequence[Json],
        within: Places | None,
        in_flight: Callable[[Json], Set[ClaimKey]],
        replayed: list[Replayed],
    ) -> tuple[Sequence[Attempt], Mapping[ClaimKey, NodeInfo]]:
        attempts: list[Attempt] = []
        nodes: dict[ClaimKey, NodeInfo] = {}
        for recorded in trials:
            key = ClaimKey.parse(recorded["pod"])
            attempts.append(
                self._scheduler.attempt(
                    key, in_flight=in_flight(recorded), within=within
                )
            )
            answer = _answer_of(recorded, attempts[-1])
            replayed.append(
                (
                    recorded,
                    answer,
                    _difference_of(_as_tried(recorded, answer), answer),
                )
            )
            if attempts[-1].feasible:
                nodes[key] = _node_of(recorded, attempts[-1])
                self._scheduler.bind(key, nodes[key])
        # A trial leaves nothing behind: every domain is tried on the same cluster.
        for key, node in reversed(nodes.items()):
            self._scheduler.unbind(key, node)
        return attempts, nodes

    def _difference(
        self,
        domains: Set[str],
        domain_trials: Mapping[str, GroupTrial],
        scores: Sequence[Json],
    ) -> str:
        """Return in what the cycle differs beside its attempts: its domains, their scores, and which is the best."""
        if domains != domain_trials.keys():
            return f"placements: expected {sorted(domain_trials)}, got {sorted(domains)}"
        running = sum(key in self._homes for key in self._group.pods)
        names = {id(trial): name for name, trial in domain_trials.items()}
        best = best_trials(
            self._scheduler, self._group, list(domain_trials.values()), running
        )
        best_domains = {names[id(trial)] for trial in best}
        recorded_domains = {
            str(recorded["placement"])
            for recorded in self._trials
            if recorded["outcome"] == "bound"
        }
        # Which of several best domains is taken is chance, but one is if there is any.
        is_among_best = recorded_domains <= best_domains
        if not is_among_best or bool(recorded_domains) != bool(best_domains):
            return f"placement: expected {sorted(recorded_domains)}, got one of {sorted(best_domains)}"
        for recorded_scores in scores:
            rated = placement_scores(
                self._scheduler,
                [domain_trials[name] for name in recorded_scores],
                running,
            )
            return first_difference(
                recorded_scores, _scores_by_node(recorded_scores, rated)
            )
        return ""


def _as_tried(recorded: Json, answer: Json) -> Json:
    """Return the recorded attempt in so far as it says how the pod fared, and not its group."""
    if answer["outcome"] == "bound":
        return {**recorded, "outcome": "bound", "message": ""} | (
            {} if recorded["node"] else {"node": answer["best"][0]}
        )
    return (
        recorded
        if "message" in recorded
        else {**recorded, "outcome": "unschedulable"}
    )


# ----------------------------------------------------------------------------
# Recorded runs of kube-scheduler, replayed.
#
# At each attempt, with what the recorded attempts before have left: the feasible
# nodes, the scores by plugin, the totals, the devices and the message must be the
# recorded ones, and the node must be among the best. (Which of the best it is depends
# on the order in which the scheduler heard of the nodes, which is not recorded. Nor
# is when the API server heard of an allocation: that a claim is "in the process of
# being allocated" is taken from the recorded message, if an attempt before has
# decided about the claim.)

_MOST_ORDERS: Final = 64
_RECORDED: Final = ALL_FEATURES.switched({"DRAPreemption": False})
"""No scheduler that was recorded has it (KEP-5690)."""
_PROFILE: Final = "scheduler"
_IN_FLIGHT: Final = "is in the process of being allocated"


def run_scheduler(run: Json) -> CaseOutcome:
    """Replay a run.

    In which order the scheduler heard of the nodes is not in a recording. It matters where nodes disagree on the size
    of an image: then the run passes if it does for one of the sizes.

    Parameters
    ----------
    run
        ``objects`` before the scheduler started, its ``config``, its ``attempts``, and ``claims`` with their status in
        the end.
    """
    documents, failure = documents_of(
        str(run["config"]).encode(), "config", LIMITS.aliases
    )
    if failure is not None or not documents:
        raise InputError(
            [Finding(run["name"], "config", "", failure or "is empty")]
        )
    compiled = compile_cluster(
        load_documents(run["objects"], source=run["name"]),
        features=_RECORDED,
    )
    profiles = profiles_of(documents[0], "config")
    replays = []
    for order in islice(_orders(compiled.cluster.nodes), _MOST_ORDERS):
        replays.append(_Replay(run, compiled, profiles, order))
        if not replays[-1].difference:
            break
    longest = max(replays, key=lambda replay: replay.agreed)
    difference = longest.difference or _broken_rules(run, compiled, profiles)
    return CaseOutcome(run["name"], _PROFILE, longest.attempts, difference)


def _broken_rules(
    run: Json, compiled: CompiledCluster, profiles: Sequence[Profile]
) -> str:
    """Return the violations that the checker of objects finds in the recorded bindings; empty if there are none."""
    bindings = [
        (ClaimKey.parse(recorded["pod"]), recorded["node"])
        for recorded in run["attempts"]
        if recorded["outcome"] == "bound"
    ]
    try:
        check_bindings(compiled, profiles, bindings)
    except CheckError as error:
        return f"bindings: {error}"
    return ""


def _orders(nodes: Numbered[NodeIndex, Node]) -> Iterator[Sequence[NodeIndex]]:
    """Yield orders of the nodes such that for each image each of its sizes is once the first."""
    firsts: dict[str, dict[int, NodeIndex]] = {}
    for node_index, node in numbered(nodes):
        for image in node.status.images:
            for name in image.names:
                firsts.setdefault(name, {}).setdefault(
                    image.size_bytes, node_index
                )
    disputed = [sizes.values() for sizes in firsts.values() if len(sizes) > 1]
    for chosen in product(*disputed):
        yield list(dict.fromkeys(chain(chosen, indices(nodes))))


class _Replay:
    """A pass over the attempts. ``difference`` is the first one, ``agreed`` the number of attempts before it."""

    def __init__(
        self,
        run: Json,
        compiled: CompiledCluster,
        profiles: Sequence[Profile],
        order: Sequence[NodeIndex],
    ) -> None:
        self._run = run
        self._compiled = compiled
        self._scheduler = Scheduler(compiled, profiles, order)
        self._decided: set[ClaimKey] = set()
        self._undecided: dict[ClaimKey, NodeInfo] = {}
        self.agreed = 0
        self.difference = ""
        self.attempts = list(self._replay_all(run["attempts"]))
        for key in list(self._undecided):
            self._give_up(key)
        self.difference = self.difference or self._device_difference()

    def _replay_all(self, attempts: Sequence[Json]) -> Iterator[dict[str, Any]]:
        """Replay the attempts; pods of groups come together, cycle by cycle."""
        for cycle, together in groupby(
            attempts, key=lambda recorded: recorded.get("cycle")
        ):
            if cycle is None:
                yield from map(self._replay, together)
            else:
                yield from self._replay_cycle(list(together))

    def _replay_cycle(self, trials: Sequence[Json]) -> Iterator[dict[str, Any]]:
        """Replay a cycle of a group: every pod in every part of the nodes, and then the answer as it is recorded."""
        cycle = RecordedCycle(self._scheduler, self._compiled, trials)
        scores = [
            placement["scores"]
            for placement in self._run.get("placements", ())
            if placement["cycle"] == trials[0]["cycle"]
        ]
        for recorded, answer, difference in cycle.replayed(
            self._in_flight, scores
        ):
            self._compare(recorded["pod"], difference)
            yield answer
        for key, node in cycle.bound():
            self._scheduler.bind(key, node)
            self._decided.update(self._compiled.cluster.claims_of_pods[key])

    def _in_flight(self, recorded: Json) -> Set[ClaimKey]:
        """Return the claims of which the recorded message says that others are being given them."""
        return {
            claim
            for claim in self._decided
            if f"claim {claim} {_IN_FLIGHT}" in recorded.get("message", "")
        }

    def _replay(self, recorded: Json) -> dict[str, Any]:
        """Replay an attempt, after those before as they are recorded.

        One without an outcome was given up while its pod was being bound. The pod keeps what it was to get at most
        until it is tried again; how long is not recorded, so it keeps it for as long as that agrees. In the last
        attempt the recording may have ended: what is there of it then says nothing.
        """
        key = ClaimKey.parse(recorded["pod"])
        self._give_up(key)
        attempt, answer, difference = self._tried(key, recorded)
        for undecided in list(self._undecided) if difference else ():
            self._give_up(undecided)
            attempt, answer, difference = self._tried(key, recorded)
            if not difference:
                break
        self._compare(str(key), difference)
        node = self._scheduler.snapshot.by_name.get(recorded["node"])
        if not recorded["outcome"] and attempt.feasible:
            node = self._undecided[key] = _node_of(recorded, attempt)
        if node is not None and node in attempt.feasible:
            self._scheduler.bind(key, node)
            self._decided.update(self._compiled.cluster.claims_of_pods[key])
        return answer

    def _compare(self, pod: str, difference: str) -> None:
        """Count an attempt that agrees, or note the first that does not; nothing counts after that."""
        if self.difference:
            return
        if difference:
            self.difference = f"attempts[{self.agreed}] of {pod}: {difference}"
        else:
            self.agreed += 1

    def _give_up(self, key: ClaimKey) -> None:
        """Take back what a pod was to get that was being bound, if it was."""
        node = self._undecided.pop(key, None)
        if node is not None:
            self._scheduler.unbind(key, node)

    def _tried(
        self, key: ClaimKey, recorded: Json
    ) -> tuple[Attempt, dict[str, Any], str]:
        """Try a pod as things are: the attempt, the answer, and in what that differs from what was recorded."""
        is_cut = (
            not recorded["outcome"] and recorded is self._run["attempts"][-1]
        )
        attempt = self._scheduler.attempt(
            key, in_flight=self._in_flight(recorded)
        )
        scored = tuple(recorded["totals"])
        sampled = (
            len(scored)
            == len(attempt.feasible)
            < len(self._scheduler.snapshot.nodes)
        )
        if sampled and {node.name for node in attempt.feasible} != set(scored):
            # Enough nodes are feasible, and which of them are looked at depends on the order of the nodes.
            attempt = self._scheduler.attempt(key, scored)
            recorded = {
                name: value
                for name, value in recorded.items()
                if name != "evaluated"
            }
        answer = _answer_of(recorded, attempt)
        return (
            attempt,
            answer,
            "" if is_cut else _difference_of(recorded, answer),
        )

    def _device_difference(self) -> str:
        """Enter the devices of bound pods into the attempts, and compare them."""
        written = allocations(self._compiled, self._scheduler.solution)
        first = ""
        for attempt in self.attempts:
            if attempt["outcome"] != "bound":
                continue
            pod = ClaimKey.parse(attempt["pod"])
            replayed = {
                self._recorded_name(claim, pod): _as_served(
                    written[claim].wire_form()
                )
                for claim in self._compiled.cluster.claims_of_pods[pod]
                if claim in written
            }
            recorded = {
                name: _comparable(self._run["claims"].get(name, {}))
                for name in replayed
            }
            # Share IDs are random on both sides: they are named by order of appearance.
            name_shares(list(replayed.values()))
            name_shares(list(recorded.values()))
            attempt["results"] = {
                name: allocation["devices"].get("results", [])
                for name, allocation in replayed.items()
            }
            first = first or first_difference(
                recorded, replayed, f"claims of {pod}"
            )
        return first

    def _recorded_name(self, claim: ClaimKey, pod: ClaimKey) -> str:
        """Return the name under which a claim is recorded.

        kube-scheduler makes the claims for extended resources itself, under random names: such a claim is the
        recorded one that nobody gave, in the pod's namespace, and that is reserved for the pod.
        """
        claims: Mapping[str, Json] = self._run["claims"]
        if str(claim) in claims:
            return str(claim)
        given_claims = {
            str(given_claim.key)
            for given_claim in self._compiled.cluster.claims
        }
        for name, status in claims.items():
            users = {user["name"] for user in status.get("reservedFor", ())}
            is_in_namespace = name.startswith(f"{pod.namespace}/")
            if (
                name not in given_claims
                and is_in_namespace
                and pod.name in users
            ):
                return name
        return str(claim)


def _comparable(status: Json) -> dict[str, Any]:
    """Return a recorded allocation without its time, with its configuration in the words of later releases.

    Up to 1.36, an entry of a class names every request that it is for, and an entry of a claim stands there once for
    each request that it names. Later releases name none where it is for all, and repeat nothing.
    """
    allocation = {
        key: value
        for key, value in status.get("allocation", {}).items()
        if key != "allocationTimestamp"
    }
    answer: dict[str, Any] = {"devices": {}, **allocation}
    if config := answer["devices"].get("config"):
        served = {result["request"] for result in answer["devices"]["results"]}
        distinct: dict[str, Json] = {}
        for entry in config:
            is_for_all = _covers(entry, served)
            terse = {
                key: value
                for key, value in entry.items()
                if not (key == "requests" and is_for_all)
            }
            distinct[json.dumps(terse, sort_keys=True)] = terse
        answer["devices"] = {
            **answer["devices"],
            "config": list(distinct.values()),
        }
    return answer


def _as_served(allocation: Json) -> dict[str, Any]:
    """Return an allocation as the API server serves it: each amount is read, and written in its shortest form."""
    for result in allocation["devices"].get("results", ()):
        amounts = result.get("consumedCapacity", {})
        amounts.update(
            (name, str(parse_quantity(amount)))
            for name, amount in amounts.items()
        )
    return dict(allocation)


def _covers(entry: Json, served: Set[str]) -> bool:
    named = set(entry.get("requests", ()))
    return all(
        request in named or request.partition("/")[0] in named
        for request in served
    )
