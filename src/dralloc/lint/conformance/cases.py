"""Recorded cases, one JSON object per line: read, asked again, and compared with what was recorded.

First the form of the cases, then where two answers differ, then allocation cases, then CEL cases.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from json import JSONDecodeError
from pathlib import Path
from typing import Any, Final

from pydantic import Field

from dralloc.check import check
from dralloc.compile.compiler import CompiledCluster, compile_cluster
from dralloc.compile.write import allocations
from dralloc.objects.answer import Document, Word
from dralloc.objects.cluster import Cluster
from dralloc.objects.errors import FatalError, Finding, InputError
from dralloc.objects.features import ALL_FEATURES, Features
from dralloc.objects.limits import LIMITS
from dralloc.objects.load import load_documents
from dralloc.objects.load.json_text import (
    TextError,
    content,
    json_value,
    unpacked,
)
from dralloc.problem.indices import numbered
from dralloc.problem.solution import Solution
from dralloc.solve.first_fit import first_fit
from dralloc.solve.optimum import Options, solve
from kubecel import (
    ALL_GATES,
    CelCompileError,
    CelRuntimeError,
    FeatureGates,
    compile_selector,
    device_from_wire,
    estimated_cost,
)

__all__ = [
    "AllocationCase",
    "CaseOutcome",
    "Json",
    "comparable",
    "first_difference",
    "name_shares",
    "read_allocation_case",
    "read_lines",
    "run_cel",
    "run_first_fit",
    "run_optimal",
]

# ----------------------------------------------------------------------------
# Recorded cases: one JSON object per line, in plain text or gzip.
#
# Two forms of allocation cases are known, told apart by their fields: problems with
# claims in wire form (``claims`` or ``pods``), and rows of upstream's own test tables
# (``claimsToAllocate``). Both become a cluster.

Json = Mapping[str, Any]

_POD = "pod"


def read_lines(path: Path) -> Iterator[Json]:
    """Yield the objects of a file with one JSON object per line.

    Raises
    ------
    InputError
        The file cannot be read, or a line is not a JSON object.
    """
    try:
        text = unpacked(content(path, LIMITS.unpacked), LIMITS.unpacked)
    except (OSError, TextError) as error:
        raise InputError(
            [Finding(str(path), "", "", f"cannot be read: {error}")]
        ) from None
    for line_number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield _object(line, f"{path}: line {line_number}")


def _object(line: bytes, source: str) -> Json:
    try:
        value = json_value(line)
    except JSONDecodeError as error:
        raise InputError(
            [Finding(source, "", "", f"is not JSON: {error}")]
        ) from None
    if not isinstance(value, dict):
        raise InputError([Finding(source, "", "", "is not a JSON object")])
    return value


@dataclass(frozen=True)
class AllocationCase:
    """A case ready to run.

    Parameters
    ----------
    pods
        Names of the pods in order, for a batch; empty if all claims are to be allocated together on one node.
    expected
        The recorded answer under the corrected rules, in its own form.
    """

    name: str
    profile: str
    cluster: Cluster
    features: Features
    pods: tuple[str, ...]
    expected: Json
    exact: tuple[bool, ...] | None = None
    error_contains: str | None = None


def read_allocation_case(case: Json) -> AllocationCase:
    """Make a case ready to run.

    Raises
    ------
    InputError
        Its objects are not valid, or it has neither of the known forms.
    """
    if "claimsToAllocate" in case:
        return _table_case(case)
    if "claims" in case or "pods" in case:
        return _recorded_case(case)
    name = str(case.get("id") or case.get("name") or "")
    raise InputError(
        [
            Finding(
                "",
                f"case {name}",
                "",
                "has neither claims, pods nor claimsToAllocate",
            )
        ]
    )


def _recorded_case(case: Json) -> AllocationCase:
    batch = case.get("pods")
    # A case with claims and one node is a batch of one pod that has them all.
    pods = (
        batch
        if batch is not None
        else [{"name": _POD, "claims": case["claims"]}]
    )
    nodes = case["nodes"] if batch is not None else [case["node"]]
    documents = [
        *_typed("Node", nodes),
        *_typed("DeviceClass", case["classes"]),
        *_typed("ResourceSlice", case["slices"]),
        *_typed("ResourceClaim", case["allocatedClaims"]),
        *(
            document
            for pod in pods
            for document in _pod(pod["name"], pod["claims"])
        ),
    ]
    return AllocationCase(
        name=case["id"],
        profile=case["profile"],
        cluster=load_documents(documents, source=f"case {case['id']}"),
        features=ALL_FEATURES.switched(case.get("features") or {}),
        pods=tuple(pod["name"] for pod in pods) if batch is not None else (),
        expected=case["expected"],
    )


def _table_case(case: Json) -> AllocationCase:
    source = f"case {case['name']}"
    documents = [
        *_typed("Node", [case["node"]]),
        *_typed("DeviceClass", case["classes"] or ()),
        *_typed("ResourceClaim", _holders(case)),
        *_pod(_POD, list(_renamed(case["claimsToAllocate"] or ()))),
    ]
    # Rows give the same name to several slices, which no cluster could hold; one by one they are fine.
    slices = [
        load_documents([document], source=source).slices[0]
        for document in _typed("ResourceSlice", case["slices"] or ())
    ]
    expected_error = case.get("expectError")
    return AllocationCase(
        name=case["name"],
        profile=case["table"],
        cluster=replace(
            load_documents(documents, source=source), slices=tuple(slices)
        ),
        features=ALL_FEATURES.switched(case["features"]),
        pods=(),
        expected=case.get("corrected") or case["actual"],
        exact=tuple(case.get("expectedResultIsExact") or ()),
        error_contains=expected_error["contains"] if expected_error else None,
    )


def _typed(kind: str, objects: Iterable[Json]) -> Iterator[Json]:
    version = "v1" if kind == "Node" else "resource.k8s.io/v1"
    return (
        {"apiVersion": version, "kind": kind, **fields} for fields in objects
    )


def _pod(name: str, claims: Sequence[Json]) -> Iterator[Json]:
    """Yield a pod that uses the claims, and the claims."""
    entries = [
        {"name": f"c{i}", "resourceClaimName": claim["metadata"]["name"]}
        for i, claim in enumerate(claims)
    ]
    namespaces = {
        claim["metadata"].get("namespace", "") for claim in claims
    } or {""}
    metadata = {"name": name, "namespace": namespaces.pop()}
    yield {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"resourceClaims": entries},
    }
    yield from _typed("ResourceClaim", claims)


def _renamed(claims: Sequence[Json]) -> Iterator[Json]:
    """Yield the claims; those that repeat a name get a number behind it."""
    seen: Counter[str] = Counter()
    for claim in claims:
        name = claim["metadata"]["name"]
        seen[name] += 1
        suffix = f"-{seen[name]}" if seen[name] > 1 else ""
        yield {
            **claim,
            "metadata": {**claim["metadata"], "name": f"{name}{suffix}"},
        }


def _holders(case: Json) -> Iterator[Json]:
    """Yield allocated claims that hold what a table row lists as allocated devices, shares and consumed capacity."""
    consumed = {
        _device(entry): entry["capacity"]
        for entry in case["aggregatedCapacity"] or ()
    }
    held = [
        {**entry, "request": "held"} for entry in case["allocatedDevices"] or ()
    ]
    shares = [
        {**entry, "consumedCapacity": consumed.pop(_device(entry), {})}
        for entry in case["allocatedSharedDevices"] or ()
    ]
    # Capacity that no listed share accounts for is held by a share of its own.
    for (driver, pool, device), amounts in consumed.items():
        shares.append(
            {
                "driver": driver,
                "pool": pool,
                "device": device,
                "shareID": "all",
                "consumedCapacity": amounts,
            }
        )
    shared = [{**entry, "request": "share"} for entry in shares]
    for holder_index, result in enumerate((*held, *shared)):
        allocation = {"devices": {"results": [result]}}
        yield {
            "metadata": {
                "name": f"holder-{holder_index}",
                "namespace": "default",
            },
            "status": {"allocation": allocation},
        }


def _device(entry: Json) -> tuple[str, str, str]:
    return entry["driver"], entry["pool"], entry["device"]


# ----------------------------------------------------------------------------
# Where two pieces of plain data differ first, and which words of errors are compared.

_SYNTAX_ERROR: Final = "Syntax error"
_NODE_BEFORE: Final = re.compile(r"^node \S+: ")
_DEFAULT_NAMESPACE: Final = "claim default/"


def first_difference(expected: Any, actual: Any, path: str = "") -> str:
    """Return path and values of the first difference, in the order of the expected data; empty if there is none."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in dict.fromkeys((*expected, *actual)):
            where = f"{path}.{key}" if path else str(key)
            if key not in actual:
                return f"{where}: expected {expected[key]!r}, got nothing"
            if key not in expected:
                return f"{where}: expected nothing, got {actual[key]!r}"
            if difference := first_difference(
                expected[key], actual[key], where
            ):
                return difference
        return ""
    if isinstance(expected, list) and isinstance(actual, list):
        for item_index, (expected_item, actual_item) in enumerate(
            zip(expected, actual, strict=False)
        ):
            if difference := first_difference(
                expected_item, actual_item, f"{path}[{item_index}]"
            ):
                return difference
        if len(expected) != len(actual):
            return (
                f"{path}: expected {len(expected)} entries, got {len(actual)}"
            )
        return ""
    return (
        ""
        if expected == actual
        else f"{path}: expected {expected!r}, got {actual!r}"
    )


def comparable(message: str) -> str:
    """Return an error without what depends on the recorder or on the parser.

    That is the node that recorded batches put before it, the default namespace, which upstream's own tables leave out,
    and the rest of a syntax error, where upstream lists the tokens of its parser generator.
    """
    head, syntax_error, _ = (
        _NODE_BEFORE.sub("", message)
        .replace(_DEFAULT_NAMESPACE, "claim ")
        .partition(_SYNTAX_ERROR)
    )
    return head + syntax_error


# ----------------------------------------------------------------------------
# The JSON of recorded answers that were asked again.


class OutcomeDocument(Document):
    """What ``dralloc conformance --json`` prints for each case, one in a line."""

    name: str
    profile: str
    passed: bool = Field(serialization_alias="pass")
    actual: Any
    """The answer, in the form of the recorded one."""
    difference: Word
    """The first difference; null if there is none."""


# ----------------------------------------------------------------------------
# Running allocation cases and comparing the answers with what was recorded.


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """An answer in the form of the recorded one, and where they first differ; the case passes if they do not."""

    name: str
    profile: str
    actual: Any
    difference: str

    @property
    def passed(self) -> bool:
        """Whether the answer is the recorded one."""
        return not self.difference

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain data, ready for JSON."""
        return OutcomeDocument.of(self).to_dict()


def run_first_fit(case: AllocationCase, *, pruning: bool = True) -> CaseOutcome:
    """Answer the case as upstream would and compare everything, errors word by word.

    Only the details of syntax errors differ: upstream lists the tokens of its parser generator there.
    Without pruning the steps of the search are compared, too, where a row of upstream's tables recorded them.
    """
    compiled = compile_cluster(case.cluster, features=case.features)
    solution = first_fit(compiled.problem, pruning=pruning)
    check(compiled.problem, solution)
    actual = (
        _batch_answer(case, compiled, solution)
        if case.pods
        else _single_answer(compiled, solution)
    )
    difference = _difference(case, actual)
    if not pruning and case.exact is not None and not difference:
        expected, steps = case.expected["allocateOne"], actual["allocateOne"]
        difference = (
            ""
            if steps == expected
            else f"allocateOne: expected {expected} steps, got {steps}"
        )
    return CaseOutcome(case.name, case.profile, actual, difference)


def run_optimal(case: AllocationCase) -> CaseOutcome:
    """Answer the case with the exact model.

    It passes if there is a solution exactly where one was recorded; in a batch, if at least as many pods are placed.
    """
    compiled = compile_cluster(case.cluster, features=case.features)
    solution = solve(
        compiled.problem, Options(), hint=first_fit(compiled.problem)
    )
    check(compiled.problem, solution)
    if case.pods:
        actual = _batch_answer(case, compiled, solution)
        recorded = sum(pod["node"] is not None for pod in case.expected["pods"])
        placed = len(solution.placements)
        difference = (
            ""
            if placed >= recorded
            else f"pods: expected at least {recorded} placed, got {placed}"
        )
    else:
        actual = _single_answer(compiled, solution)
        exists, recorded = (
            actual["result"] is not None,
            case.expected["result"] is not None,
        )
        difference = (
            ""
            if exists == recorded
            else f"result: expected {_some(recorded)}, got {_some(exists)}"
        )
    return CaseOutcome(case.name, case.profile, actual, difference)


def _some(exists: bool) -> str:
    return "a solution" if exists else "none"


def _single_answer(
    compiled: CompiledCluster, solution: Solution
) -> dict[str, Any]:
    error = solution.errors.get(0)
    written = allocations(compiled, solution)
    demands = compiled.problem.demands
    fits = len(solution.placements) == len(demands)
    result = (
        [
            written[claim.key].wire_form()
            for demand in demands
            for claim in demand.claims
        ]
        if fits
        else None
    )
    name_shares(result or ())
    return {
        "result": result,
        "error": str(error) if error else None,
        "errorKind": error
        and ("fatal" if isinstance(error, FatalError) else "node"),
        # Upstream needs one step to see that there is nothing to allocate.
        "allocateOne": solution.steps if demands else 1,
    }


def _batch_answer(
    case: AllocationCase, compiled: CompiledCluster, solution: Solution
) -> dict[str, Any]:
    demands = compiled.problem.demands
    demand_indices = {
        demand.key.name: demand_index
        for demand_index, demand in numbered(demands)
    }
    nodes = {
        placement.demand: compiled.problem.nodes[placement.node].name
        for placement in solution.placements
    }
    written = allocations(compiled, solution)
    pods: list[dict[str, Any]] = []
    for name in case.pods:
        demand_index, error = (
            demand_indices[name],
            solution.errors.get(demand_indices[name]),
        )
        allocated = (
            [
                written[claim.key].wire_form()
                for claim in demands[demand_index].claims
            ]
            if demand_index in nodes
            else None
        )
        fared = {
            "node": nodes.get(demand_index),
            "allocations": allocated,
            "error": str(error) if error else None,
        }
        pods.append({"name": name, **fared})
    name_shares(
        [allocation for pod in pods for allocation in pod["allocations"] or ()]
    )
    return {"pods": pods}


def name_shares(wire: Sequence[dict[str, Any]]) -> None:
    """Call the shares SHARE-1, SHARE-2, ... in order of appearance."""
    names: dict[str, str] = {}
    for allocation in wire:
        for result in allocation["devices"].get("results", ()):
            if "shareID" in result:
                result["shareID"] = names.setdefault(
                    result["shareID"], f"SHARE-{len(names) + 1}"
                )


def _difference(case: AllocationCase, actual: Json) -> str:
    if case.exact is not None:
        return _table_difference(case, actual)
    if not case.pods:
        return first_difference(
            _comparable_answer(case.expected), _comparable_answer(actual)
        )
    expected, answered = (
        {"pods": [*map(_comparable_answer, batch["pods"])]}
        for batch in (case.expected, actual)
    )
    return first_difference(expected, answered)


def _comparable_answer(answer: Json) -> dict[str, Any]:
    """Return the answer without its number of steps, and with the words of its error that can be the same."""
    without_steps = {
        key: value for key, value in answer.items() if key != "allocateOne"
    }
    return {
        **without_steps,
        "error": answer["error"] and comparable(answer["error"]),
    }


def _table_difference(case: AllocationCase, actual: Json) -> str:
    """Compare with a row of upstream's tables, where order counts only if the row says so."""
    # Upstream's tables have claims without a namespace.
    error_text = (actual["error"] or "").replace("default/", "")
    if case.error_contains and case.error_contains not in error_text:
        return f"error: expected one with {case.error_contains!r}, got {actual['error']!r}"
    expected, answered = (
        _comparable_answer(case.expected),
        _comparable_answer(actual),
    )
    # The tables have one fixed ID for all shares: only whether there is one is compared.
    for answer in (expected, answered):
        if answer["result"]:
            answer["result"] = list(map(_without_share_names, answer["result"]))
    if (
        expected["result"] is None
        or answered["result"] is None
        or not all(case.exact or ())
    ):
        expected, answered = _unordered(expected), _unordered(answered)
    return first_difference(expected, answered)


def _without_share_names(allocation: Json) -> dict[str, Any]:
    results = [
        {**result, "shareID": "shareID" in result}
        for result in allocation["devices"].get("results", ())
    ]
    return {
        **allocation,
        "devices": {**allocation["devices"], "results": results},
    }


def _unordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unordered(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((_unordered(item) for item in value), key=repr)
    return value


# ----------------------------------------------------------------------------
# Running CEL cases: one expression on one device.

COMPILE_ERROR = "compile-error"
RUNTIME_ERROR = "runtime-error"


@dataclass(frozen=True, slots=True)
class _Answer:
    """The value of an expression (true, false or the kind of error), the error's text, and costs where known."""

    value: bool | str
    message: str = ""
    cost: int | None = None
    highest_cost: int | None = None


def run_cel(case: Json) -> CaseOutcome:
    """Evaluate the case's expression and compare the answer with the recorded one.

    Cases are probes (``expect``: true, false, "compile-error" or "runtime-error") or rows of upstream's own table
    (``actualCompileError``, ``actualMatchError``, ``actualMatch``). Of rows, the text of errors and the costs are
    compared as well: ``actualCost`` if the evaluation ends without an error, and the estimate ``actualMaxCost``. Of
    syntax errors only the place counts: the rest of upstream's text lists the tokens of its parser generator.
    """
    answer = _answer(case)
    profile = f"cel/{case.get('category') or case.get('table') or 'other'}"
    return CaseOutcome(
        case["name"],
        profile,
        answer.value,
        next(_differences(case, answer), ""),
    )


def _answer(case: Json) -> _Answer:
    expression: str = case["expression"]
    gates = (
        _gates(case) if case.get("envType") == "NewExpressions" else ALL_GATES
    )
    device: dict[str, Any] = case["device"]
    highest: int | None = None
    try:
        selector = compile_selector(expression, gates)
        highest = estimated_cost(expression, gates)
        value, cost = selector.evaluate(
            device_from_wire(device["driver"], device)
        )
    except CelCompileError as error:
        return _Answer(COMPILE_ERROR, str(error))
    except CelRuntimeError as error:
        return _Answer(RUNTIME_ERROR, str(error), None, highest)
    return _Answer(value, "", cost, highest)


def _gates(case: Json) -> FeatureGates:
    features = ALL_FEATURES.switched(case.get("features") or {})
    return FeatureGates(
        features.ConsumableCapacity, features.ListTypeAttributes
    )


def _table_value(case: Json) -> bool | str:
    if case["actualCompileError"] is not None:
        return COMPILE_ERROR
    return (
        bool(case["actualMatch"])
        if case["actualMatchError"] is None
        else RUNTIME_ERROR
    )


def _differences(case: Json, answer: _Answer) -> Iterator[str]:
    expected = case["expect"] if "expect" in case else _table_value(case)
    if answer.value != expected or type(answer.value) is not type(expected):
        yield f"expected {expected!r}, got {answer.value!r}"
    if "expect" in case:
        return
    recorded = case["actualCompileError"] or case["actualMatchError"] or ""
    if comparable(recorded) != comparable(answer.message):
        yield f"error: expected {recorded!r}, got {answer.message!r}"
    if answer.cost is not None and answer.cost != case["actualCost"]:
        yield f"cost: expected {case['actualCost']}, got {answer.cost}"
    if answer.highest_cost != case["actualMaxCost"]:
        yield f"estimated cost: expected {case['actualMaxCost']}, got {answer.highest_cost}"
