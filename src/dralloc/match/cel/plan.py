"""Compile a checked expression to closures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from dralloc.match.cel.access import Step, chain, device, or_else, present
from dralloc.match.cel.calls import call, membership
from dralloc.match.cel.check import Checked
from dralloc.match.cel.code import FIRST_LOCAL, Code, constant
from dralloc.match.cel.construct import new_list, new_map, new_message
from dralloc.match.cel.cost import COST_LIMIT
from dralloc.match.cel.data import MISSING, EvalError, TypeValue
from dralloc.match.cel.failure import SelectorError
from dralloc.match.cel.folds import Loop, fold
from dralloc.match.cel.logic import all_of, any_of, conditional, equals
from dralloc.match.cel.overloads import CONVERSION_NAMES, REGEX_NAMES, check_pattern
from dralloc.match.cel.syntax import (
    CONDITIONAL,
    Bind,
    Call,
    Fold,
    Ident,
    Index,
    ListLiteral,
    Literal,
    Logic,
    MapLiteral,
    Node,
    OptMap,
    Select,
    Struct,
    step_weight,
)
from dralloc.match.cel.variables import bind, lazy_variable, opt_map, opt_variable, variable

__all__ = ["plan"]


def plan(checked: Checked) -> tuple[Code, int]:
    """Compile; also returns how long a frame must be.

    Raises
    ------
    SelectorError
        A constant conversion fails, or a constant pattern is none.
    """
    planner = _Planner(checked)
    return planner.plan(checked.root), planner.size


class _Planner:
    def __init__(self, checked: Checked) -> None:
        self.checked = checked
        self.size = FIRST_LOCAL
        self.scope: dict[str, Code] = {}

    def plan(self, node: Node) -> Code:
        """Compile a node and all of its parts."""
        name = self.checked.names.get(node)
        if name is not None:
            return constant(TypeValue(name))
        return _PLANS[type(node)](self, node)

    def _slot(self) -> int:
        self.size += 1
        return self.size - 1

    def _inside(self, names: dict[str, Code], node: Node) -> Code:
        outer = self.scope
        self.scope = {**outer, **names}
        code = self.plan(node)
        self.scope = outer
        return code

    def _literal(self, node: Literal) -> Code:
        return constant(node.value)

    def _ident(self, node: Ident) -> Code:
        return self.scope.get(node.name) or device()

    def _select(self, node: Select) -> Code:
        if node.test:
            return present(self.plan(node.operand), node.field)
        return self._chain(node)

    def _chain(self, node: Node) -> Code:
        steps: list[Step] = []
        while isinstance(node, Select | Index) and node not in self.checked.names:
            if isinstance(node, Select):
                if node.test:
                    break
                steps.append(Step(constant(node.field), node.optional))
            else:
                key = self.plan(node.key)
                steps.append(Step(key, node.optional, 0 if key.attribute else 1))
            node = node.operand
        base = self.plan(node)
        of_device = isinstance(node, Ident) and node.name not in self.scope
        static = self.checked.types[node]
        optional = static.name == "optional_type" or (static.is_dyn and not of_device)
        return chain(base, steps[::-1], of_device=of_device, may_be_optional=optional)

    def _call(self, node: Call) -> Code:
        if node.function == CONDITIONAL:
            return conditional(*(self.plan(arg) for arg in node.args))
        if node.function in {"_==_", "_!=_"}:
            left, right = node.args
            return equals(self.plan(left), self.plan(right), negated=node.function == "_!=_")
        parts: tuple[Node, ...] = node.args
        if node.target is not None and node not in self.checked.namespaced:
            parts = (node.target, *node.args)
        args = []
        for part in parts:
            args.append(self.plan(part))  # noqa: PERF401 - a comprehension would cost a frame per level
        return self._function(node, parts, args)

    def _function(self, node: Call, parts: Sequence[Node], args: Sequence[Code]) -> Code:
        overloads = self.checked.overloads[node]
        name = overloads[0].name
        if name in {"or", "orValue"}:
            return or_else(args[0], args[1], unwrap=name == "orValue")
        pattern = args[1].value if name in REGEX_NAMES and args[1].literal else None
        if isinstance(pattern, str) and (problem := check_pattern(pattern)):
            raise SelectorError(parts[1].pos, f"program instantiation failed: {problem}")
        if name == "@in" and len(overloads) == 1 and args[1].literal and isinstance(args[1].value, tuple):
            found = membership(args[0], args[1].value)
            if found is not None:
                return found
        code = call(name, overloads, args, [self.checked.types[part] for part in parts])
        if name in CONVERSION_NAMES and args[0].literal:
            return self._folded(node, code)
        return code

    def _folded(self, node: Call, code: Code) -> Code:
        """Upstream computes conversions of constants before the selector is ever used, even where it would not be."""
        if code.value is not MISSING:
            return constant(code.value)
        try:
            code.run([0, COST_LIMIT])
        except EvalError as error:
            raise SelectorError(node.pos, f"program instantiation failed: {error}") from error
        return code

    def _logic(self, node: Logic) -> Code:
        terms = []
        for term in node.terms:
            terms.append(self.plan(term))  # noqa: PERF401 - as above
        return all_of(terms) if node.conjunction else any_of(terms)

    def _list(self, node: ListLiteral) -> Code:
        codes = []
        for item in node.items:
            codes.append(self.plan(item.value))  # noqa: PERF401 - as above
        return new_list(codes, [item.optional for item in node.items])

    def _map(self, node: MapLiteral) -> Code:
        keys, values = [], []
        for entry in node.entries:
            assert entry.key is not None
            assert not isinstance(entry.key, str)
            keys.append(self.plan(entry.key))
            values.append(self.plan(entry.value))
        return new_map(keys, values, [entry.optional for entry in node.entries])

    def _struct(self, node: Struct) -> Code:
        last = node.fields[-1] if node.fields else None
        value = self.plan(last.value) if last is not None else None
        optional = last is not None and last.optional
        return new_message(node.name.removeprefix("."), self.checked.types[node].name, value, optional=optional)

    def _fold(self, node: Fold) -> Code:
        source = self.plan(node.range)
        slots = tuple(self._slot() for _ in node.names)
        names = dict(zip(node.names, map(variable, slots), strict=True))
        guard = self._inside(names, node.guard) if node.guard is not None else None
        body = self._inside(names, node.body)
        return fold(Loop(node.kind, source, slots, body, guard, step_weight(node)))

    def _bind(self, node: Bind) -> Code:
        value, slot = self.plan(node.value), self._slot()
        return bind(slot, self._inside({node.name: lazy_variable(slot, value)}, node.body))

    def _opt_map(self, node: OptMap) -> Code:
        target, slots = self.plan(node.target), (self._slot(), self._slot())
        body = self._inside({node.name: opt_variable(slots)}, node.body)
        return opt_map(target, slots, body, flat=node.flat)


_PLANS: Final[dict[type, Callable[[Any, Any], Code]]] = {
    Literal: _Planner._literal,
    Ident: _Planner._ident,
    Select: _Planner._select,
    Index: _Planner._chain,
    Call: _Planner._call,
    Logic: _Planner._logic,
    ListLiteral: _Planner._list,
    MapLiteral: _Planner._map,
    Struct: _Planner._struct,
    Fold: _Planner._fold,
    Bind: _Planner._bind,
    OptMap: _Planner._opt_map,
}
