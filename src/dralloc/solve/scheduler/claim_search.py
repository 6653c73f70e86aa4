"""What claims would get on a node: the structured allocator's search there, and what is remembered of its answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dralloc.compile.compiler import CompiledCluster
from dralloc.compile.pods import PodInfo
from dralloc.objects.errors import NodeError
from dralloc.problem import (
    Alternative,
    Charge,
    Claim,
    Device,
    DeviceIndex,
    NodeIndex,
)
from dralloc.problem.solution import Grant
from dralloc.solve.first_fit.candidates import (
    CandidateIndex,
    ClaimClass,
    NodeCandidates,
    failure,
    places,
)
from dralloc.solve.first_fit.plain import GrantsOfClaims
from dralloc.solve.first_fit.search import DepthFirstSearch, nothing_on
from dralloc.solve.scheduler.node_info import NodeInfo
from dralloc.solve.scheduler.pod_claims import OpenClaims, PodClaims

__all__ = ["AnswersByNode", "ClaimSearch", "NodeAnswers"]


@dataclass(slots=True)
class NodeAnswers:
    """The outcomes of searches on a node, by class.

    Parameters
    ----------
    current
        With what is in use there now.
    repeated
        With that, and with what the class got before, time after time: what it gets next.
    lasting
        Where more usage never lets anything fit: what was found last, with no more in use than now. What did not fit
        does not fit now; what fitted may be taken.
    """

    current: dict[ClaimClass, GrantsOfClaims | None] = field(
        default_factory=dict
    )
    lasting: dict[ClaimClass, GrantsOfClaims | None] = field(
        default_factory=dict
    )
    repeated: dict[ClaimClass, list[GrantsOfClaims | None]] = field(
        default_factory=dict
    )

    def with_more_in_use(self) -> NodeAnswers:
        """Return what stays true when something more is in use on the node."""
        return NodeAnswers({}, self.lasting.copy())

    def rules_out(self, claim_class: ClaimClass) -> bool:
        """Whether a class does not fit, and will not when more is in use."""
        return claim_class in self.lasting and self.lasting[claim_class] is None


AnswersByNode = dict[int, NodeAnswers]
"""What is known of nodes, by their indices."""


class _Offer(NamedTuple):
    """The offer of a node to a class of claims.

    Parameters
    ----------
    leaks
        Whether a search may come across devices that leak counters.
    shrinks
        Whether more usage never lets anything fit, so that what was found first stays first as long as it can be had.
    """

    candidates: NodeCandidates
    leaks: bool
    shrinks: bool

    def start_again(self) -> None:
        """Something was released: the first devices may be free again."""
        for listed in self.candidates.lists.values():
            listed.start = 0

    @contextmanager
    def from_the_start(self) -> Iterator[None]:
        """As long as this lasts, devices may be free that are not in fact."""
        lists = self.candidates.lists.values()
        starts = [listed.start for listed in lists]
        self.start_again()
        try:
            yield
        finally:
            for listed, start in zip(lists, starts, strict=True):
                listed.start = start


class ClaimSearch(PodClaims):
    """Looks for the devices of single nodes, as the structured allocator does.

    Parameters
    ----------
    leaks_counters
        See `dralloc.solve.scheduler.release.Release`.
    """

    def __init__(
        self, compiled: CompiledCluster, *, leaks_counters: bool = True
    ) -> None:
        super().__init__(compiled)
        self._leaks_counters = leaks_counters
        self._selected = CandidateIndex(self._problem, tainted=True)
        self._offers: dict[int, dict[ClaimClass, _Offer]] = defaultdict(dict)
        self._answers: AnswersByNode = defaultdict(NodeAnswers)
        self._enough: dict[ClaimClass, NDArray[np.bool_]] = {}
        # By node, whether the devices do not do for a class whatever is in use, and whether they will not again.
        self._hopeless: dict[ClaimClass, NDArray[np.bool_]] = {}
        # By node, the classes of which only the latter is true.
        self._hopeless_on: dict[int, set[ClaimClass]] = defaultdict(set)
        self._asks_for_one: dict[ClaimClass, bool] = {}
        # How many suppositions hold of what is in use.
        self._suppositions = 0
        problem = self._problem
        self._nodes_of = cache(
            lambda device: frozenset(
                problem.seeing(problem.devices[device].id.pool_id)
            )
        )
        self._has_counters = cache(
            lambda node: any(
                problem.devices[device].consumes
                for device in problem.nodes[node].devices()
            )
        )
        self._sees_alone = cache(
            lambda node: all(
                self._nodes_of(device) == {node}
                for device in problem.nodes[node].devices()
            )
        )

    def find(
        self, open_claims: OpenClaims, node: NodeInfo
    ) -> GrantsOfClaims | None:
        """Return what each of the claims would get on the node; None if they do not fit.

        Raises
        ------
        AllocationError
            The attempt ends with an error: for every node, or for this one.
        """
        claims, claim_class, _ = open_claims
        if claim_class is None:
            grants = self._plain_search(claims, node.number, None)
            self._ledger.revert()
            return grants
        if self._suppositions:
            return self._find_supposing(claims, claim_class, node.number)
        answers = self._answers[node.number]
        if claim_class in answers.current:
            return answers.current[claim_class]
        if claim_class in answers.lasting:
            # Nothing fits that did not fit before, and what fitted first is still first
            # as long as it can be had.
            before = answers.lasting[claim_class]
            if before is None or self._is_free(claims, before):
                answers.current[claim_class] = before
                return before
        if not self._has_enough(claims, claim_class)[node.number]:
            nothing_on(self._problem.nodes[node.number])
            return None
        grants = self._search_for(claims, claim_class, node.number)
        self._ledger.revert()
        answers.current[claim_class] = grants
        if self._offers[node.number][claim_class].shrinks:
            answers.lasting[claim_class] = grants
            if grants is None and claim_class in self._hopeless:
                self._hopeless[claim_class][node.number] = True
                self._hopeless_on[node.number].add(claim_class)
        return grants

    def _find_supposing(
        self, claims: Sequence[Claim], claim_class: ClaimClass, node: NodeIndex
    ) -> GrantsOfClaims | None:
        """The same where something is supposed: what is known of what is in use in fact is left out, and kept."""
        if not self._has_enough(claims, claim_class)[node]:
            nothing_on(self._problem.nodes[node])
            return None
        with self._offer_of(claims, claim_class, node).from_the_start():
            grants = self._search_for(claims, claim_class, node)
            self._ledger.revert()
            return grants

    def get_again(
        self, open_claims: OpenClaims, node: NodeInfo, earlier: int
    ) -> GrantsOfClaims | None:
        """Return what the claims of a pod get on a node once so many equal pods have got theirs there.

        No search for them may end with an error, and none of them may be shared.
        """
        claims, claim_class, _ = open_claims
        if not claims:
            return ()
        assert claim_class is not None
        repeated = self._answers[node.number].repeated
        if claim_class not in repeated:
            repeated[claim_class] = [self.find(open_claims, node)]
        outcomes = repeated[claim_class]
        while len(outcomes) <= earlier and outcomes[-1] is not None:
            outcomes.append(
                self._find_beside(claims, claim_class, node, outcomes)
            )
        return outcomes[earlier] if len(outcomes) > earlier else None

    def _find_beside(
        self,
        claims: Sequence[Claim],
        claim_class: ClaimClass,
        node: NodeInfo,
        grants_of_others: Sequence[GrantsOfClaims | None],
    ) -> GrantsOfClaims | None:
        """Return what claims get on a node beside what others of their class get there."""
        for grants in grants_of_others:
            assert grants is not None
            self._take(claims, grants)
            self._ledger.settle()
        offer = self._offer_of(claims, claim_class, node.number)
        try:
            with offer.from_the_start():
                answer = self._search_for(claims, claim_class, node.number)
                self._ledger.revert()
        except NodeError:
            # They do not fit, and a pool of the node is invalid: here it is enough that they do not.
            answer = None
        for grants in grants_of_others:
            assert grants is not None
            self._release_all(claims, grants)
        return answer

    def _release_all(
        self, claims: Sequence[Claim], grants_of: GrantsOfClaims
    ) -> None:
        for claim, grants in zip(claims, grants_of, strict=True):
            for request, choice, device in grants:
                alternative = claim.requests[request].alternatives[choice]
                self._ledger.release(device, alternative)

    def _search_for(
        self, claims: Sequence[Claim], claim_class: ClaimClass, node: NodeIndex
    ) -> GrantsOfClaims | None:
        candidates, leaks, _ = self._offer_of(claims, claim_class, node)
        if claim_class not in self._asks_for_one:
            self._asks_for_one[claim_class] = _asks_for_one(claims)
        if self._asks_for_one[claim_class] and (
            leaks or not claim_class.simple
        ):
            first_served = self._first_served(claims[0], candidates, leaks)
            if first_served is not None:
                return (first_served,)
            nothing_on(self._problem.nodes[node])
            return None
        if leaks:
            return self._plain_search(claims, node, candidates)
        return self._attempt_at(candidates, claims, claim_class)

    def _first_served(
        self, claim: Claim, candidates: NodeCandidates, leaks: bool
    ) -> tuple[Grant, ...] | None:
        """Return the first device that a claim for a single one can have, by its first alternative that can be served.

        As the depth-first search does, which finds nothing behind a single device to come back from. Nothing is taken.
        """
        problem, ledger = self._problem, self._ledger
        leaked: list[Device] = []
        try:
            for choice, alternative in enumerate(
                claim.requests[0].alternatives
            ):
                listed = candidates.lists[0, 0, choice]
                for device_index in listed.devices:
                    device = problem.devices[device_index]
                    if ledger.in_use(device, alternative, 0):
                        continue
                    if device_index in listed.failing:
                        raise failure(problem, alternative, device_index)
                    charge = problem.eligibility.charge(
                        alternative.index, device_index
                    )
                    if charge is None or not ledger.has_capacity(
                        device, charge
                    ):
                        continue
                    if not ledger.covers(device, alternative, charge):
                        continue
                    if problem.eligibility.admits(
                        alternative.index, device_index
                    ):
                        return (Grant(0, choice, device_index),)
                    if leaks and not ledger.is_open(device):
                        # What taints refuse keeps its counters until the search ends.
                        ledger.reserve(device)
                        leaked.append(device)
        finally:
            for device in leaked:
                ledger.reserve(device, -1)
        return None

    def _plain_search(
        self,
        claims: Sequence[Claim],
        node: NodeIndex,
        candidates: NodeCandidates | None,
    ) -> GrantsOfClaims | None:
        leaks = self._leaks_counters
        search = DepthFirstSearch(
            self._problem,
            self._ledger,
            claims,
            node,
            leaks=leaks,
            candidates=candidates,
        )
        return search.run()

    def _offer_of(
        self, claims: Sequence[Claim], claim_class: ClaimClass, node: NodeIndex
    ) -> _Offer:
        offers = self._offers[node]
        if claim_class not in offers:
            offers[claim_class] = self._offer(claims, claim_class, node)
        return offers[claim_class]

    def _offer(
        self, claims: Sequence[Claim], claim_class: ClaimClass, node: NodeIndex
    ) -> _Offer:
        """Return what a node offers to a class, whatever is in use."""
        if self._leaks_counters and self._has_counters(node):
            selected = self._selected.on(claims, node)
            if self._may_leak(claims, selected):
                return _Offer(selected, leaks=True, shrinks=False)
        candidates = self._index.on(claims, node)
        # Where a search may end with an error, it may end otherwise once it does not get there any more.
        failing = any(listed.failing for listed in candidates.lists.values())
        shrinks = self._index.shrinks(node) and not (
            failing or claim_class.may_ask_too_much
        )
        return _Offer(candidates, leaks=False, shrinks=shrinks)

    def _may_leak(
        self, claims: Sequence[Claim], selected: NodeCandidates
    ) -> bool:
        """Whether the search may come across devices with counters that it refuses, or takes a share of and gives back.

        It refuses what taints and constraints are against. What it gives back it has taken for a part of the claims.
        """
        problem = self._problem
        is_in_parts = not _asks_for_one(claims)
        for position, alternative in places(claims):
            listed = selected.lists.get(position)
            reached: Iterable[DeviceIndex] = problem.nodes[
                selected.node
            ].devices()
            if listed is not None:
                reached = listed.devices
            constrained = claims[position[0]].constraints
            for device in reached:
                if not problem.devices[device].consumes:
                    continue
                if constrained:
                    return True
                if is_in_parts and problem.devices[device].shareable:
                    return True
                if not problem.eligibility.admits(alternative.index, device):
                    return True
        return False

    def _is_free(self, claims: Sequence[Claim], answer: GrantsOfClaims) -> bool:
        """Whether what was found before can still be had; then it is still what a search finds first."""
        try:
            granted = zip(claims, answer, strict=True)
            for claim_index, (claim, grants) in enumerate(granted):
                for grant in grants:
                    if not self._take_if_free(claim_index, claim, grant):
                        return False
            return True
        finally:
            self._ledger.revert()

    def _take_if_free(
        self, claim_index: int, claim: Claim, grant: Grant
    ) -> bool:
        alternative = claim.requests[grant.request].alternatives[
            grant.alternative
        ]
        device = self._problem.devices[grant.device]
        charge = self._charge(alternative, grant.device)
        ledger = self._ledger
        if ledger.in_use(device, alternative, claim_index):
            return False
        if not ledger.has_capacity(device, charge):
            return False
        if not ledger.covers(device, alternative, charge):
            return False
        ledger.take(grant.device, alternative, claim_index, charge)
        return True

    def _take(self, claims: Sequence[Claim], grants_of: GrantsOfClaims) -> None:
        for claim_index, (claim, grants) in enumerate(
            zip(claims, grants_of, strict=True)
        ):
            for request, choice, device in grants:
                alternative = claim.requests[request].alternatives[choice]
                charge = self._charge(alternative, device)
                self._ledger.take(device, alternative, claim_index, charge)

    def _charge(self, alternative: Alternative, device: DeviceIndex) -> Charge:
        charge = self._problem.eligibility.charge(alternative.index, device)
        assert charge is not None
        return charge

    def are_alone(self, node: NodeInfo) -> bool:
        """Whether no other node sees a device of a node, so that what is taken there matters nowhere else."""
        return self._sees_alone(node.number)

    def never_fails(self, pod: PodInfo) -> bool:
        """Whether it is certain that no search for the claims of a pod, of which none is shared, ends with an error.

        An invalid pool may be the reason why they do not fit on its node; that is no error of the attempt.
        """
        claims = self._to_allocate(pod)
        claim_class = self._class_of(pod, claims)
        return claim_class is not None and self._failures.is_safe(
            claim_class, claims
        )

    def hopeless(self, pod: PodInfo) -> NDArray[np.bool_]:
        """By node, whether it is known that its devices do not do for the claims of a pod, of which none is shared."""
        claims = self._to_allocate(pod)
        claim_class = self._class_of(pod, claims)
        if claim_class is None:
            return np.zeros(len(self._problem.nodes), np.bool_)
        if claim_class not in self._hopeless:
            # Of a node with an invalid pool the scheduler says something else.
            enough = self._has_enough(claims, claim_class)
            never_fits = ~(enough | self._has_invalid)
            hopeless = self._hopeless[claim_class] = never_fits.copy()
            for node, answers in self._answers.items():
                if answers.rules_out(claim_class) and not never_fits[node]:
                    hopeless[node] = True
                    self._hopeless_on[node].add(claim_class)
        return self._hopeless[claim_class]

    @cached_property
    def _has_invalid(self) -> NDArray[np.bool_]:
        """By node, whether a pool of it is invalid."""
        has_invalid = np.zeros(len(self._problem.nodes), np.bool_)
        has_invalid[list(self._invalid)] = True
        return has_invalid

    def _has_enough(
        self, claims: Sequence[Claim], claim_class: ClaimClass
    ) -> NDArray[np.bool_]:
        """By node, whether it has as many devices as a class asks for, whatever is in use."""
        if claim_class not in self._enough:
            # Nothing is entered there, so that it stays true when pods are taken back.
            enough = self._failures.hopeful(claim_class, claims)
            self._enough[claim_class] = enough
        return self._enough[claim_class]

    def _reopen(self, node: NodeIndex, answers: NodeAnswers) -> None:
        """Something was released on a node: ask again, but for these answers."""
        self._answers[node] = answers
        self._hope_again(node)
        for offer in self._offers[node].values():
            offer.start_again()

    def _hope_again(self, node: NodeIndex) -> None:
        """Something was released: classes may fit that did not before."""
        answers, hopeless_here = self._answers[node], self._hopeless_on[node]
        for claim_class in tuple(hopeless_here):
            if not answers.rules_out(claim_class):
                self._hopeless[claim_class][node] = False
                hopeless_here.remove(claim_class)


def _asks_for_one(claims: Sequence[Claim]) -> bool:
    """Whether all that is asked for is a single device, without constraints."""
    if len(claims) != 1 or claims[0].constraints or claims[0].is_synthetic:
        return False
    if len(claims[0].requests) != 1:
        return False
    return all(
        alternative.count == 1
        for alternative in claims[0].requests[0].alternatives
    )
