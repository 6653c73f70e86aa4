"""A pass over the attempts of a recorded run, each with what the recorded attempts before have left.

At each attempt the feasible nodes, the scores by plugin, the totals, the devices and the message must be the recorded
ones, and the node must be among the best. (Which of the best it is depends on the order in which the scheduler heard of
the nodes, which is not recorded. Nor is when the API server heard of an allocation: that a claim is "in the process of
being allocated" is taken from the recorded message, if an attempt before has decided about the claim.)
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import groupby
from typing import Any, Final

from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.write import allocations
from dralloc.lint.conformance.allocation_answers import name_shares
from dralloc.lint.conformance.attempts import answer_of, difference_of, node_of
from dralloc.lint.conformance.cases import Json
from dralloc.lint.conformance.differences import first_difference
from dralloc.lint.conformance.group_cycles import RecordedCycle
from dralloc.objects.names import ClaimKey
from dralloc.objects.quantity import parse_quantity
from dralloc.problem import NodeIndex
from dralloc.solve.scheduler import Attempt, Profile, Scheduler
from dralloc.solve.scheduler.node_info import NodeInfo

__all__ = ["Replay"]

_IN_FLIGHT: Final = "is in the process of being allocated"


class Replay:
    """A pass over the attempts. ``difference`` is the first one, ``agreed`` the number of attempts before it.

    Parameters
    ----------
    run
        The recording, as `dralloc.lint.conformance.scheduler_answers.run_scheduler` gets it.
    compiled
        Its objects, compiled.
    profiles
        What its configuration says.
    order
        The order in which the scheduler may have heard of the nodes.
    """

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
            node = self._undecided[key] = node_of(recorded, attempt)
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
        answer = answer_of(recorded, attempt)
        return (
            attempt,
            answer,
            "" if is_cut else difference_of(recorded, answer),
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
        # Entries that are equal in these words become one, in the place of the first.
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
