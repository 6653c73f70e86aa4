"""The referee for evictions: every set of victims, and for each every way in which those who wait could come in.

Rules are asked as the API's text has them, of plain guests on plain hosts, and not of a problem. Who is in and stays
was there first. Those who come do so one after the other; as in `dralloc.problem.inter_pod`, each rule may have an
order of its own, but affinity, where one leans on another, has one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations, permutations, product
from typing import NamedTuple

from eviction_strategies import Guest, Host, House, Team, has_room

__all__ = ["Evicted", "cheapest_eviction"]

Homes = Mapping[str, str]
"""By name of a guest who comes, that of its host."""


class Evicted(NamedTuple):
    """Guests who are evicted together."""

    guests: tuple[Guest, ...]
    priority: int


def cheapest_eviction(house: House, cost: str) -> tuple[int, ...] | None:
    """What the cheapest victims cost, most important first; None if nobody's going helps."""
    units = [unit for unit in _units(house) if _may_go(house, unit)]
    every = chain.from_iterable(
        combinations(units, size) for size in range(len(units) + 1)
    )
    helping = (
        _cost(victims, units, cost)
        for victims in every
        if _is_admitted(house, victims)
    )
    return min(helping, default=None)


def _units(house: House) -> Iterator[Evicted]:
    whole = [team.name for team in house.teams.values() if team.goes_as_whole]
    residents = [guest for guest in house.guests if guest.home]
    for guest in residents:
        if guest.team not in whole:
            yield Evicted((guest,), guest.priority)
    for name in whole:
        members = tuple(guest for guest in residents if guest.team == name)
        own = house.teams[name].priority
        if members:
            yield Evicted(
                members,
                max(guest.priority for guest in members)
                if own is None
                else own,
            )


def _may_go(house: House, unit: Evicted) -> bool:
    """Whether it is less important than those who come, and not of their own team or tree."""
    own = _with_asked(house)
    return unit.priority < _priority(house) and all(
        guest.team not in own for guest in unit.guests
    )


def _with_asked(house: House) -> set[str]:
    """The names of the team of the one who is asked for, and of the others of its tree; without them if it has none."""
    team = _team(house, _asked(house))
    if team is None or not _matters(team):
        return set()
    return {
        other.name
        for other in house.teams.values()
        if other is team or (team.tree and other.tree == team.tree)
    }


def _matters(team: Team) -> bool:
    return team.needed is not None or bool(team.topology) or bool(team.tree)


def _priority(house: House) -> int:
    """That of the teams that come together, or else the lowest of those who come."""
    coming = _coming_together(house)
    own = [
        team.priority
        for guest in coming
        if (team := _team(house, guest)) and team.priority is not None
    ]
    return min(own or [guest.priority for guest in coming])


def _coming_together(house: House) -> list[Guest]:
    """Who waits with the one who is asked for: alone, if enough of its team are in."""
    asked = _asked(house)
    team = _team(house, asked)
    own = _with_asked(house)
    if team is None or not own or (not team.tree and _has_enough(house, team)):
        return [asked]
    return [
        guest for guest in house.guests if not guest.home and guest.team in own
    ]


def _has_enough(house: House, team: Team) -> bool:
    inside = sum(
        bool(guest.home) for guest in house.guests if guest.team == team.name
    )
    return inside >= (team.needed or 1)


def _asked(house: House) -> Guest:
    return next(guest for guest in house.guests if guest.name == house.asked)


def _team(house: House, guest: Guest) -> Team | None:
    return house.teams.get(guest.team)


def _cost(
    victims: Sequence[Evicted], units: Sequence[Evicted], cost: str
) -> tuple[int, ...]:
    size = sum(len(unit.guests) for unit in victims)
    ranks = [
        sum(len(unit.guests) for unit in victims if unit.priority == priority)
        for priority in sorted({unit.priority for unit in units}, reverse=True)
    ]
    if cost == "priority":
        return tuple(ranks)
    if cost == "pods":
        return (size, *ranks)
    return (
        sum(guest.cost for unit in victims for guest in unit.guests),
        size,
        *ranks,
    )


def _is_admitted(house: House, victims: Sequence[Evicted]) -> bool:
    """Whether the one who is asked for can come once these are gone, with as many others as that needs."""
    gone = {guest.name for unit in victims for guest in unit.guests}
    staying = [
        guest for guest in house.guests if guest.home and guest.name not in gone
    ]
    asked, *others = sorted(
        _coming_together(house), key=lambda guest: guest.name != house.asked
    )
    for size in range(len(others) + 1):
        for company in combinations(others, size):
            coming = [asked, *company]
            if _is_complete(house, coming) and any(
                _fits(house, staying, coming, homes)
                for homes in _homes(house, coming)
            ):
                return True
    return False


def _homes(house: House, coming: Sequence[Guest]) -> Iterator[Homes]:
    for hosts in product(house.hosts, repeat=len(coming)):
        yield {
            guest.name: host.name
            for guest, host in zip(coming, hosts, strict=True)
        }


def _is_complete(house: House, coming: Sequence[Guest]) -> bool:
    """Whether every team of those who come has as many as it needs, those who are in included, and every tree."""
    teams = {
        guest.team: team for guest in coming if (team := _team(house, guest))
    }
    come = Counter(guest.team for guest in coming)
    inside = Counter(guest.team for guest in house.guests if guest.home)
    for name, team in teams.items():
        if come[name] + inside[name] < (team.needed or 1):
            return False
    for tree in {team.tree for team in teams.values() if team.tree}:
        children = [
            team
            for team in house.teams.values()
            if team.tree == tree and (come[team.name] + inside[team.name])
        ]
        admitted = [
            team
            for team in children
            if come[team.name] + inside[team.name] >= (team.needed or 1)
        ]
        if len(admitted) < house.trees[tree]:
            return False
    return True


def _fits(
    house: House,
    staying: Sequence[Guest],
    coming: Sequence[Guest],
    homes: Homes,
) -> bool:
    return (
        all(
            _has_room(house.host(name), staying, coming, homes)
            for name in set(homes.values())
        )
        and _are_teams_in_one_domain(house, coming, homes)
        and _keep_apart(house, staying, coming, homes)
        and _have_company(house, staying, coming, homes)
        and _are_spread(house, staying, coming, homes)
    )


def _has_room(
    host: Host, staying: Sequence[Guest], coming: Sequence[Guest], homes: Homes
) -> bool:
    """Taints, CPU, the port, and devices."""
    here = [guest for guest in coming if homes[guest.name] == host.name]
    before = [guest for guest in staying if guest.home == host.name]
    everybody = [*before, *here]
    if host.is_tainted and not all(guest.tolerates for guest in here):
        return False
    if sum(guest.takes_port for guest in everybody) > 1 and any(
        guest.takes_port for guest in here
    ):
        return False
    if (
        host.cpu is not None
        and any(guest.cpu for guest in here)
        and sum(guest.cpu for guest in everybody) > host.cpu
    ):
        return False
    return _can_serve(here, before, range(host.devices))


def _can_serve(
    guests: Sequence[Guest], holders: Sequence[Guest], devices: Sequence[int]
) -> bool:
    """Whether there are devices for everybody, by any of the alternatives.

    Admin access takes nothing: it only has to fit beside those who were there, as if it came first.
    """
    with_admin = [guest for guest in guests if guest.is_admin]
    others = [guest for guest in guests if not guest.is_admin]
    return all(
        any(
            device >= least and has_room(guest, device, holders)
            for device in devices
        )
        for guest in with_admin
        for _, least in guest.asks
    ) and _can_hold(others, holders, devices)


def _can_hold(
    guests: Sequence[Guest], holders: Sequence[Guest], devices: Sequence[int]
) -> bool:
    if not guests:
        return True
    first, *others = guests
    for count, least in first.asks:
        usable = [
            device
            for device in devices
            if device >= least and has_room(first, device, holders)
        ]
        for taken in combinations(usable, count):
            holding = replace(first, holds=taken)
            if _can_hold(others, [*holders, holding], devices):
                return True
    return False


def _are_teams_in_one_domain(
    house: House, coming: Sequence[Guest], homes: Homes
) -> bool:
    for team in house.teams.values():
        members = [
            homes[guest.name] for guest in coming if guest.team == team.name
        ]
        if team.topology and members:
            there = [
                guest.home
                for guest in house.guests
                if guest.home and guest.team == team.name
            ]
            domains = {
                house.host(name).labels.get(team.topology)
                for name in (*members, *there)
            }
            if len(domains) > 1 or None in domains:
                return False
    return True


class _There(NamedTuple):
    """A guest on a host."""

    guest: Guest
    host: Host


def _placed(
    house: House,
    staying: Iterable[Guest],
    coming: Iterable[Guest],
    homes: Homes,
) -> list[_There]:
    before = [_There(guest, house.host(guest.home)) for guest in staying]
    return [
        *before,
        *(_There(guest, house.host(homes[guest.name])) for guest in coming),
    ]


def _keep_apart(
    house: House,
    staying: Sequence[Guest],
    coming: Sequence[Guest],
    homes: Homes,
) -> bool:
    """Whether no term of anti-affinity of anybody means one beside it, but for two who were there."""
    everybody = _placed(house, staying, coming, homes)
    new = {guest.name for guest in coming}
    for first, second in permutations(everybody, 2):
        if first.guest.name in new or second.guest.name in new:
            for app, key in first.guest.apart:
                domain = first.host.labels.get(key)
                if (
                    app == second.guest.app
                    and domain is not None
                    and second.host.labels.get(key) == domain
                ):
                    return False
    return True


def _have_company(
    house: House,
    staying: Sequence[Guest],
    coming: Sequence[Guest],
    homes: Homes,
) -> bool:
    """Whether those who come can do so in some order, each to somebody whom all of its terms mean."""
    for order in permutations(coming):
        there = _placed(house, staying, (), homes)
        for new in _placed(house, (), order, homes):
            if not _has_company(new, there):
                break
            there.append(new)
        else:
            return True
    return False


def _has_company(new: _There, there: Sequence[_There]) -> bool:
    terms = new.guest.near
    if any(key not in new.host.labels for _, key in terms):
        return False
    meant = [
        other
        for other in there
        if all(other.guest.app == app for app, _ in terms)
    ]
    seen = [
        other
        for other in meant
        if any(key in other.host.labels for _, key in terms)
    ]
    if not seen and all(new.guest.app == app for app, _ in terms):
        return True
    return all(
        any(
            other.host.labels.get(key) == new.host.labels[key]
            for other in meant
        )
        for _, key in terms
    )


def _are_spread(
    house: House,
    staying: Sequence[Guest],
    coming: Sequence[Guest],
    homes: Homes,
) -> bool:
    return all(
        _is_spread(house, rule, staying, coming, homes)
        for rule in {guest.spread for guest in coming}
        if rule
    )


def _is_spread(
    house: House,
    rule: tuple[str, str, int],
    staying: Sequence[Guest],
    coming: Sequence[Guest],
    homes: Homes,
) -> bool:
    """Whether those who come can do so in some order, each to where not many more are meant than elsewhere."""
    app, key, skew = rule
    domains = {host.labels[key] for host in house.hosts if key in host.labels}
    for order in permutations(coming):
        before = (
            there.host.labels.get(key)
            for there in _placed(house, staying, (), homes)
            if there.guest.app == app
        )
        counts = Counter(before)
        for new in _placed(house, (), order, homes):
            domain = new.host.labels.get(key)
            if new.guest.spread == rule:
                fewest = min(
                    (counts[candidate] for candidate in domains), default=0
                )
                if (
                    domain is None
                    or counts[domain] + (new.guest.app == app) - fewest > skew
                ):
                    break
            counts[domain] += new.guest.app == app
        else:
            return True
    return False
