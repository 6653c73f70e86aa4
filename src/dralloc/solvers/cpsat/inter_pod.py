"""Rules between pods by topology domain (see `dralloc.problem.inter_pod`), as rows over who is on which node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping

from ortools.sat.python import cp_model

from dralloc.grouping import grouped
from dralloc.problem.inter_pod import Affinity, AntiAffinity, Domains, InterPodRule, OneDomain, Role, Spread
from dralloc.solvers.cpsat.model import Model
from dralloc.solvers.cpsat.rows import Literal

__all__ = ["inter_pod_rules"]

_Turns = defaultdict[object, cp_model.IntVar]
"""When demands come, and some other times between their turns, as far as it matters to somebody."""


def inter_pod_rules(model: Model) -> None:
    """Every rule that some demand has a role in."""
    roles: dict[InterPodRule, dict[int, Role]] = defaultdict(dict)
    for demand in model.variables.miss:
        for role in model.problem.demands[demand].roles:
            roles[role.rule][demand] = role
    last = 2 * len(model.variables.miss) + 1
    turns: _Turns = defaultdict(lambda: model.cp.new_int_var(0, last, ""))
    for each in roles.values():
        # Who runs was there first: nobody comes before that.
        turns |= {demand: model.cp.new_constant(0) for demand, role in each.items() if role.runs}
    for rule, each in roles.items():
        among = _Among(model, each)
        match rule:
            case AntiAffinity():
                _anti_affinity(among, rule)
            case Affinity():
                _affinity(among, rule, turns)
            case Spread():
                _spread(among, rule)
            case OneDomain():
                _one_domain(among, rule)


class _Among:
    """Who of those with a role in a rule is in which domain."""

    def __init__(self, model: Model, roles: Mapping[int, Role]) -> None:
        self.cp = model.cp
        self.roles = roles
        self._names = [node.name for node in model.problem.nodes]
        self._on = [(demand, node, on) for (demand, node), on in model.variables.on.items() if demand in roles]

    def by_domain(self, domains: Domains, wanted: Callable[[Role], bool]) -> Mapping[str, list[tuple[int, Literal]]]:
        """By domain: demands of a sort, each with being on a node there."""
        there = ((domains.get(self._names[node]), (demand, on)) for demand, node, on in self._on)
        return grouped((domain, each) for domain, each in there if domain is not None and wanted(self.roles[each[0]]))

    def forbid_outside(self, domains: Domains) -> None:
        """Who comes and carries the rule is in some domain."""
        for demand, node, on in self._on:
            role = self.roles[demand]
            if role.carries and not role.runs and self._names[node] not in domains:
                self.cp.add(on == 0)

    def astray(self, domains: Domains) -> Iterator[Literal]:
        """That somebody who runs and carries the rule is on a node in no domain."""
        for demand, node, on in self._on:
            role = self.roles[demand]
            if role.carries and role.runs and self._names[node] not in domains:
                yield on

    def anywhere_in(self, topologies: Iterable[Domains], demands: Iterable[int]) -> Mapping[int, Literal]:
        """Whether each of some demands is in any domain: nobody sees it elsewhere."""
        labelled = {name for domains in topologies for name in domains}
        there = grouped((demand, on) for demand, node, on in self._on if self._names[node] in labelled)
        return {demand: self.any_of(there.get(demand, ())) for demand in demands}

    def any_of(self, literals: Iterable[Literal]) -> Literal:
        """A boolean that holds at least if one of these does."""
        found = self.cp.new_bool_var("")
        for literal in literals:
            self.cp.add_implication(literal, found)
        return found


def _anti_affinity(among: _Among, rule: AntiAffinity) -> None:
    """In a domain comes one demand that carries the term and counts, or any that carry it, or any that count."""
    sorts: tuple[Callable[[Role], bool], ...] = (
        lambda role: role.carries and role.counts and not role.runs,
        lambda role: role.carries and not role.counts and not role.runs,
        lambda role: role.counts and not role.carries and not role.runs,
    )
    both, carrying, counting = (among.by_domain(rule.domains, sort) for sort in sorts)
    for domain in dict.fromkeys((*both, *carrying, *counting)):
        alone = [on for _, on in both.get(domain, ())]
        others = [[on for _, on in sort.get(domain, ())] for sort in (carrying, counting)]
        among.cp.add_at_most_one([*alone, *(among.any_of(each) for each in others if each)])
        for known, closed in ((rule.counted, (*alone, *others[0])), (rule.carried, (*alone, *others[1]))):
            for on in closed if domain in known else ():
                among.cp.add(on == 0)
    _apart_from_running(among, rule)


def _apart_from_running(among: _Among, rule: AntiAffinity) -> None:
    """Nobody comes to a domain with a pod that runs of which the term keeps it out, or which it keeps out."""
    pairs: tuple[tuple[Callable[[Role], bool], Callable[[Role], bool]], ...] = (
        (lambda role: role.runs and role.counts, lambda role: role.carries and not role.runs),
        (lambda role: role.runs and role.carries, lambda role: role.counts and not role.runs),
    )
    for running, coming in pairs:
        there = among.by_domain(rule.domains, running)
        for domain, newcomers in among.by_domain(rule.domains, coming).items():
            closed = among.any_of(on for _, on in there.get(domain, ()))
            for _, on in newcomers:
                among.cp.add_implication(closed, ~on)


def _one_domain(among: _Among, rule: OneDomain) -> None:
    """Who comes is in one domain, and there are those who run: if they are in several, or in none, nobody comes."""
    among.forbid_outside(rule.domains)
    coming = among.by_domain(rule.domains, lambda role: role.carries and not role.runs)
    opened = {domain: among.any_of(on for _, on in each) for domain, each in coming.items()}
    among.cp.add_at_most_one(opened.values())
    running = among.by_domain(rule.domains, lambda role: role.carries and role.runs)
    there = [(domain, among.any_of(on for _, on in each)) for domain, each in running.items()]
    for domain, closing in (*there, *((None, on) for on in among.astray(rule.domains))):
        for other, literal in opened.items():
            if other != domain:
                among.cp.add_implication(closing, ~literal)


def _spread(among: _Among, rule: Spread) -> None:
    """Where demands carry the constraint, they are not too many above the fewest that count anywhere in the end."""
    among.forbid_outside(rule.domains)
    counting = among.by_domain(rule.domains, lambda role: role.counts)
    first = among.by_domain(rule.domains, lambda role: role.counts and (role.carries or role.runs))
    most = len(among.roles) + max(rule.counted.values(), default=0)
    fewest = among.cp.new_int_var(0, 0 if rule.has_few_domains else most, "fewest")
    for domain in rule.every:
        there = cp_model.LinearExpr.sum([on for _, on in counting.get(domain, ())])
        among.cp.add(fewest <= rule.counted.get(domain, 0) + there)
    for domain, carrying in among.by_domain(rule.domains, lambda role: role.carries).items():
        used = among.any_of(on for _, on in carrying)
        here = cp_model.LinearExpr.sum([on for _, on in first.get(domain, ())])
        among.cp.add(rule.counted.get(domain, 0) + here <= fewest + rule.max_skew).only_enforce_if(used)


def _affinity(among: _Among, rule: Affinity, turns: _Turns) -> None:
    """Who carries the terms comes after somebody there whom they mean, or begins where they mean nobody yet."""
    cp, roles = among.cp, among.roles
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
        for other in counting:
            if other != demand:
                cp.add(turns[demand] < turns[other]).only_enforce_if(begins, seen[other])
    for domains, known in zip(rule.domains, rule.counted, strict=True):
        among.forbid_outside(domains)
        meant = among.by_domain(domains, lambda role: role.counts)
        for domain, carrying in among.by_domain(domains, lambda role: role.carries).items():
            if domain not in known:
                _in_company(cp, turns, meant.get(domain, []), carrying, beginning)


def _in_company(
    cp: cp_model.CpModel,
    turns: _Turns,
    meant: Iterable[tuple[int, Literal]],
    carrying: Iterable[tuple[int, Literal]],
    beginning: Mapping[int, Literal],
) -> None:
    """Somebody who is meant is the first in the domain, and who carries the terms comes later."""
    on = grouped(meant)
    first = {demand: cp.new_bool_var(f"first {demand}") for demand in on}
    opened = turns[object()]
    for demand, is_first in first.items():
        cp.add_bool_or([*on[demand], ~is_first])
        cp.add(opened >= turns[demand]).only_enforce_if(is_first)
    for demand, literal in carrying:
        # A literal that is always false stands for not beginning.
        begins = beginning.get(demand, cp.new_constant(0))
        cp.add_bool_or([*first.values(), begins, ~literal])
        cp.add(turns[demand] > opened).only_enforce_if(literal, ~begins)
