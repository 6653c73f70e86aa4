"""The ledger: every rule of what is left by a small example, and its arithmetic by generated problems."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dralloc.objects.names import ClaimKey, CounterID, DeviceID
from dralloc.problem import (
    Capacity,
    Charge,
    Counter,
    CounterIndex,
    Device,
    Problem,
    SlotIndex,
    Usage,
    numbered,
)
from dralloc.problem.claim_ledger import ClaimLedger
from dralloc.problem.ledger import Holding, Ledger, Scarcity, Shortage
from dralloc.problem.solution import holdings_of
from dralloc.solve.first_fit import first_fit
from strategies import TableEligibility, problems

NOTHING = Charge()
MEMORY = Capacity("memory", 40)
GPU = Device(
    DeviceID("gpu.example.com", "pool", "gpu"),
    SlotIndex(0),
    0,
    False,
    {},
    ((CounterIndex(0), 15),),
    {},
    None,
)
PART = replace(
    GPU,
    id=DeviceID("gpu.example.com", "pool", "part"),
    slot=SlotIndex(1),
    consumes=((CounterIndex(0), 10), (CounterIndex(1), 1)),
)
SHARED = replace(
    GPU,
    id=DeviceID("gpu.example.com", "pool", "shared"),
    slot=SlotIndex(2),
    shareable=True,
    capacity={"memory": MEMORY},
)
A, B = ClaimKey("default", "a"), ClaimKey("default", "b")


def problem(
    *devices: Device,
    free: tuple[int, ...] = (20, 2),
    usage: Usage | None = None,
) -> Problem:
    names = (
        CounterID("gpu.example.com", "pool", "set", name)
        for name in ("memory", "slices")
    )
    counters = tuple(
        Counter(name, 20, free_amount, 0)
        for name, free_amount in zip(names, free, strict=True)
    )
    return Problem(
        (),
        (),
        devices or (GPU, PART, SHARED),
        counters,
        usage or Usage(frozenset(), {}, {}),
        TableEligibility(),
    )


def test_a_dedicated_device_has_one_holder() -> None:
    ledger = Ledger(problem())
    ledger.enter(GPU, NOTHING, share=False)
    assert list(ledger.shortages(replace(GPU, consumes=()), NOTHING)) == [
        Shortage(Scarcity.DEVICE)
    ]


def test_who_holds_a_shareable_device_as_a_whole_shares_it_with_nobody() -> (
    None
):
    ledger = Ledger(problem(usage=Usage(frozenset({SlotIndex(2)}), {}, {})))
    assert Shortage(Scarcity.DEVICE) in ledger.shortages(SHARED, NOTHING)


def test_a_device_charges_its_counters_with_its_first_share_only() -> None:
    ledger = Ledger(problem())
    ledger.enter(SHARED, Charge((("memory", 10),)), share=True)
    ledger.enter(SHARED, Charge((("memory", 10),)), share=True)
    assert ledger.free[0] == 5
    assert ledger.capacity_left(SHARED, "memory") == 20
    ledger.revoke(SHARED, Charge((("memory", 10),)), share=True)
    assert ledger.free[0] == 5
    ledger.revoke(SHARED, Charge((("memory", 10),)), share=True)
    assert (ledger.free[0], ledger.is_in_use(SHARED)) == (20, False)


def test_what_is_drawn_once_and_by_request_adds_up() -> None:
    by_request = Charge(counters=((CounterIndex(0), 10),))
    ledger = Ledger(problem())
    assert list(ledger.shortages(GPU, by_request)) == [
        Shortage(Scarcity.COUNTER, 0, 25, 20)
    ]
    assert not ledger.has_counters(GPU, by_request)


def test_an_overdrawn_counter_closes_its_group() -> None:
    ledger = Ledger(problem(free=(20, -1)))
    assert list(ledger.shortages(GPU, NOTHING)) == [
        Shortage(Scarcity.COUNTER, 1, 0, -1)
    ]
    assert list(ledger.shortages(replace(GPU, consumes=()), NOTHING)) == []


def test_what_is_in_use_on_a_counter_set_has_a_group_in_common() -> None:
    mig = replace(GPU, consumes=(), compatibility=((7, frozenset({"mig"})),))
    mps = replace(
        mig, slot=SlotIndex(1), compatibility=((7, frozenset({"mps"})),)
    )
    ledger = Ledger(problem(mig, mps))
    ledger.enter(mig, NOTHING, share=False)
    assert list(ledger.shortages(mps, NOTHING)) == [
        Shortage(Scarcity.GROUPS, 7)
    ]
    ledger.revoke(mig, NOTHING, share=False)
    assert ledger.fits(mps, NOTHING)


def test_groups_in_use_outside_of_a_part_count() -> None:
    mig = replace(GPU, consumes=(), compatibility=((7, frozenset({"mig"})),))
    outside = Usage(frozenset(), {}, {}, {7: frozenset({"mps"})})
    assert not Ledger(problem(mig, usage=outside)).fits(mig, NOTHING)


def test_admin_access_minds_capacities_only() -> None:
    ledger = Ledger(
        problem(
            free=(-1, 0),
            usage=Usage(
                frozenset({SlotIndex(0), SlotIndex(2)}),
                {},
                {SlotIndex(2): {"memory": 35}},
            ),
        )
    )
    assert ledger.fits(GPU, NOTHING, admin=True)
    assert list(
        ledger.shortages(SHARED, Charge((("memory", 10),)), admin=True)
    ) == [Shortage(Scarcity.CAPACITY, "memory", 10, 5)]


def test_holders_are_named_by_what_is_short() -> None:
    ledger = ClaimLedger(problem())
    ledger.hold(
        [
            Holding(A, SlotIndex(1), False, NOTHING),
            Holding(
                B,
                SlotIndex(2),
                True,
                Charge((("memory", 30),), ((CounterIndex(0), 1),)),
            ),
        ]
    )
    assert ledger.holders(PART, Shortage(Scarcity.DEVICE)) == {A: 1}
    assert ledger.holders(SHARED, Shortage(Scarcity.CAPACITY, "memory")) == {
        B: 30
    }
    assert ledger.holders(GPU, Shortage(Scarcity.COUNTER, 0)) == {A: 10, B: 16}


def test_a_dedicated_device_of_two_claims_is_free_when_both_have_gone() -> None:
    ledger = ClaimLedger(
        problem(usage=Usage(frozenset({SlotIndex(0)}), {}, {}), free=(5, 2)),
        [Holding(key, SlotIndex(0), False, NOTHING) for key in (A, B)],
    )
    ledger.release([A])
    assert (ledger.free[0], ledger.is_free(GPU)) == (5, False)
    ledger.release([B])
    assert (ledger.free[0], ledger.is_free(GPU)) == (20, True)


def test_a_copy_changes_apart() -> None:
    ledger = ClaimLedger(problem())
    twin = ledger.copy()
    twin.hold([Holding(A, SlotIndex(0), False, NOTHING)])
    assert ledger.is_free(GPU)
    assert not ledger.by_claim
    assert ledger.free == [20, 2]


def test_what_was_overdrawn_since_a_note_is_not_afterwards() -> None:
    ledger = Ledger(problem(free=(5, 2)))
    coming = Holding(A, SlotIndex(0), False, NOTHING)
    before = ledger.note([coming])
    _enter(ledger, [coming])
    assert ledger.is_overdrawn(0)
    ledger.restore(before)
    assert not ledger.is_overdrawn(0)


@pytest.mark.parametrize("is_open_before", [False, True])
def test_a_device_that_is_open_in_one_state_is_opened_in_the_other(
    *, is_open_before: bool
) -> None:
    """Its share goes, or comes, and with it one of 15 units; a part with 10 of 20 comes, or goes, or does not."""
    charge = Charge((("memory", 10),))
    share = Holding(A, SlotIndex(2), True, charge)
    for part in ([], [Holding(B, SlotIndex(1), False, NOTHING)]):
        states = [share], part
        leaving, coming = states if is_open_before else states[::-1]
        ledger = Ledger(problem(free=(20, 2)))
        _enter(ledger, leaving)
        before = ledger.note([share, *part])
        for holding in leaving:
            _revoke(ledger, holding)
        _enter(ledger, coming)
        ledger.tighten(before)
        assert ledger.free[0] == 5
        assert ledger.fits(SHARED, charge) == (not part)
        if not part:
            # Once it is open, the second share asks for nothing.
            _enter(ledger, [share])
            assert ledger.free[0] == 5
            assert ledger.fits(SHARED, charge)
            _revoke(ledger, share)
        ledger.restore(before)
        assert ledger.free[0] == (5 if is_open_before else 10 if part else 20)


@given(problems(), st.integers(0, 2**32))
def test_a_note_knows_everything_that_holdings_can_change(
    problem: Problem, seed: int
) -> None:
    random = Random(seed)
    holdings = list(_entries(problem))
    leaving = [holding for holding in holdings if random.random() < 0.5]
    coming = [holding for holding in holdings if holding not in leaving]
    ledger = Ledger(problem)
    _enter(ledger, leaving)
    state, before = _state(ledger), ledger.note(holdings)
    as_before, as_after = ledger.copy(), ledger.copy()
    for holding in leaving:
        _revoke(as_after, holding)
        _revoke(ledger, holding)
    _enter(as_after, coming)
    _enter(ledger, coming)
    ledger.tighten(before)
    assert ledger.held == as_before.held | as_after.held
    assert ledger.free == list(map(min, as_before.free, as_after.free))
    for device in problem.devices:
        for name in device.capacity:
            assert ledger.capacity_left(device, name) == min(
                as_before.capacity_left(device, name),
                as_after.capacity_left(device, name),
            )
    # Groups that two states have in common are asked for together, and so are versions that differ in being shared.
    is_exact = problem.is_additive and not problem.several_versions
    entered: list[Holding] = []
    for holding in random.sample(holdings, len(holdings)):
        device = _device(problem, holding)
        fits_in_both = as_before.fits(device, holding.charge) and as_after.fits(
            device, holding.charge
        )
        fits = ledger.fits(device, holding.charge)
        assert fits_in_both >= fits
        if is_exact:
            assert fits_in_both == fits
        if fits and random.random() < 0.5:
            for either in (ledger, as_before, as_after):
                _enter(either, [holding])
            entered.append(holding)
    for holding in reversed(entered):
        _revoke(ledger, holding)
    ledger.restore(before)
    assert _state(ledger) == state


def _enter(ledger: Ledger, holdings: Iterable[Holding]) -> None:
    for holding in holdings:
        device = _device(ledger.problem, holding)
        ledger.enter(device, holding.charge, share=holding.share)


def _revoke(ledger: Ledger, holding: Holding) -> None:
    device = _device(ledger.problem, holding)
    ledger.revoke(device, holding.charge, share=holding.share)


def _device(problem: Problem, holding: Holding) -> Device:
    return problem.devices[problem.versions[holding.slot][0]]


def _entries(problem: Problem) -> Iterator[Holding]:
    for placement in first_fit(problem).placements:
        yield from holdings_of(problem, placement)


def _state(ledger: Ledger) -> Hashable:
    consumed = {
        (slot, name): amount
        for slot, amounts in ledger.consumed.items()
        for name, amount in amounts.items()
        if amount
    }
    groups = ledger.common_groups()
    closed = [
        ledger.is_overdrawn(counter.group)
        for counter in ledger.problem.counters
    ]
    return str(
        (
            sorted(ledger.held),
            sorted(ledger.shares.items()),
            sorted(consumed.items()),
            ledger.free,
            groups,
            closed,
        )
    )


@given(problems(), st.randoms(use_true_random=False))
def test_releasing_in_any_order_leads_back_to_the_start(
    problem: Problem, random: Random
) -> None:
    ledger = ClaimLedger(problem)
    before = _state(ledger)
    holdings = list(_entries(problem))
    ledger.hold(holdings)
    claims = list({holding.claim for holding in holdings})
    random.shuffle(claims)
    ledger.release(claims)
    assert _state(ledger) == before


@given(problems())
def test_an_applied_ledger_is_where_the_next_one_starts(
    problem: Problem,
) -> None:
    ledger = ClaimLedger(problem)
    ledger.hold(_entries(problem))
    assert _state(Ledger(ledger.applied())) == _state(ledger)


@pytest.mark.parametrize("admin", [False, True])
@given(given_problem=problems())
def test_an_allocation_fits_exactly_if_nothing_is_short(
    given_problem: Problem, admin: bool
) -> None:
    ledger = ClaimLedger(given_problem)
    ledger.hold(_entries(given_problem))
    for demand in given_problem.demands:
        for claim in demand.claims:
            for request in claim.requests:
                for alternative in request.alternatives:
                    for device_index, device in numbered(given_problem.devices):
                        charge = given_problem.eligibility.charge(
                            alternative.index, device_index
                        )
                        if charge is not None:
                            short = list(
                                ledger.shortages(device, charge, admin=admin)
                            )
                            assert ledger.fits(
                                device, charge, admin=admin
                            ) is not bool(short)
