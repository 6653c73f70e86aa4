"""Recorded runs of kube-scheduler, replayed.

At each attempt, with what the recorded attempts before have left: the feasible nodes, the scores by plugin, the totals,
the devices and the message must be the recorded ones, and the node must be among the best. (Which of the best it is
depends on the order in which the scheduler heard of the nodes, which is not recorded. Nor is when the API server
heard of an allocation: that a claim is "in the process of being allocated" is taken from the recorded message, if an
attempt before has decided about the claim.)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import chain, groupby, islice, product
from typing import Any, Final

from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.write import allocations
from dralloc.lint.conformance.allocation import CaseOutcome, name_shares
from dralloc.lint.conformance.attempts import answer_of, difference_of, taken
from dralloc.lint.conformance.cases import Json
from dralloc.lint.conformance.difference import first_difference
from dralloc.lint.conformance.group_cycles import RecordedCycle
from dralloc.objects.api import Node
from dralloc.objects.errors import Finding, InputError
from dralloc.objects.limits import LIMITS
from dralloc.objects.load import load_documents
from dralloc.objects.load.documents import documents_of
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import parse_quantity
from dralloc.solve.scheduler import Attempt, Profile, Scheduler, profiles_of
from dralloc.solve.scheduler.nodes import NodeInfo

__all__ = ["run_scheduler"]

_MOST_ORDERS: Final = 64
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
        raise InputError([Finding(run["name"], "config", "", failure or "is empty")])
    compiled = compile_cluster(load_documents(run["objects"], source=run["name"]))
    profiles = profiles_of(documents[0], "config")
    replays = []
    for order in islice(_orders(compiled.cluster.nodes), _MOST_ORDERS):
        replays.append(_Replay(run, compiled, profiles, order))
        if not replays[-1].difference:
            break
    longest = max(replays, key=lambda replay: replay.agreed)
    return CaseOutcome(run["name"], _PROFILE, longest.attempts, longest.difference)


def _orders(nodes: Sequence[Node]) -> Iterator[Sequence[int]]:
    """Orders of the nodes, such that for each image each of its sizes is once the first."""
    firsts: dict[str, dict[int, int]] = {}
    for number, node in enumerate(nodes):
        for image in node.status.images:
            for name in image.names:
                firsts.setdefault(name, {}).setdefault(image.size_bytes, number)
    for chosen in product(
        *(sizes.values() for sizes in firsts.values() if len(sizes) > 1)
    ):
        yield list(dict.fromkeys(chain(chosen, range(len(nodes)))))


class _Replay:
    """One pass over the attempts. ``difference`` is the first one, ``agreed`` the number of attempts before it."""

    def __init__(
        self,
        run: Json,
        compiled: CompiledCluster,
        profiles: Sequence[Profile],
        order: Sequence[int],
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
        """Pods of groups come together, cycle by cycle."""
        for cycle, together in groupby(
            attempts, key=lambda recorded: recorded.get("cycle")
        ):
            if cycle is None:
                yield from map(self._replay, together)
            else:
                yield from self._replay_cycle(list(together))

    def _replay_cycle(self, trials: Sequence[Json]) -> Iterator[dict[str, Any]]:
        """A cycle of a group: every pod in every part of the nodes, and then the answer as it is recorded."""
        cycle = RecordedCycle(self._scheduler, self._compiled, trials)
        scores = [
            one["scores"]
            for one in self._run.get("placements", ())
            if one["cycle"] == trials[0]["cycle"]
        ]
        for recorded, answer, difference in cycle.replayed(self._in_flight, scores):
            if not self.difference:
                self.difference = (
                    difference
                    and f"attempts[{self.agreed}] of {recorded['pod']}: {difference}"
                )
                self.agreed += not difference
            yield answer
        for key, node in cycle.bound():
            self._scheduler.bind(key, node)
            self._decided.update(self._compiled.cluster.claims_of_pods[key])

    def _in_flight(self, recorded: Json) -> Set[ClaimKey]:
        """The claims of which the recorded message says that others are being given them."""
        return {
            claim
            for claim in self._decided
            if f"claim {claim} {_IN_FLIGHT}" in recorded.get("message", "")
        }

    def _replay(self, recorded: Json) -> dict[str, Any]:
        """An attempt, given those before as they are recorded.

        One without an outcome was given up while its pod was being bound. The pod keeps what it was to get at most
        until it is tried again; how long is not recorded, so it keeps it for as long as that agrees. In the last
        attempt the recording may have ended: what is there of it then says nothing.
        """
        key = ClaimKey.parse(recorded["pod"])
        self._give_up(key)
        found, answer, difference = self._tried(key, recorded)
        for other in list(self._undecided) if difference else ():
            self._give_up(other)
            found, answer, difference = self._tried(key, recorded)
            if not difference:
                break
        if not self.difference:
            self.difference = (
                difference and f"attempts[{self.agreed}] of {key}: {difference}"
            )
            self.agreed += not difference
        node = self._scheduler.snapshot.by_name.get(recorded["node"])
        if not recorded["outcome"] and found.feasible:
            node = self._undecided[key] = taken(recorded, found)
        if node is not None and node in found.feasible:
            self._scheduler.bind(key, node)
            self._decided.update(self._compiled.cluster.claims_of_pods[key])
        return answer

    def _give_up(self, key: ClaimKey) -> None:
        """A pod that was being bound gets nothing."""
        node = self._undecided.pop(key, None)
        if node is not None:
            self._scheduler.unbind(key, node)

    def _tried(
        self, key: ClaimKey, recorded: Json
    ) -> tuple[Attempt, dict[str, Any], str]:
        """What becomes of a pod as things are, as an answer, and in what that differs from what was recorded."""
        is_cut = not recorded["outcome"] and recorded is self._run["attempts"][-1]
        found = self._scheduler.attempt(key, in_flight=self._in_flight(recorded))
        scored = tuple(recorded["totals"])
        sampled = (
            len(scored) == len(found.feasible) < len(self._scheduler.snapshot.nodes)
        )
        if sampled and {node.name for node in found.feasible} != set(scored):
            # Enough nodes are feasible, and which of them are looked at depends on the order of the nodes.
            found = self._scheduler.attempt(key, scored)
            recorded = {
                name: value for name, value in recorded.items() if name != "evaluated"
            }
        answer = answer_of(recorded, found)
        return found, answer, "" if is_cut else difference_of(recorded, answer)

    def _device_difference(self) -> str:
        """Enter the devices of bound pods into the attempts, and compare them."""
        written = allocations(self._compiled, self._scheduler.solution)
        first = ""
        for attempt in self.attempts:
            if attempt["outcome"] == "bound":
                key = ClaimKey.parse(attempt["pod"])
                keys = self._compiled.cluster.claims_of_pods[key]
                mine = (one for one in keys if one in written)
                found = {
                    self._recorded_name(one, key): _as_served(written[one].wire_form())
                    for one in mine
                }
                recorded = {
                    name: _comparable(self._run["claims"].get(name, {}))
                    for name in found
                }
                for one in (found, recorded):
                    name_shares(list(one.values()))
                attempt["results"] = {
                    name: one["devices"].get("results", [])
                    for name, one in found.items()
                }
                first = first or first_difference(recorded, found, f"claims of {key}")
        return first

    def _recorded_name(self, claim: ClaimKey, pod: ClaimKey) -> str:
        """The recorded name of a claim: one for extended resources got a name that is as good as any other."""
        claims: Mapping[str, Json] = self._run["claims"]
        if str(claim) in claims:
            return str(claim)
        known = {str(one.key) for one in self._compiled.cluster.claims}
        users = (
            (name, status.get("reservedFor", ()))
            for name, status in claims.items()
            if name not in known
        )
        mine = (
            name
            for name, reserved in users
            if any(user["name"] == pod.name for user in reserved)
        )
        return next(
            (name for name in mine if name.startswith(f"{pod.namespace}/")), str(claim)
        )


def _comparable(status: Json) -> dict[str, Any]:
    """A recorded allocation without its time, and its configuration in the words of later releases.

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
        terse = (
            {
                key: entry[key]
                for key in entry
                if key != "requests" or not _covers(entry, served)
            }
            for entry in config
        )
        distinct = {json.dumps(entry, sort_keys=True): entry for entry in terse}
        answer["devices"] = {**answer["devices"], "config": list(distinct.values())}
    return answer


def _as_served(allocation: Json) -> dict[str, Any]:
    """An allocation as the API server gives it back: it reads each amount, and writes it in its shortest form."""
    for result in allocation["devices"].get("results", ()):
        amounts = result.get("consumedCapacity", {})
        amounts.update(
            (name, str(parse_quantity(amount))) for name, amount in amounts.items()
        )
    return dict(allocation)


def _covers(entry: Json, served: Set[str]) -> bool:
    named = set(entry.get("requests", ()))
    return all(
        request in named or request.partition("/")[0] in named for request in served
    )
