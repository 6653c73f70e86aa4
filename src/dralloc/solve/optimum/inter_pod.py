"""Rules between pods by topology domain (see `dralloc.problem.inter_pod`), as rows over demands on nodes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise

from dralloc.problem.indices import DemandIndex, grouped
from dralloc.problem.inter_pod import (
    Affinity,
    AntiAffinity,
    Domains,
    InterPodRule,
    OneDomain,
    Role,
    Spread,
    spreads_in_turn,
)
from dralloc.solve.optimum.equal_demands import equal_demands
from dralloc.solve.optimum.model import Model
from dralloc.solve.optimum.rows import Literal
from dralloc.solve.optimum.solvers import cp_model
from dralloc.solve.optimum.stopping import Stop

__all__ = ["inter_pod_rules", "spread_in_turn"]


def inter_pod_rules(model: Model) -> None:
    """Every rule that some demand has a role in: affinity in one order, spread in one for each rule."""
    for rule, roles in _roles(model).items():
        # Who runs was there first: nobody comes before that.
        model.turns.update(
            (demand, model.cp.new_constant(0))
            for demand, role in roles.items()
            if role.runs
        )
        among = _Among(model, roles)
        match rule:
            case AntiAffinity():
                _anti_affinity(among, rule)
            case Affinity():
                _affinity(among, rule)
            case Spread():
                _spread(among, rule)
            case OneDomain():
                _one_domain(among, rule)


def spread_in_turn(model: Model) -> None:
    """Spread in the order of all other rules that are about some of the same demands.

    One boolean for each pair of demands and each domain: many, and seldom needed (see `dralloc.problem.inter_pod`).
    Equal demands come in their order, as it makes no difference which of them is where.
    """
    shared = spreads_in_turn(
        model.problem.demands[demand] for demand in model.variables.miss
    )
    roles_in_turn = {
        rule: roles for rule, roles in _roles(model).items() if rule in shared
    }
    if not roles_in_turn:
        return
    coming = {
        demand
        for roles in roles_in_turn.values()
        for demand, role in roles.items()
        if not role.runs
    }
    class_of: dict[DemandIndex, int] = {}
    for class_index, members in enumerate(
        equal_demands(model, model.variables.stop)
    ):
        # Only of those that come: whoever runs has a turn already, before all of them.
        if coming.issuperset(members):
            class_of |= dict.fromkeys(members, class_index)
            for earlier, later in pairwise(members):
                model.cp.add(model.turn(earlier) < model.turn(later))
    for rule, roles in roles_in_turn.items():
        _SpreadInTurn(_Among(model, roles), rule, class_of).add(
            model.variables.stop
        )


def _roles(model: Model) -> Mapping[InterPodRule, dict[DemandIndex, Role]]:
    """The demands with a role in each rule."""
    roles: dict[InterPodRule, dict[DemandIndex, Role]] = defaultdict(dict)
    for demand in model.variables.miss:
        for role in model.problem.demands[demand].roles:
            roles[role.rule][demand] = role
    return roles


_Members = Mapping[str, list[tuple[DemandIndex, Literal]]]
"""By domain: demands, each with the literal that it is on a node there (one for each node)."""


def _literals(members: _Members, domain: str) -> list[Literal]:
    return [on for _, on in members.get(domain, ())]


class _Among:
    """The demands with a role in a rule, by the domains in which they are."""

    def __init__(self, model: Model, roles: Mapping[DemandIndex, Role]) -> None:
        self.cp = model.cp
        self.turn = model.turn
        self.roles = roles
        self._names = [node.name for node in model.problem.nodes]
        self._on = [
            (demand, node, on)
            for (demand, node), on in model.variables.on.items()
            if demand in roles
        ]

    def by_domain(
        self, domains: Domains, matches: Callable[[Role], bool]
    ) -> _Members:
        """By domain: the demands whose role matches, each with being on a node there."""
        members: dict[str, list[tuple[DemandIndex, Literal]]] = defaultdict(
            list
        )
        for demand, node, on in self._on:
            domain = domains.get(self._names[node])
            if domain is not None and matches(self.roles[demand]):
                members[domain].append((demand, on))
        return members

    def forbid_outside(self, domains: Domains) -> None:
        """Require that a demand which comes and carries the rule is in some domain."""
        for demand, node, on in self._on:
            role = self.roles[demand]
            if (
                role.carries
                and not role.runs
                and self._names[node] not in domains
            ):
                self.cp.add(on == 0)

    def astray(self, domains: Domains) -> Iterator[Literal]:
        """Yield the literals that a running pod which carries the rule is on a node in no domain."""
        for demand, node, on in self._on:
            role = self.roles[demand]
            if role.carries and role.runs and self._names[node] not in domains:
                yield on

    def anywhere_in(
        self, topologies: Iterable[Domains], demands: Iterable[DemandIndex]
    ) -> Mapping[DemandIndex, Literal]:
        """Whether each of some demands is in any domain: elsewhere no term sees it."""
        labelled = {name for domains in topologies for name in domains}
        in_domains = grouped(
            (demand, on)
            for demand, node, on in self._on
            if self._names[node] in labelled
        )
        return {
            demand: self.any_of(in_domains.get(demand, ()))
            for demand in demands
        }

    def any_of(self, literals: Iterable[Literal]) -> Literal:
        """A boolean that holds at least if one of these does."""
        is_any = self.cp.new_bool_var("")
        for literal in literals:
            self.cp.add_implication(literal, is_any)
        return is_any


def _anti_affinity(among: _Among, rule: AntiAffinity) -> None:
    """In a domain comes one demand that carries the term and counts, or any that carry it, or any that count."""
    carrying_and_counting = among.by_domain(
        rule.domains,
        lambda role: role.carries and role.counts and not role.runs,
    )
    only_carrying = among.by_domain(
        rule.domains,
        lambda role: role.carries and not role.counts and not role.runs,
    )
    only_counting = among.by_domain(
        rule.domains,
        lambda role: role.counts and not role.carries and not role.runs,
    )
    for domain in dict.fromkeys(
        (*carrying_and_counting, *only_carrying, *only_counting)
    ):
        alone = _literals(carrying_and_counting, domain)
        carriers = _literals(only_carrying, domain)
        counted = _literals(only_counting, domain)
        # Demands of the same sort do not keep each other out: one boolean for all.
        sorts = [among.any_of(sort) for sort in (carriers, counted) if sort]
        among.cp.add_at_most_one([*alone, *sorts])
        # Pods that are there already, and are no demands, close the domain.
        kept_out: list[Literal] = []
        if domain in rule.counted:
            kept_out += [*alone, *carriers]
        if domain in rule.carried:
            kept_out += [*alone, *counted]
        for on in kept_out:
            among.cp.add(on == 0)
    _apart_from_running(among, rule)


def _apart_from_running(among: _Among, rule: AntiAffinity) -> None:
    """Forbid domains with a running pod that the term excludes, or that excludes the newcomer."""
    pairs: tuple[tuple[Callable[[Role], bool], Callable[[Role], bool]], ...] = (
        (
            lambda role: role.runs and role.counts,
            lambda role: role.carries and not role.runs,
        ),
        (
            lambda role: role.runs and role.carries,
            lambda role: role.counts and not role.runs,
        ),
    )
    for running, coming in pairs:
        present = among.by_domain(rule.domains, running)
        for domain, newcomers in among.by_domain(rule.domains, coming).items():
            closed = among.any_of(_literals(present, domain))
            for _, on in newcomers:
                among.cp.add_implication(closed, ~on)


def _one_domain(among: _Among, rule: OneDomain) -> None:
    """Keep the rule's demands in one domain: that of running pods; without a single one, forbid them."""
    among.forbid_outside(rule.domains)
    coming = among.by_domain(
        rule.domains, lambda role: role.carries and not role.runs
    )
    opened = {
        domain: among.any_of(_literals(coming, domain)) for domain in coming
    }
    among.cp.add_at_most_one(opened.values())
    running = among.by_domain(
        rule.domains, lambda role: role.carries and role.runs
    )
    # Who runs leaves only its own domain open, and none if it is outside of all.
    closing: list[tuple[str | None, Literal]] = [
        (domain, among.any_of(_literals(running, domain))) for domain in running
    ]
    closing += [(None, on) for on in among.astray(rule.domains)]
    for open_domain, is_there in closing:
        for domain, is_opened in opened.items():
            if domain != open_domain:
                among.cp.add_implication(is_there, ~is_opened)


def _spread(among: _Among, rule: Spread) -> None:
    """Limit, where demands carry the constraint, their number above the smallest count anywhere in the end."""
    among.forbid_outside(rule.domains)
    counting = among.by_domain(rule.domains, lambda role: role.counts)
    checked = among.by_domain(
        rule.domains, lambda role: role.counts and (role.carries or role.runs)
    )
    highest_count = len(among.roles) + max(rule.counted.values(), default=0)
    # With fewer domains than ``minDomains``, the fewest are taken for none (KEP-3022).
    limit = 0 if rule.has_few_domains else highest_count
    fewest = among.cp.new_int_var(0, limit, "fewest")
    for domain in sorted(rule.every):
        newcomers = cp_model.LinearExpr.sum(_literals(counting, domain))
        among.cp.add(fewest <= rule.counted.get(domain, 0) + newcomers)
    carrying = among.by_domain(rule.domains, lambda role: role.carries)
    for domain in carrying:
        used = among.any_of(_literals(carrying, domain))
        # Who only counts may come after the last one that carries the constraint.
        newcomers = cp_model.LinearExpr.sum(_literals(checked, domain))
        skew_row = among.cp.add(
            rule.counted.get(domain, 0) + newcomers <= fewest + rule.max_skew
        )
        skew_row.only_enforce_if(used)


class _SpreadInTurn:
    """A rule of spread, as each demand that carries it finds its domains when it comes.

    ``class_of``: the number of the class of demands that have equals, which come in their order.
    """

    def __init__(
        self,
        among: _Among,
        rule: InterPodRule,
        class_of: Mapping[DemandIndex, int],
    ) -> None:
        assert isinstance(rule, Spread)
        self._among = among
        self._rule = rule
        self._class_of = class_of
        self._counting = among.by_domain(rule.domains, lambda role: role.counts)
        # By pair of demands, the smaller number first.
        self._is_before: dict[tuple[DemandIndex, DemandIndex], Literal] = {}

    def add(self, stop: Stop) -> None:
        """Add the rows of all who carry the rule."""
        homes: dict[DemandIndex, dict[str, list[Literal]]] = defaultdict(
            lambda: defaultdict(list)
        )
        carrying = self._among.by_domain(
            self._rule.domains, lambda role: role.carries
        )
        for domain, carriers in carrying.items():
            for demand, on in carriers:
                homes[demand][domain].append(on)
        for demand, home in stop.each(homes.items()):
            self._when_it_comes(demand, home)

    def _when_it_comes(
        self, demand: DemandIndex, home: Mapping[str, list[Literal]]
    ) -> None:
        """There are not too many where a demand comes to, above the fewest that count anywhere then."""
        cp, rule = self._among.cp, self._rule
        counts_before = {
            domain: self._count_before(domain, demand)
            for domain in sorted(rule.every)
        }
        highest_count = len(self._among.roles) + max(
            rule.counted.values(), default=0
        )
        limit = 0 if rule.has_few_domains else highest_count
        fewest = cp.new_int_var(0, limit, f"fewest before {demand}")
        for count in counts_before.values():
            cp.add(fewest <= count)
        itself = int(self._among.roles[demand].counts)
        for domain, on in home.items():
            is_home = self._among.any_of(on)
            count = counts_before[domain] + itself
            cp.add(count <= fewest + rule.max_skew).only_enforce_if(is_home)

    def _count_before(
        self, domain: str, demand: DemandIndex
    ) -> cp_model.LinearExpr:
        """Return the number of demands that count in a domain when a demand comes."""
        cp = self._among.cp
        count = cp_model.LinearExpr.sum([self._rule.counted.get(domain, 0)])
        for peer, on in grouped(self._counting.get(domain, ())).items():
            is_in = cp_model.LinearExpr.sum(on)
            if self._are_equal(peer, demand):
                count += is_in if peer < demand else 0
            elif peer != demand:
                # Both: the peer is in the domain, and comes before.
                is_there = cp.new_bool_var(
                    f"{peer} in {domain} before {demand}"
                )
                is_before = self._before(peer, demand)
                cp.add(is_there <= is_before)
                cp.add(is_there <= is_in)
                cp.add(is_there >= is_in + is_before - 1)
                count += is_there
        return count

    def _are_equal(self, first: DemandIndex, second: DemandIndex) -> bool:
        return first in self._class_of and self._class_of[
            first
        ] == self._class_of.get(second)

    def _before(
        self, first: DemandIndex, second: DemandIndex
    ) -> cp_model.LinearExpr:
        """1 if one of two demands comes before the other, or else 0; no two come at once."""
        if first > second:
            return 1 - self._before(second, first)
        if (first, second) not in self._is_before:
            cp, turn = self._among.cp, self._among.turn
            is_before = self._is_before[first, second] = cp.new_bool_var(
                f"{first} before {second}"
            )
            cp.add(turn(first) < turn(second)).only_enforce_if(is_before)
            cp.add(turn(second) < turn(first)).only_enforce_if(~is_before)
        return self._is_before[first, second]


def _affinity(among: _Among, rule: Affinity) -> None:
    """Let a demand with the terms come after a demand there that they name, or be the first where there is none yet."""
    cp, roles, turn = among.cp, among.roles, among.turn
    counting = [demand for demand, role in roles.items() if role.counts]
    beginning = {
        demand: cp.new_bool_var(f"begins {demand}")
        for demand in counting
        if roles[demand].carries and not any(rule.counted)
    }
    # Who begins is in a domain of every term itself, so that nobody can begin after it.
    cp.add_at_most_one(beginning.values())
    seen = among.anywhere_in(rule.domains, counting) if beginning else {}
    for demand, begins in beginning.items():
        for peer in counting:
            if peer != demand:
                cp.add(turn(demand) < turn(peer)).only_enforce_if(
                    begins, seen[peer]
                )
    terms = zip(rule.domains, rule.counted, strict=True)
    for term, (domains, counted_domains) in enumerate(terms):
        among.forbid_outside(domains)
        meant = among.by_domain(domains, lambda role: role.counts)
        carrying = among.by_domain(domains, lambda role: role.carries)
        for domain, carriers in carrying.items():
            # Pods that the term means are there already: whoever comes has company.
            if domain in counted_domains:
                continue
            opened = turn((rule, term, domain))
            _in_company(
                among, opened, meant.get(domain, []), carriers, beginning
            )


def _in_company(
    among: _Among,
    opened: cp_model.IntVar,
    meant: Iterable[tuple[DemandIndex, Literal]],
    carrying: Iterable[tuple[DemandIndex, Literal]],
    beginning: Mapping[DemandIndex, Literal],
) -> None:
    """Let a demand that the terms name be first in a domain and open it; those that carry the terms come later."""
    cp, turn = among.cp, among.turn
    on = grouped(meant)
    first = {demand: cp.new_bool_var(f"first {demand}") for demand in on}
    for demand, is_first in first.items():
        cp.add_bool_or([*on[demand], ~is_first])
        cp.add(opened >= turn(demand)).only_enforce_if(is_first)
    for demand, literal in carrying:
        # A literal that is always false stands for not beginning.
        begins = beginning.get(demand, cp.new_constant(0))
        cp.add_bool_or([*first.values(), begins, ~literal])
        cp.add(turn(demand) > opened).only_enforce_if(literal, ~begins)
