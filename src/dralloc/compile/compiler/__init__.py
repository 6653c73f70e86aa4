"""From a cluster to the problem that the solvers read.

- `dralloc.compile.compiler.demands`: what is to be placed, in which order, and on which nodes it may be;
- `dralloc.compile.compiler.extended`: claims for the extended resources that pods ask for;
- `dralloc.compile.compiler.pod_rules`: what binds pods to nodes and to each other, beside devices;
- `dralloc.compile.compiler.topology`: the domains of nodes;
- `dralloc.compile.compiler.pod_groups`: the groups that pods are in;
- `dralloc.compile.compiler.group_trees`: the groups above these;
- `dralloc.compile.compiler.gangs`: which pods are placed together;
- `dralloc.compile.compiler.quotas`: which claims their namespaces may still make;
- `dralloc.compile.compiler.budgets`: what namespaces use of something that is capped or to be fair;
- `dralloc.compile.compiler.asked_amounts`: what a demand asks for at least;
- `dralloc.compile.compiler.worth`: what placing a demand is worth;
- `dralloc.compile.compiler.remarks`: what users should know about claims that are allocated already;
- `dralloc.compile.compiler.unmodelled`: what objects say that an answer leaves out.

Here all of this is put together, step by step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Unpack

from dralloc.compile.compiler.budgets import find_budgets
from dralloc.compile.compiler.demands import (
    ConstraintsAcross,
    Demands,
    find_across,
)
from dralloc.compile.compiler.extended import (
    DevicePlugins,
    with_extended_resources,
)
from dralloc.compile.compiler.gangs import Gangs, find_gangs
from dralloc.compile.compiler.pod_rules import PodRules
from dralloc.compile.compiler.quotas import Quotas
from dralloc.compile.compiler.remarks import other_version, remarks
from dralloc.compile.compiler.unmodelled import Unmodelled, find_unmodelled
from dralloc.compile.compiler.worth import Worth, annotated_values, worth_of
from dralloc.compile.inventory import (
    Drift,
    Inventory,
    find_drift,
    product_names,
    take_inventory,
)
from dralloc.compile.match import MatchTable, TaintRules
from dralloc.compile.modelled.field_uses import used
from dralloc.objects.api import Node as ApiNode
from dralloc.objects.api import Pod
from dralloc.objects.assembly.unasked import Unasked
from dralloc.objects.choices import (
    Choices,
    ChoiceWords,
    Ignored,
    Mode,
    Priorities,
    several,
)
from dralloc.objects.cluster import Cluster, cluster_of
from dralloc.objects.errors import DrallocError, Finding, InputError, no_node
from dralloc.objects.limits import without_garbage_collection
from dralloc.objects.names import ClaimKey, PoolID
from dralloc.objects.notebook import Brief
from dralloc.objects.user_rules import parsed_across, parsed_caps
from dralloc.problem import Demand, Problem
from dralloc.problem.ledger import Holding
from dralloc.problem.solution import Solution, devices_only, with_node_grants

__all__ = ["CompiledCluster", "compile_cluster"]

_IGNORED: Final = "first fit and the optimum ignore, as asked"

_ONLY_DEVICES: Final = "only devices count here, and not what else the pod takes of nodes, nor its rules for other pods"

_ONLY_NODES: Final = "these rules for other pods do not count here"


@dataclass(frozen=True, repr=False)
class CompiledCluster(Brief):
    """A problem with the objects behind its numbers, which the writer needs.

    Parameters
    ----------
    problem
        Demands for devices.
    cluster
        Also with the claims for extended resources.
    pods
        What pods take of nodes beside devices.
    worth
        How the weights of demands are made.
    findings
        Remarks about what does not fit together, beside those of the cluster itself.
    unasked
        The pods that are not to be placed, and why.
    left_out
        What objects say that some mode does not model.
    gangs
        Which pods are placed together.
    choices
        How it was compiled.
    """

    problem: Problem
    inventory: Inventory
    table: MatchTable
    cluster: Cluster
    pods: PodRules
    worth: Worth
    findings: tuple[Finding, ...] = ()
    unasked: Mapping[ClaimKey, Unasked] = field(default_factory=dict)
    left_out: tuple[Unmodelled, ...] = ()
    gangs: Gangs = field(default_factory=Gangs)
    choices: Choices = field(default_factory=Choices)

    def again(
        self, cluster: Cluster, *, nodes: Sequence[str] = ()
    ) -> CompiledCluster:
        """Compile a changed cluster in the same way.

        Parameters
        ----------
        nodes
            Names of nodes that count beside those that were chosen, if any were.
        """
        chosen = (*self.choices.nodes, *nodes) if self.choices.nodes else ()
        return compile_cluster(cluster, self.choices, nodes=chosen)

    def unmodelled(self, modes: Collection[Mode]) -> tuple[Finding, ...]:
        """Return the fields that one of the modes does not model, each with its object."""
        return tuple(
            finding
            for finding, ignoring in self.left_out
            if not ignoring.isdisjoint(modes)
        )

    def beside_devices(
        self, pods: Collection[Pod], *, strict: bool
    ) -> tuple[Finding, ...]:
        """The fields that answers leave out which look at devices alone, as those to what-if questions do.

        Parameters
        ----------
        pods
            Those that get new devices. Of such that have a node `unmodelled` knows nothing.

        Raises
        ------
        InputError
            If there is anything, and nothing may be in doubt.
        """
        running = used({"Pod": [pod for pod in pods if pod.spec.node_name]})
        ignored = (
            self.cluster.remark(use.about, use.path, use.rule)
            for use in running
            if Mode.OPTIMAL in use.modes
        )
        findings = [*self.unmodelled({Mode.OPTIMAL}), *ignored]
        if bound := list(self.pods.bound(pods)):
            further = (
                f" (here and in {len(bound) - 1} more)"
                if len(bound) > 1
                else ""
            )
            findings.append(
                self.cluster.remark(
                    bound[0], "spec", f"{_ONLY_DEVICES}{further}"
                )
            )
        if strict and findings:
            raise InputError(findings)
        return tuple(findings)

    def beside_pods_alone(
        self, pods: Collection[Pod], *, strict: bool
    ) -> tuple[Finding, ...]:
        """The fields that answers leave out which look at devices and nodes, but not at where else other pods are.

        Raises
        ------
        InputError
            If there is anything, and nothing may be in doubt.
        """
        findings = list(self.unmodelled({Mode.OPTIMAL}))
        if bound := self.pods.bound_to_others(pods):
            further = (
                f" (here and in {len(bound) - 1} more)"
                if len(bound) > 1
                else ""
            )
            rules = ", ".join(sorted(set().union(*bound.values())))
            first = self.cluster.pods_by_key[next(iter(bound))]
            findings.append(
                self.cluster.remark(
                    first, "spec", f"{_ONLY_NODES}: {rules}{further}"
                )
            )
        if strict and findings:
            raise InputError(findings)
        return tuple(findings)

    @cached_property
    def holdings(self) -> tuple[Holding, ...]:
        """The holdings of allocated claims, among published devices."""
        return tuple(self.inventory.holdings(self.cluster.claims))

    @cached_property
    def products(self) -> tuple[str, ...]:
        """The product name of each device of the problem."""
        return tuple(product_names(self.inventory.sources))

    @cached_property
    def whole(self) -> Problem:
        """The problem with everything else that binds pods to nodes; its demands have the same numbers."""
        return self.pods.applied(self.problem)

    @property
    def may_bind(self) -> bool:
        """Whether anything beside devices may bind pods to nodes or to each other, once things are different."""
        return self.pods.may_bind or self.whole is not self.problem

    def keeping(self, solution: Solution) -> CompiledCluster:
        """Return the cluster with weights by which the demands that an answer places outweigh all others together."""
        worth = self.worth.keeping(
            frozenset(placement.demand for placement in solution.placements)
        )
        return replace(self, problem=worth.applied(self.problem), worth=worth)

    def of_devices(self, solution: Solution) -> Solution:
        """An answer to the whole problem as one to the problem of devices."""
        return replace(
            solution,
            placements=tuple(devices_only(self.whole, solution.placements)),
        )

    def of_whole(self, solution: Solution) -> Solution:
        """An answer to the problem of devices as one to the whole problem, which it may not be."""
        return replace(
            solution,
            placements=tuple(with_node_grants(self.whole, solution.placements)),
        )

    def is_claim(self, demand: Demand) -> bool:
        """Whether a demand is a claim that no pod uses, and not a pod (which may have the same name)."""
        return self.cluster.is_lone(
            demand.key, (claim.key for claim in demand.claims)
        )


@without_garbage_collection()
def compile_cluster(
    cluster: Cluster,
    choices: Choices | None = None,
    *,
    modes: Collection[Mode] = (Mode.OPTIMAL,),
    **words: Unpack[ChoiceWords],
) -> CompiledCluster:
    """Compile what a cluster wants and has.

    Parameters
    ----------
    modes
        For what: with the choice `strict`, objects that say what these do not model are refused.
    choices, words
        What of it is looked at (see `dralloc.Choices`).

    Raises
    ------
    DrallocError
        A named node does not exist, or nothing has the name that a cap or fairness is about; `InputError` if something
        is refused.
    """
    choices = Choices.of(choices, words)
    features, caps = choices.features, parsed_caps(choices.caps)
    cluster = cluster_of(cluster).including(choices.include)
    cluster = cluster.with_gates(features)
    chosen = _choose(cluster.nodes, choices.nodes)
    # Before all else: it makes claims, and what is compiled are claims.
    extended = with_extended_resources(cluster, chosen, features)
    cluster = extended.cluster
    plugins = DevicePlugins(cluster, chosen, features)
    gangs, across = _find_spans(cluster, choices, plugins)
    # The supply: devices of the newest complete pools, what is left of them, and which requests they match.
    drifts = tuple(find_drift(cluster.slices, cluster.claims, features))
    inventory = take_inventory(
        cluster.slices,
        chosen,
        cluster.claims,
        _attributes(cluster) | across.attributes,
        features,
        _closed_pools(drifts) if choices.strict else {},
    )
    # Only now is it known what attributes the devices have that pods hold.
    across = across.beside(cluster, inventory)
    rules = cluster.taint_rules if features.DeviceTaintRules else ()
    table = MatchTable(inventory, features, TaintRules(rules, cluster.classes))
    # The demands, in the order in which the scheduler would take them, and the rules that bind them to nodes.
    quotas = Quotas(cluster, features)
    pods = PodRules(
        cluster,
        chosen,
        plugins.backed,
        several(Ignored, "rule to ignore", choices.ignore),
    )
    demands = Demands(
        cluster,
        chosen,
        table,
        extended.elsewhere,
        quotas.defects,
        gangs,
        across,
        plugins,
        pods.ignored,
    )
    pending = demands.in_order()
    budgets = find_budgets(
        cluster,
        _of_budgets(cluster, choices, inventory),
        pending,
        caps,
        choices.fair,
    )
    problem, worth = _weighted(
        Problem(
            demands=pending,
            nodes=inventory.nodes,
            devices=table.devices,
            counters=inventory.counters,
            usage=inventory.usage,
            eligibility=table,
            features=features,
            budgets=budgets,
        ),
        cluster,
        choices,
    )
    # What users should know about it.
    findings = (
        *other_version(cluster, choices),
        *extended.findings,
        *remarks(cluster, table, drifts, caps),
        *quotas.findings(),
        *gangs.findings,
        *demands.findings,
        *_ignored_rules(pods),
    )
    left_out = tuple(find_unmodelled(cluster, problem))
    compiled = CompiledCluster(
        problem,
        inventory,
        table,
        cluster,
        pods,
        worth,
        findings,
        demands.unasked,
        left_out,
        gangs,
        choices,
    )
    if choices.strict and (refused := compiled.unmodelled(modes)):
        raise InputError(refused)
    return compiled


def _find_spans(
    cluster: Cluster, choices: Choices, plugins: DevicePlugins
) -> tuple[Gangs, ConstraintsAcross]:
    """Find the demands that belong together: gangs, and constraints over several claims, some of which make gangs."""
    everywhere = parsed_across(choices.across)
    spanned = any(spanning.over == "gang" for spanning in everywhere)
    gangs = find_gangs(
        cluster, choices.features, plugins, choices.gang, spanned=spanned
    )
    return gangs, find_across(cluster, gangs, everywhere)


def _closed_pools(drifts: Iterable[Drift]) -> dict[PoolID, str]:
    """Return the pools of which nothing is given because an allocated claim contradicts them, with the reason."""
    return {
        drift.pool: f"{drift.claim.title}: {drift.path}: {drift.rule}"
        for drift in drifts
    }


def _weighted(
    problem: Problem, cluster: Cluster, choices: Choices
) -> tuple[Problem, Worth]:
    """Return the problem with the weights of its demands, and what these weights mean.

    They are worked out from the problem, as what a demand takes of an amount depends on who matches.
    """
    worth = worth_of(
        problem,
        Priorities(choices.priorities),
        choices.objective,
        annotated_values(cluster, problem.demands),
    )
    return worth.applied(problem), worth


def _ignored_rules(pods: PodRules) -> Iterator[Finding]:
    """Yield which rules of pods do not count because the user said so."""
    if pods.ignored:
        yield Finding(
            "", "", "", f"{_IGNORED}: {', '.join(sorted(pods.ignored))}"
        )


def _of_budgets(
    cluster: Cluster, choices: Choices, chosen: Inventory
) -> Inventory:
    """Return the devices in which budgets count a namespace's use: those of nodes that are not chosen, too."""
    if choices.nodes and (choices.caps or choices.fair):
        return take_inventory(
            cluster.slices,
            cluster.nodes,
            cluster.claims,
            frozenset(),
            choices.features,
        )
    return chosen


def _choose(
    nodes: Sequence[ApiNode], names: Sequence[str]
) -> tuple[ApiNode, ...]:
    if not names:
        return tuple(nodes)
    by_name = {node.metadata.name: node for node in nodes}
    for name in names:
        if name not in by_name:
            raise DrallocError(no_node(name, by_name))
    return tuple(by_name[name] for name in names)


def _attributes(cluster: Cluster) -> frozenset[str]:
    """The attributes that constraints of pending claims compare."""
    return frozenset(
        constraint.match_attribute or constraint.distinct_attribute or ""
        for claim in cluster.claims
        if claim.status.allocation is None
        for constraint in claim.spec.devices.constraints
    )
