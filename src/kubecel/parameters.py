"""The type parameters of an expression while it is checked: what they stand for, and which overloads that leaves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubecel.overloads import Overload
from kubecel.types import DYN, Type, fresh
from kubecel.unify import Bindings, assignable, substitute

__all__ = ["Parameters"]


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
            return Type(wanted.name, tuple(renew(param) for param in wanted.params)) if wanted.params else wanted

        return tuple(renew(param) for param in overload.params), renew(overload.result)
