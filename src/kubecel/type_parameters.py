"""Type parameters: what they stand for, and which overloads that leaves.

The rules, including their order, are those of upstream's checker, as they decide which overloads of a function apply
(cel-go, ``checker/types.go``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TypeAlias

from kubecel.overloads import Overload
from kubecel.types import DYN, Type, fresh

__all__ = ["Parameters", "assignable", "more_general", "substitute"]

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
