"""The type parameters of an expression while it is checked: what they stand for, and which overloads that leaves.

The rules, including their order, are those of upstream's checker: they decide which overloads of a function apply.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TypeAlias

from kubecel.overloads import Overload
from kubecel.types import DYN, Type, fresh

__all__ = ["Bindings", "Parameters", "assignable", "more_general", "substitute"]

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

    def known(self, found: Type) -> Type:
        """A type with what is known about the parameters in it."""
        return substitute(self._bindings, found)

    def final(self, found: Type) -> Type:
        """The same at the end: what is still open may be anything."""
        return substitute(self._bindings, found, free_to_dyn=True)

    def accept(self, given: Type, wanted: Type) -> bool:
        """Whether a type may stand where another is wanted; if so, parameters stand for what that needs."""
        return self._accept_all((given,), (wanted,))

    def _accept_all(self, given: tuple[Type, ...], wanted: tuple[Type, ...]) -> bool:
        extended = assignable(self._bindings, given, wanted)
        if extended is None:
            return False
        self._bindings = extended
        return True

    def resolve(
        self, declared: Iterable[Overload], args: Sequence[Type], *, member: bool
    ) -> tuple[tuple[Overload, ...], Type | None]:
        """The overloads that a call may mean, and the type of its result: dyn if they differ in it."""
        result: Type | None = None
        matching = []
        for overload in declared:
            if overload.member is not member or len(overload.params) != len(args):
                continue
            params, returned = self._instance(overload)
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

        def renew(wanted: Type) -> Type:
            if wanted.is_param:
                if wanted not in params:
                    params[wanted] = self.new()
                return params[wanted]
            return (
                Type(wanted.name, tuple(renew(param) for param in wanted.params))
                if wanted.params
                else wanted
            )

        return tuple(renew(param) for param in overload.params), renew(overload.result)


def substitute(bindings: Bindings, wanted: Type, *, free_to_dyn: bool = False) -> Type:
    """Replace bound type parameters, and free ones by dyn if asked for."""
    if wanted.is_param:
        bound = bindings.get(wanted)
        if bound is not None:
            return substitute(bindings, bound, free_to_dyn=free_to_dyn)
        return DYN if free_to_dyn else wanted
    if not wanted.params:
        return wanted
    return Type(
        wanted.name,
        tuple(
            substitute(bindings, param, free_to_dyn=free_to_dyn)
            for param in wanted.params
        ),
        wanted.label,
    )


def assignable(
    bindings: Bindings, given: tuple[Type, ...], wanted: tuple[Type, ...]
) -> Bindings | None:
    """The bindings under which every given type is assignable to the wanted one, or None."""
    extended = dict(bindings)
    return extended if _all_assignable(extended, given, wanted) else None


def more_general(left: Type, right: Type) -> Type:
    """The more general of two types that are known to be assignable."""
    return left if _less_specific(left, right) else right


def _less_specific(left: Type, right: Type) -> bool:
    if left.is_dyn or left.is_param:
        return True
    if right.is_dyn or right.is_param or left.name != right.name:
        return False
    if left.name == "type":
        return True
    return len(left.params) == len(right.params) and all(
        map(_less_specific, left.params, right.params)
    )


def _all_assignable(
    bindings: Bindings, given: tuple[Type, ...], wanted: tuple[Type, ...]
) -> bool:
    return len(given) == len(wanted) and all(
        map(partial(_assignable, bindings), given, wanted)
    )


def _assignable(bindings: Bindings, given: Type, wanted: Type) -> bool:
    if wanted.is_param:
        valid, bound = _substitutes(bindings, given, wanted)
        if valid or bound:
            return valid
    if given.is_param:
        return _substitutes(bindings, wanted, given)[0]
    if given.is_dyn or wanted.is_dyn or "!error!" in {given.name, wanted.name}:
        return True
    if "null_type" in {given.name, wanted.name}:
        return _nullable(wanted if given.name == "null_type" else given)
    if given.name != wanted.name:
        return False
    return given.name == "type" or _all_assignable(
        bindings, given.params, wanted.params
    )


def _nullable(wanted: Type) -> bool:
    return bool(wanted.label) or (
        wanted.name not in _SCALARS and wanted.name not in {"list", "map", "type"}
    )


def _substitutes(bindings: Bindings, given: Type, param: Type) -> tuple[bool, bool]:
    """Whether `given` is valid for the parameter, and whether the parameter was bound before."""
    if given == param:
        return True, True
    bound = bindings.get(param)
    if bound is None:
        if _free_of(bindings, param, given):
            bindings[param] = given
            return True, False
        return False, False
    if given == bound:
        return True, True
    if not _assignable(bindings, given, bound):
        return False, True
    general = more_general(given, bound)
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
