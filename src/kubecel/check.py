"""The type checker, by the rules of upstream's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kubecel import syntax
from kubecel.data import Uint
from kubecel.environment import TYPE_NAMES, Environment
from kubecel.messages import CONSTANTS, DEVICE, MESSAGES
from kubecel.overloads import Overload
from kubecel.parameters import Parameters, more_general
from kubecel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
    optional_of,
    type_of,
)

__all__ = ["Checked", "Finding", "check"]

Finding = tuple[int, str]
"""Where and what."""

_LITERALS: Final = {
    bool: BOOL,
    int: INT,
    Uint: UINT,
    float: DOUBLE,
    str: STRING,
    bytes: BYTES,
    type(None): NULL,
}


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked expression.

    Parameters
    ----------
    root
        The expression.
    types
        The type of every node.
    guessed
        Nodes whose type is what is expected of dynamic values, which may be of any other.
    overloads
        The overloads that each call may mean.
    names
        Nodes that are the name of a type or constant, which they spell.
    namespaced
        Calls whose target and function together are the function's name.
    """

    root: syntax.Expr
    types: dict[syntax.Expr, Type] = field(default_factory=dict)
    guessed: set[syntax.Expr] = field(default_factory=set)
    overloads: dict[syntax.Expr, tuple[Overload, ...]] = field(default_factory=dict)
    names: dict[syntax.Expr, str] = field(default_factory=dict)
    namespaced: set[syntax.Expr] = field(default_factory=set)


def check(root: syntax.Expr, environment: Environment) -> tuple[Checked, list[Finding]]:
    """Check an expression; without findings it is sound."""
    checker = _Checker(Checked(root), environment)
    checker.check(root)
    types = checker.checked.types
    for node, found in types.items():
        if found.has_params:
            checker.checked.guessed.add(node)
            types[node] = checker.params.final(found)
    return checker.checked, checker.findings


class _Checker(syntax.Visitor[Type, Type]):
    def __init__(self, checked: Checked, environment: Environment) -> None:
        super().__init__()
        self.checked = checked
        self.environment = environment
        self.params = Parameters()
        self.findings: list[Finding] = []

    def check(self, node: syntax.Expr) -> Type:
        """Find the type of a node and of all of its parts."""
        found = self.rules[type(node)](self, node)
        if found.params and found.is_too_large:
            found = self._report(node, "the type of the expression is too large")
        self.checked.types[node] = found
        return found

    def _report(self, node: syntax.Expr | syntax.Element, message: str) -> Type:
        self.findings.append((node.pos, message))
        return ERROR

    def _literal(self, node: syntax.Literal) -> Type:
        return _LITERALS[type(node.value)]

    def _name(self, node: syntax.Expr, name: str) -> Type | None:
        """The type of a global name, if it is one."""
        plain = name.removeprefix(".")
        if plain == "device":
            return DEVICE
        found = TYPE_NAMES.get(plain)
        if found is None and plain not in CONSTANTS:
            return None
        self.checked.names[node] = plain
        return INT if found is None else type_of(found)

    def _ident(self, node: syntax.Ident) -> Type:
        found = self.scope.get(node.name) or self._name(node, node.name)
        return found or self._report(
            node, f"undeclared reference to '{node.name}' (in container '')"
        )

    def _select(self, node: syntax.Select) -> Type:
        name = syntax.qualified_name(node)
        if name is not None and name.partition(".")[0] not in self.scope:
            found = self._name(node, name)
            if found is not None:
                return found
        result = self._field(node)
        return self.params.known(BOOL if node.test else result)

    def _field(self, node: syntax.Select) -> Type:
        operand = self.params.known(self.check(node.operand))
        optional = operand.name == "optional_type"
        target = operand.params[0] if optional else operand
        result = DYN
        if target.name == "map":
            result = target.params[1]
        elif target == DEVICE:
            declared = self.environment.fields.get(node.field)
            result = declared or self._report(node, f"undefined field '{node.field}'")
        elif target.is_message:
            result = self._report(node, f"undefined field '{node.field}'")
        elif target.is_param:
            self.params.accept(DYN, target)
        elif not target.is_dyn and target != ERROR:
            self._report(node, f"type '{target}' does not support field selection")
        return optional_of(result) if optional or node.optional else result

    def _index(self, node: syntax.Index) -> Type:
        args = (self.check(node.operand), self.check(node.key))
        return self._resolve(
            node, "_[?_]" if node.optional else "_[_]", args, member=False
        )

    def _call(self, node: syntax.Call) -> Type:
        args = [self.check(arg) for arg in node.args]
        if node.target is None:
            return self._resolve(
                node, node.function.removeprefix("."), args, member=False
            )
        prefix = syntax.qualified_name(node.target)
        full = f"{prefix}.{node.function}".removeprefix(".")
        if prefix is not None and full in self.environment.functions:
            self.checked.namespaced.add(node)
            return self._resolve(node, full, args, member=False)
        return self._resolve(
            node, node.function, [self.check(node.target), *args], member=True
        )

    def _resolve(
        self, node: syntax.Expr, name: str, args: Sequence[Type], *, member: bool
    ) -> Type:
        declared = self.environment.functions.get(name)
        if declared is None:
            return self._report(
                node, f"undeclared reference to '{name}' (in container '')"
            )
        matching, result = self.params.resolve(declared, args, member=member)
        if result is None:
            return self._report(node, self._no_overload(name, args, member=member))
        self.checked.overloads[node] = matching
        if any(arg.is_dyn or arg.has_params for arg in args) and any(
            one.result.has_params for one in matching
        ):
            self.checked.guessed.add(node)
        return result

    def _no_overload(self, name: str, args: Sequence[Type], *, member: bool) -> str:
        shown = [str(self.params.final(arg)) for arg in args]
        text = (
            f"{shown[0]}.({', '.join(shown[1:])})"
            if member
            else f"({', '.join(shown)})"
        )
        return f"found no matching overload for '{name}' applied to '{text}'"

    def _wants(self, node: syntax.Expr, given: Type, wanted: Type) -> None:
        if not self.params.accept(given, wanted):
            self._report(
                node, f"expected type '{wanted}' but found '{self.params.known(given)}'"
            )

    def _logic(self, node: syntax.Logic) -> Type:
        for term in node.terms:
            self._wants(term, self.check(term), BOOL)
        return BOOL

    def _join(self, previous: Type | None, current: Type) -> Type:
        """The type of elements so far; what does not fit together is dyn, and `validate` decides about that."""
        if previous is None:
            return current
        return (
            more_general(previous, current)
            if self.params.accept(previous, current)
            else DYN
        )

    def _element(self, entry: syntax.Element) -> Type:
        found = self.check(entry.value)
        if not entry.optional:
            return found
        if found.name != "optional_type":
            if not found.is_dyn:
                self._report(
                    entry.value,
                    f"expected type 'optional_type({found})' but found '{found}'",
                )
            return found
        return found.params[0]

    def _list_literal(self, node: syntax.ListLiteral) -> Type:
        element: Type | None = None
        for item in node.items:
            element = self._join(element, self._element(item))
        return list_of(element or self.params.new())

    def _map_literal(self, node: syntax.MapLiteral) -> Type:
        key: Type | None = None
        value: Type | None = None
        for entry in node.entries:
            if entry.key is not None and not isinstance(entry.key, str):
                key = self._join(key, self.check(entry.key))
            value = self._join(value, self._element(entry))
        return map_of(key or self.params.new(), value or self.params.new())

    def _struct(self, node: syntax.Struct) -> Type:
        name = node.name.removeprefix(".")
        message = MESSAGES.get(name)
        if message is None:
            return self._report(
                node, f"undeclared reference to '{node.name}' (in container '')"
            )
        fields = self.environment.fields if message.result == DEVICE else message.fields
        for entry in node.fields:
            found = self._element(entry)
            wanted = fields.get(str(entry.key))
            if wanted is None:
                self._report(entry, f"undefined field '{entry.key}'")
            elif not self.params.accept(wanted, found):
                message_text = f"is '{wanted}' but provided type is '{found}'"
                self._report(
                    entry, f"expected type of field '{entry.key}' {message_text}"
                )
        return message.result

    def _variables(self, node: syntax.Fold) -> dict[str, Type]:
        types: tuple[Type, ...]
        found = self.params.known(self.check(node.range))
        if found.name == "list":
            types = (
                (found.params[0],) if len(node.names) == 1 else (INT, found.params[0])
            )
        elif found.name == "map":
            types = found.params[: len(node.names)]
        elif found.name == "dyn" or found == ERROR or found.is_param:
            self.params.accept(DYN, found)
            types = (DYN,) * len(node.names)
        else:
            message = (
                "cannot be range of a comprehension (must be list, map, or dynamic)"
            )
            self._report(node.range, f"expression of type '{found}' {message}")
            types = (ERROR,) * len(node.names)
        return dict(zip(node.names, types, strict=True))

    def _fold(self, node: syntax.Fold) -> Type:
        variables = self._variables(node)
        with self.scoped(variables):
            if node.guard is not None:
                self._condition(node.guard, self.check(node.guard))
            body = self.check(node.body)
        if node.kind in {"all", "exists"}:
            self._wants(node.body, body, BOOL)
            return BOOL
        if node.kind == "exists_one":
            self._condition(node.body, body)
            return BOOL
        if node.kind == "map":
            return list_of(self.params.known(body))
        if node.kind == "transform_map":
            return map_of(
                self.params.known(variables[node.names[0]]), self.params.known(body)
            )
        result = map_of(self.params.new(), self.params.new())
        self._wants(node.body, body, result)
        return self.params.known(result)

    def _condition(self, node: syntax.Expr, given: Type) -> None:
        if not self.params.accept(given, BOOL):
            self._report(
                node, self._no_overload("_?_:_", (given, DYN, DYN), member=False)
            )

    def _bind(self, node: syntax.Bind) -> Type:
        with self.scoped({node.name: self.check(node.value)}):
            return self.params.known(self.check(node.body))

    def _opt_map(self, node: syntax.OptMap) -> Type:
        target = self.check(node.target)
        value = self.params.new()
        if not self.params.accept(target, optional_of(value)):
            self._report(node, self._no_overload("hasValue", (target,), member=True))
        with self.scoped({node.name: self.params.known(value)}):
            body = self.check(node.body)
        if not node.flat:
            return optional_of(self.params.known(body))
        result = optional_of(self.params.new())
        if not self.params.accept(body, result):
            self._report(
                node, self._no_overload("_?_:_", (BOOL, body, result), member=False)
            )
        return self.params.known(result)
