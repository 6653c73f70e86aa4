"""The type checker, by the rules of upstream's: a method for each kind of node gives the node's type.

What type parameters stand for is in `kubecel.type_parameters`; the checks that follow are in `kubecel.literal_checks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kubecel import syntax
from kubecel.environment import (
    CONSTANTS,
    DEVICE,
    MESSAGES,
    TYPE_NAMES,
    Environment,
)
from kubecel.overloads import Overload
from kubecel.type_parameters import Parameters, more_general
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
from kubecel.values import Uint

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
    overloads: dict[syntax.Expr, tuple[Overload, ...]] = field(
        default_factory=dict
    )
    names: dict[syntax.Expr, str] = field(default_factory=dict)
    namespaced: set[syntax.Expr] = field(default_factory=set)


def check(
    root: syntax.Expr, environment: Environment
) -> tuple[Checked, list[Finding]]:
    """Check an expression; without findings it is sound."""
    checker = _Checker(Checked(root), environment)
    checker.check(root)
    types = checker.checked.types
    for node, declared in types.items():
        if declared.has_params:
            checker.checked.guessed.add(node)
            types[node] = checker.params.final(declared)
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
        result = self.rules[type(node)](self, node)
        if result.params and result.is_too_large:
            result = self._report(
                node, "the type of the expression is too large"
            )
        self.checked.types[node] = result
        return result

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
        declared = TYPE_NAMES.get(plain)
        if declared is None and plain not in CONSTANTS:
            return None
        self.checked.names[node] = plain
        return INT if declared is None else type_of(declared)

    def _ident(self, node: syntax.Ident) -> Type:
        declared = self.scope.get(node.name) or self._name(node, node.name)
        if declared is not None:
            return declared
        message = f"undeclared reference to '{node.name}' (in container '')"
        return self._report(node, message)

    def _select(self, node: syntax.Select) -> Type:
        # ``google.protobuf.Duration`` is one name, unless ``google`` is a variable.
        name = syntax.qualified_name(node)
        if name is not None and name.partition(".")[0] not in self.scope:
            declared = self._name(node, name)
            if declared is not None:
                return declared
        result = self._field(node)
        return self.params.known(BOOL if node.test else result)

    def _field(self, node: syntax.Select) -> Type:
        operand = self.params.known(self.check(node.operand))
        # A selection from an optional goes into what it holds, and gives an optional again.
        optional = operand.name == "optional_type"
        target = operand.params[0] if optional else operand
        result = DYN
        if target.name == "map":
            result = target.params[1]
        elif target == DEVICE:
            declared = self.environment.fields.get(node.field)
            result = declared or self._report(
                node, f"undefined field '{node.field}'"
            )
        elif target.is_message:
            result = self._report(node, f"undefined field '{node.field}'")
        elif target.is_param:
            # Nothing is known of it yet: from now on it may be anything.
            self.params.accept(DYN, target)
        elif not target.is_dyn and target != ERROR:
            self._report(
                node, f"type '{target}' does not support field selection"
            )
        if optional or node.optional:
            return optional_of(result)
        return result

    def _index(self, node: syntax.Index) -> Type:
        args = (self.check(node.operand), self.check(node.key))
        function = "_[?_]" if node.optional else "_[_]"
        return self._resolve(node, function, args, member=False)

    def _call(self, node: syntax.Call) -> Type:
        args = [self.check(arg) for arg in node.args]
        if node.target is None:
            function = node.function.removeprefix(".")
            return self._resolve(node, function, args, member=False)
        # ``sets.contains(...)`` is a function with a dot in its name, and no method.
        prefix = syntax.qualified_name(node.target)
        full = f"{prefix}.{node.function}".removeprefix(".")
        if prefix is not None and full in self.environment.functions:
            self.checked.namespaced.add(node)
            return self._resolve(node, full, args, member=False)
        args = [self.check(node.target), *args]
        return self._resolve(node, node.function, args, member=True)

    def _resolve(
        self,
        node: syntax.Expr,
        name: str,
        args: Sequence[Type],
        *,
        member: bool,
    ) -> Type:
        declared = self.environment.functions.get(name)
        if declared is None:
            message = f"undeclared reference to '{name}' (in container '')"
            return self._report(node, message)
        matching, result = self.params.resolve(declared, args, member=member)
        if result is None:
            return self._report(
                node, self._no_overload(name, args, member=member)
            )
        self.checked.overloads[node] = matching
        # Where nothing is known of an argument, the result's type is a guess as well.
        args_open = any(arg.is_dyn or arg.has_params for arg in args)
        if args_open and any(
            overload.result.has_params for overload in matching
        ):
            self.checked.guessed.add(node)
        return result

    def _no_overload(
        self, name: str, args: Sequence[Type], *, member: bool
    ) -> str:
        shown = [str(self.params.final(arg)) for arg in args]
        text = f"({', '.join(shown)})"
        if member:
            text = f"{shown[0]}.({', '.join(shown[1:])})"
        return f"found no matching overload for '{name}' applied to '{text}'"

    def _expect(self, node: syntax.Expr, actual: Type, expected: Type) -> None:
        if not self.params.accept(actual, expected):
            known = self.params.known(actual)
            self._report(
                node, f"expected type '{expected}' but found '{known}'"
            )

    def _logic(self, node: syntax.Logic) -> Type:
        for term in node.terms:
            self._expect(term, self.check(term), BOOL)
        return BOOL

    def _join(self, previous: Type | None, current: Type) -> Type:
        """The type of elements so far; what does not fit together is dyn, and `validate` decides about that."""
        if previous is None:
            return current
        if self.params.accept(previous, current):
            return more_general(previous, current)
        return DYN

    def _element(self, entry: syntax.Element) -> Type:
        value = self.check(entry.value)
        if not entry.optional:
            return value
        if value.name == "optional_type":
            return value.params[0]
        if not value.is_dyn:
            message = (
                f"expected type 'optional_type({value})' but found '{value}'"
            )
            self._report(entry.value, message)
        return value

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
            text = f"undeclared reference to '{node.name}' (in container '')"
            return self._report(node, text)
        fields = (
            self.environment.fields
            if message.result == DEVICE
            else message.fields
        )
        for entry in node.fields:
            value = self._element(entry)
            # In upstream's order: whether the declared type may stand where the value's does (cel-go, ``checker.go``).
            declared = fields.get(str(entry.key))
            if declared is None:
                self._report(entry, f"undefined field '{entry.key}'")
            elif not self.params.accept(declared, value):
                types = f"is '{declared}' but provided type is '{value}'"
                self._report(
                    entry, f"expected type of field '{entry.key}' {types}"
                )
        return message.result

    def _variables(self, node: syntax.Fold) -> dict[str, Type]:
        """The loop's variables: of a list the elements, of a map the keys, and both where there are two."""
        types: tuple[Type, ...]
        source = self.params.known(self.check(node.range))
        if source.name == "list" and len(node.names) == 1:
            types = (source.params[0],)
        elif source.name == "list":
            types = (INT, source.params[0])
        elif source.name == "map":
            types = source.params[: len(node.names)]
        elif source.name == "dyn" or source == ERROR or source.is_param:
            self.params.accept(DYN, source)
            types = (DYN,) * len(node.names)
        else:
            message = "cannot be range of a comprehension (must be list, map, or dynamic)"
            self._report(node.range, f"expression of type '{source}' {message}")
            types = (ERROR,) * len(node.names)
        return dict(zip(node.names, types, strict=True))

    def _fold(self, node: syntax.Fold) -> Type:
        variables = self._variables(node)
        with self.scoped(variables):
            if node.guard is not None:
                self._condition(node.guard, self.check(node.guard))
            body = self.check(node.body)
        if node.kind in {"all", "exists"}:
            self._expect(node.body, body, BOOL)
            return BOOL
        if node.kind == "exists_one":
            self._condition(node.body, body)
            return BOOL
        if node.kind == "map":
            return list_of(self.params.known(body))
        if node.kind == "transform_map":
            key = self.params.known(variables[node.names[0]])
            return map_of(key, self.params.known(body))
        result = map_of(self.params.new(), self.params.new())
        self._expect(node.body, body, result)
        return self.params.known(result)

    def _condition(self, node: syntax.Expr, actual: Type) -> None:
        """Loops with a guard are conditionals to upstream, and its messages show it."""
        if not self.params.accept(actual, BOOL):
            args = (actual, DYN, DYN)
            self._report(node, self._no_overload("_?_:_", args, member=False))

    def _bind(self, node: syntax.Bind) -> Type:
        with self.scoped({node.name: self.check(node.value)}):
            return self.params.known(self.check(node.body))

    def _opt_map(self, node: syntax.OptMap) -> Type:
        target = self.check(node.target)
        value = self.params.new()
        if not self.params.accept(target, optional_of(value)):
            self._report(
                node, self._no_overload("hasValue", (target,), member=True)
            )
        with self.scoped({node.name: self.params.known(value)}):
            body = self.check(node.body)
        if not node.flat:
            return optional_of(self.params.known(body))
        result = optional_of(self.params.new())
        if not self.params.accept(body, result):
            args = (BOOL, body, result)
            self._report(node, self._no_overload("_?_:_", args, member=False))
        return self.params.known(result)
