"""The type checker, by the rules of upstream's; and the checks that follow it.

First type parameters, what they stand for and which overloads that leaves; then the checker; then the checks of
constants and literals, which upstream does after checking types.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeAlias

from kubecel import syntax
from kubecel.environment import (
    CONSTANTS,
    DEVICE,
    MESSAGES,
    TYPE_NAMES,
    Environment,
)
from kubecel.overloads import Overload, check_pattern
from kubecel.overloads.strings import CLAUSES, clauses
from kubecel.syntax import (
    Call,
    Element,
    Expr,
    ListLiteral,
    Literal,
    MapLiteral,
    children,
)
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
    fresh,
    list_of,
    map_of,
    optional_of,
    type_of,
)
from kubecel.values import EvalError, Uint, type_named

__all__ = [
    "Checked",
    "assignable",
    "check",
    "more_general",
    "substitute",
    "validate",
]

# ----------------------------------------------------------------------------
# Type parameters: what they stand for, and which overloads that leaves. The rules,
# including their order, are those of upstream's checker, as they decide which overloads
# of a function apply (cel-go, ``checker/types.go``).

Bindings: TypeAlias = dict[Type, Type]
"""What type parameters stand for."""

_SCALARS = frozenset({"bool", "bytes", "double", "int", "string", "uint"})


class Parameters:
    """Type parameters with what they stand for so far."""

    def __init__(self) -> None:
        self._bindings: Bindings = {}
        self._count = 0

    def new(self) -> Type:
        """A parameter that may stand for anything."""
        self._count += 1
        return fresh(self._count)

    def known(self, declared: Type) -> Type:
        """A type with what is known about the parameters in it."""
        return substitute(self._bindings, declared)

    def final(self, declared: Type) -> Type:
        """Return the type at the end, where an open type variable stands for any type."""
        return substitute(self._bindings, declared, free_to_dyn=True)

    def accept(self, actual: Type, expected: Type) -> bool:
        """Whether a type may stand where another is expected; if so, parameters stand for what that needs."""
        return self._accept_all((actual,), (expected,))

    def _accept_all(
        self, actual: tuple[Type, ...], expected: tuple[Type, ...]
    ) -> bool:
        extended = assignable(self._bindings, actual, expected)
        if extended is None:
            return False
        self._bindings = extended
        return True

    def resolve(
        self,
        declared: Iterable[Overload],
        args: Sequence[Type],
        *,
        member: bool,
    ) -> tuple[tuple[Overload, ...], Type | None]:
        """The overloads that a call may mean, and the type of its result: dyn if they differ in it."""
        result: Type | None = None
        matching = []
        for overload in declared:
            if overload.member is not member or len(overload.params) != len(
                args
            ):
                continue
            params, returned = self._instance(overload)
            # What an overload binds stays bound for those behind it, as upstream's does.
            if not self._accept_all(tuple(args), params):
                continue
            matching.append(overload)
            returned = self.known(returned)
            if result is None:
                result = returned
            elif not result.is_dyn and returned != result:
                result = DYN
        return tuple(matching), result

    def _instance(self, overload: Overload) -> tuple[tuple[Type, ...], Type]:
        """The signature of an overload with its own type parameters."""
        params: Bindings = {}

        def renew(declared: Type) -> Type:
            if declared.is_param:
                if declared not in params:
                    params[declared] = self.new()
                return params[declared]
            if declared.params:
                renewed = tuple(renew(param) for param in declared.params)
                return Type(declared.name, renewed)
            return declared

        own_params = tuple(renew(param) for param in overload.params)
        return own_params, renew(overload.result)


def substitute(
    bindings: Bindings, declared: Type, *, free_to_dyn: bool = False
) -> Type:
    """Replace bound type parameters, and free ones by dyn if asked for."""
    if declared.is_param:
        bound = bindings.get(declared)
        if bound is not None:
            return substitute(bindings, bound, free_to_dyn=free_to_dyn)
        return DYN if free_to_dyn else declared
    if not declared.params:
        return declared
    params = tuple(
        substitute(bindings, param, free_to_dyn=free_to_dyn)
        for param in declared.params
    )
    return Type(declared.name, params, declared.label)


def assignable(
    bindings: Bindings, actual: tuple[Type, ...], expected: tuple[Type, ...]
) -> Bindings | None:
    """Return the bindings under which every actual type is assignable to the expected one, or None."""
    extended = dict(bindings)
    if _all_assignable(extended, actual, expected):
        return extended
    return None


def more_general(left: Type, right: Type) -> Type:
    """The more general of two types that are known to be assignable."""
    if _less_specific(left, right):
        return left
    return right


def _less_specific(left: Type, right: Type) -> bool:
    if left.is_dyn or left.is_param:
        return True
    if right.is_dyn or right.is_param or left.name != right.name:
        return False
    if left.name == "type":
        return True
    if len(left.params) != len(right.params):
        return False
    return all(map(_less_specific, left.params, right.params))


def _all_assignable(
    bindings: Bindings, actual: tuple[Type, ...], expected: tuple[Type, ...]
) -> bool:
    if len(actual) != len(expected):
        return False
    return all(map(partial(_assignable, bindings), actual, expected))


def _assignable(bindings: Bindings, actual: Type, expected: Type) -> bool:
    if expected.is_param:
        valid, bound = _substitutes(bindings, actual, expected)
        # A free parameter that cannot stand for the type (it occurs in it) may still be
        # what the other side's parameter stands for.
        if valid or bound:
            return valid
    if actual.is_param:
        return _substitutes(bindings, expected, actual)[0]
    if (
        actual.is_dyn
        or expected.is_dyn
        or "!error!" in {actual.name, expected.name}
    ):
        return True
    if "null_type" in {actual.name, expected.name}:
        return _nullable(expected if actual.name == "null_type" else actual)
    if actual.name != expected.name:
        return False
    if actual.name == "type":
        return True
    return _all_assignable(bindings, actual.params, expected.params)


def _nullable(expected: Type) -> bool:
    """Whether null is a value of a type: of wrappers, messages and times."""
    if expected.label:
        return True
    return expected.name not in _SCALARS and expected.name not in {
        "list",
        "map",
        "type",
    }


def _substitutes(
    bindings: Bindings, actual: Type, param: Type
) -> tuple[bool, bool]:
    """Whether `given` is valid for the parameter, and whether the parameter was bound before."""
    if actual == param:
        return True, True
    bound = bindings.get(param)
    if bound is None:
        if _free_of(bindings, param, actual):
            bindings[param] = actual
            return True, False
        return False, False
    if actual == bound:
        return True, True
    if not _assignable(bindings, actual, bound):
        return False, True
    # A parameter that an int and then a dyn have been given for is a dyn from now on.
    general = more_general(actual, bound)
    if _free_of(bindings, param, general):
        bindings[param] = general
    return True, True


def _free_of(bindings: Bindings, param: Type, within: Type) -> bool:
    """Whether the parameter does not occur in a type."""
    if param == within:
        return False
    if within.is_param:
        bound = bindings.get(within)
        return bound is None or _free_of(bindings, param, bound)
    return all(map(partial(_free_of, bindings, param), within.params))


# ----------------------------------------------------------------------------
# The checker: a method for each kind of node gives the node's type.

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


# ----------------------------------------------------------------------------
# Checks of constants and literals, which upstream does after checking types.


def validate(checked: Checked) -> list[Finding]:
    """Return the faults of literals: mixed types, and texts that are no patterns or formats."""
    findings: list[Finding] = []
    stack = [(checked.root, False)]
    while stack:
        node, in_format = stack.pop()
        if isinstance(node, ListLiteral) and not in_format:
            findings += _mixed(
                checked, [(item.value, item) for item in node.items]
            )
        elif isinstance(node, MapLiteral) and not in_format:
            keys = [entry.key for entry in node.entries]
            key_parts = [(key, None) for key in keys if isinstance(key, Expr)]
            findings += _mixed(checked, key_parts)
            value_parts = [(entry.value, entry) for entry in node.entries]
            findings += _mixed(checked, value_parts)
        elif isinstance(node, Call):
            findings += _call(checked, node)
            # The arguments of a format may be of any types.
            in_format = in_format or node.function == "format"
        stack += ((child, in_format) for child in children(node))
    return findings


def _mixed(
    checked: Checked, parts: Sequence[tuple[Expr, Element | None]]
) -> Iterator[Finding]:
    """Elements of other types than the first; dyn is a type of its own here."""
    first: Type | None = None
    for node, entry in parts:
        part_type = checked.types[node]
        if entry is not None and entry.optional and part_type.params:
            part_type = part_type.params[0]
        if first is None:
            first = part_type
        elif not _equivalent(first, part_type):
            yield node.pos, f"expected type '{first}' but found '{part_type}'"
            return


def _equivalent(left: Type, right: Type) -> bool:
    if left.name != right.name or len(left.params) != len(right.params):
        return False
    return all(map(_equivalent, left.params, right.params))


def _call(checked: Checked, node: Call) -> Iterator[Finding]:
    argument = node.args[0] if node.args else None
    if node.function == "matches" and isinstance(argument, Literal):
        if not isinstance(argument.value, str):
            return
        if problem := check_pattern(argument.value):
            yield argument.pos, f"invalid matches argument: {problem}"
    elif (
        node.function == "format"
        and isinstance(argument, ListLiteral)
        and isinstance(node.target, Literal)
    ):
        args = [item.value for item in argument.items]
        yield from _format(checked, node, str(node.target.value), args)


def _format(
    checked: Checked, node: Call, form: str, args: list[Expr]
) -> Iterator[Finding]:
    try:
        letters = [clause.letter for clause in clauses(form) if clause.letter]
    except EvalError as error:
        yield node.pos, str(error)
        return
    if len(letters) > len(args):
        yield node.pos, f"index {len(args)} out of range"
    elif len(letters) < len(args):
        counts = f"(expected {len(letters)}, got {len(args)})"
        yield node.pos, f"too many arguments supplied to string.format {counts}"
    else:
        for letter, arg in zip(letters, args, strict=True):
            yield from _clause(checked, letter, arg)


def _clause(checked: Checked, letter: str, arg: Expr) -> Iterator[Finding]:
    """A clause's argument; what a list or map literal holds must have a text, too."""
    message, kinds = CLAUSES[letter]
    parts = [arg]
    while parts:
        part = parts.pop()
        part_type = checked.types[part]
        if not part_type.is_dyn and type_named(part_type.name) not in kinds:
            yield (
                part.pos,
                f"error during formatting: {message}, was given {part_type}",
            )
            return
        if letter == "s" and isinstance(part, ListLiteral | MapLiteral):
            parts += children(part)
