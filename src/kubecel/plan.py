"""Compile a checked expression to closures.

First lists, maps and messages that an expression builds; the rest is in `kubecel.calls`, `kubecel.logic`,
`kubecel.loops` and `kubecel.code`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from kubecel import syntax
from kubecel.calls import call, membership
from kubecel.check import Checked
from kubecel.code import (
    FIRST_LOCAL,
    AccessStep,
    Compiled,
    bind,
    chain,
    check_key,
    constant,
    device,
    lazy_variable,
    opt_map,
    opt_variable,
    or_else,
    present,
    read,
    variable,
)
from kubecel.cost import COST_LIMIT, LIST_COST, MAP_COST, STRUCT_COST
from kubecel.environment import CONSTANTS, MESSAGES
from kubecel.errors import CelRuntimeError, SelectorError
from kubecel.logic import all_of, any_of, conditional, equals
from kubecel.loops import Loop, fold
from kubecel.overloads import CONVERSION_NAMES, REGEX_NAMES, check_pattern
from kubecel.types import DYN, Type
from kubecel.values import (
    MISSING,
    EvalError,
    Frame,
    Optional,
    Run,
    TypeValue,
    Value,
    map_key,
)

__all__ = ["plan"]


def _new_list(items: Sequence[Compiled], optional: Sequence[bool]) -> Compiled:
    """``[a, ?b]``; a list of constants is one itself."""
    cost = LIST_COST + sum(code.cost for code in items)
    runs = tuple(code.run for code in items)
    if any(optional):
        return Compiled(_optional_list(runs, optional), cost)
    if all(code.literal for code in items):
        return constant(tuple(code.value for code in items))
    return Compiled(lambda frame: tuple([run(frame) for run in runs]), cost)


def _optional_list(runs: Sequence[Run], optional: Sequence[bool]) -> Run:
    parts = tuple(zip(runs, optional, strict=True))

    def run(frame: Frame) -> tuple[Value, ...]:
        values = []
        for item_run, is_optional in parts:
            value = item_run(frame)
            if is_optional:
                value = _unwrapped(value)
            if value is not MISSING:
                values.append(value)
        return tuple(values)

    return run


def _new_map(
    keys: Sequence[Compiled],
    values: Sequence[Compiled],
    optional: Sequence[bool],
) -> Compiled:
    """``{a: b, ?c: d}``; a map of constants is one itself."""
    codes = (*keys, *values)
    key_runs = [key.run for key in keys]
    value_runs = [value.run for value in values]
    run = _map(tuple(zip(key_runs, value_runs, optional, strict=True)))
    if all(code.literal for code in codes) and not any(optional):
        # A map that cannot be built fails when it is evaluated, and not before.
        with suppress(CelRuntimeError):
            return constant(run([]))
    return Compiled(run, MAP_COST + sum(code.cost for code in codes))


def _map(parts: tuple[tuple[Run, Run, bool], ...]) -> Run:
    def run(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key_run, value_run, optional in parts:
            key, value = key_run(frame), value_run(frame)
            if optional:
                value = _unwrapped(value)
                if value is MISSING:
                    # An optional entry without a value takes out an earlier one.
                    result.pop(map_key(key), None)
                    continue
            result[map_key(key)] = value
        return result

    return run


def _new_message(
    name: str, fields: Sequence[tuple[str, Compiled, bool]]
) -> Compiled:
    """``name{field: value, ?field: value}``."""
    message = MESSAGES[name]
    parts = tuple(
        (field, code.run, optional) for field, code, optional in fields
    )

    def run(frame: Frame) -> Value:
        values: dict[str, Value] = {}
        for field, inner, optional in parts:
            value = inner(frame)
            # The last field that is set counts, so it goes to the end.
            values.pop(field, None)
            values[field] = _unwrapped(value) if optional else value
        fields_set = {
            field: value
            for field, value in values.items()
            if value is not MISSING
        }
        return message.value(name, fields_set)

    return Compiled(run, STRUCT_COST + sum(code.cost for _, code, _ in fields))


def _unwrapped(value: Value) -> Value:
    """The value of an optional entry, or `MISSING`."""
    if type(value) is not Optional:
        raise EvalError(
            "cannot initialize optional entry from non-optional value"
        )
    return value.held()


# ----------------------------------------------------------------------------
# The planner: a method for each kind of node.


def plan(checked: Checked) -> tuple[Compiled, int]:
    """Compile; also returns how long a frame must be.

    Raises
    ------
    SelectorError
        A constant conversion fails, or a constant pattern is none.
    """
    planner = _Planner(checked)
    return planner.plan(checked.root), planner.size


class _Planner(syntax.Visitor[Compiled, Compiled]):
    def __init__(self, checked: Checked) -> None:
        super().__init__()
        self.checked = checked
        self.size = FIRST_LOCAL

    def plan(self, node: syntax.Expr) -> Compiled:
        """Compile a node and all of its parts."""
        name = self.checked.names.get(node)
        if name is not None:
            return constant(
                CONSTANTS[name] if name in CONSTANTS else TypeValue(name)
            )
        return self.rules[type(node)](self, node)

    def _slot(self) -> int:
        self.size += 1
        return self.size - 1

    def _literal(self, node: syntax.Literal) -> Compiled:
        return constant(node.value)

    def _variable(self, node: syntax.Ident) -> Compiled:
        local = self.scope.get(node.name)
        if local is None:
            return device()
        self._refuse_type(node, self.checked.types[node], node.name)
        return local

    def _refuse_type(self, node: syntax.Expr, static: Type, name: str) -> None:
        """Refuse a variable that holds a type: upstream looks for a type with the variable's name."""
        if static.name == "type":
            message = f"reference to undefined type: {name}"
            raise SelectorError(
                node.pos, f"program instantiation failed: {message}"
            )

    def _ident(self, node: syntax.Ident) -> Compiled:
        variable = self._variable(node)
        if self._may_be_optional(node):
            return read(variable)
        return variable

    def _may_be_optional(self, node: syntax.Expr) -> bool:
        static = self.checked.types[node]
        return static.name == "optional_type" or static.is_dyn

    def _select(self, node: syntax.Select | syntax.Index) -> Compiled:
        attribute = self._attribute(node, ())
        if isinstance(node, syntax.Select) and node.test:
            return present(attribute)
        return attribute

    _index = _select

    def _attribute(
        self, node: syntax.Expr, steps: tuple[AccessStep, ...]
    ) -> Compiled:
        """A chain of steps from a node; behind a conditional, each of the branches takes them."""
        while (
            isinstance(node, syntax.Select | syntax.Index)
            and node not in self.checked.names
        ):
            if isinstance(node, syntax.Select):
                # A test gives a bool, from which a new chain begins.
                if node.test and steps:
                    break
                step = AccessStep(
                    constant(node.field), node.optional, test=node.test
                )
            else:
                key = self._key(node.key)
                tested = isinstance(node.key, syntax.Select) and node.key.test
                # A key that is an attribute is resolved with the chain, free of charge.
                step_cost = 0 if key.attribute and not tested else 1
                step = AccessStep(key, node.optional, step_cost)
            steps = (step, *steps)
            node = node.operand
        if (
            isinstance(node, syntax.Call)
            and node.function == syntax.CONDITIONAL
        ):
            condition, yes, no = node.args
            return conditional(
                self.plan(condition),
                self._attribute(yes, steps),
                self._attribute(no, steps),
            )
        if not steps:
            return self._branch(node)
        if isinstance(node, syntax.Ident) and node not in self.checked.names:
            base = self._variable(node)
        else:
            base = self.plan(node)
        of_device = (
            isinstance(node, syntax.Ident) and node.name not in self.scope
        )
        optional = self._may_be_optional(node) and not of_device
        return chain(base, steps, of_device=of_device, may_be_optional=optional)

    def _branch(self, node: syntax.Expr) -> Compiled:
        """A branch of a conditional."""
        code = self.plan(node)
        if isinstance(node, syntax.Ident) or code.literal:
            return code
        if not self._may_be_optional(node):
            return code
        return read(code)

    def _key(self, node: syntax.Expr) -> Compiled:
        key = self.plan(node)
        if key.literal:
            try:
                check_key(key.value)
            except EvalError as error:
                message = f"program instantiation failed: {error}"
                raise SelectorError(node.pos, message) from error
        return key

    def _call(self, node: syntax.Call) -> Compiled:
        if node.function == syntax.CONDITIONAL:
            return self._attribute(node, ())
        if node.function in {"_==_", "_!=_"}:
            left_node, right_node = node.args
            negated = node.function == "_!=_"
            return equals(
                self.plan(left_node), self.plan(right_node), negated=negated
            )
        parts: tuple[syntax.Expr, ...] = node.args
        if node.target is not None and node not in self.checked.namespaced:
            parts = (node.target, *node.args)
        # A comprehension would cost one more frame of Python's stack per level.
        args = []
        for part in parts:
            args.append(self.plan(part))  # noqa: PERF401
        return self._function(node, parts, args)

    def _function(
        self,
        node: syntax.Call,
        parts: Sequence[syntax.Expr],
        args: Sequence[Compiled],
    ) -> Compiled:
        overloads = self.checked.overloads[node]
        name = overloads[0].name
        if name in {"or", "orValue"}:
            return or_else(args[0], args[1], unwrap=name == "orValue")
        # A constant pattern is compiled when upstream plans: a wrong one is refused before any device is seen.
        pattern = (
            args[1].value if name in REGEX_NAMES and args[1].literal else None
        )
        if isinstance(pattern, str) and (problem := check_pattern(pattern)):
            message = f"program instantiation failed: {problem}"
            raise SelectorError(parts[1].pos, message)
        if name == "@in" and len(overloads) == 1 and args[1].literal:
            container = args[1].value
            if isinstance(container, tuple):
                set_lookup = membership(args[0], container)
                if set_lookup is not None:
                    return set_lookup
        static_types = [self._static(part) for part in parts]
        code = call(name, overloads, args, static_types)
        if name in CONVERSION_NAMES and args[0].literal:
            return self._folded(node, code)
        return code

    def _static(self, node: syntax.Expr) -> Type:
        """Return the facts about the type of a node that are certain."""
        if node in self.checked.guessed:
            return DYN
        return self.checked.types[node]

    def _folded(self, node: syntax.Call, code: Compiled) -> Compiled:
        """Upstream computes conversions of constants before the selector is ever used, even where it would not be."""
        if code.value is not MISSING:
            return constant(code.value)
        try:
            code.run([0, COST_LIMIT])
        except EvalError as error:
            message = f"program instantiation failed: {error}"
            raise SelectorError(node.pos, message) from error
        return code

    def _logic(self, node: syntax.Logic) -> Compiled:
        terms = []
        for term in node.terms:
            terms.append(self.plan(term))  # noqa: PERF401 - as in `_call`
        if node.conjunction:
            return all_of(terms)
        return any_of(terms)

    def _list_literal(self, node: syntax.ListLiteral) -> Compiled:
        codes = []
        for item in node.items:
            codes.append(self.plan(item.value))  # noqa: PERF401 - as in `_call`
        return _new_list(codes, [item.optional for item in node.items])

    def _map_literal(self, node: syntax.MapLiteral) -> Compiled:
        keys, values = [], []
        for entry in node.entries:
            assert entry.key is not None
            assert not isinstance(entry.key, str)
            keys.append(self.plan(entry.key))
            values.append(self.plan(entry.value))
        return _new_map(
            keys, values, [entry.optional for entry in node.entries]
        )

    def _struct(self, node: syntax.Struct) -> Compiled:
        fields = [
            (str(field.key), self.plan(field.value), field.optional)
            for field in node.fields
        ]
        return _new_message(node.name.removeprefix("."), fields)

    def _fold(self, node: syntax.Fold) -> Compiled:
        source = self.plan(node.range)
        slots = tuple(self._slot() for _ in node.names)
        names = dict(zip(node.names, map(variable, slots), strict=True))
        with self.scoped(names):
            guard = self.plan(node.guard) if node.guard is not None else None
            body = self.plan(node.body)
        weight = syntax.step_weight(node)
        return fold(Loop(node.kind, source, slots, body, guard, weight))

    def _bind(self, node: syntax.Bind) -> Compiled:
        self._refuse_type(node, self.checked.types[node.value], node.name)
        value, slot = self.plan(node.value), self._slot()
        with self.scoped({node.name: lazy_variable(slot, value)}):
            return bind(slot, self.plan(node.body))

    def _opt_map(self, node: syntax.OptMap) -> Compiled:
        for static in self.checked.types[node.target].params:
            self._refuse_type(node, static, node.name)
        target, slots = self.plan(node.target), (self._slot(), self._slot())
        with self.scoped({node.name: opt_variable(slots)}):
            body = self.plan(node.body)
        return read(opt_map(target, slots, body, flat=node.flat))
