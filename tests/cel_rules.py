"""Random expressions with the answer that upstream's rules give them, worked out here without the engine.

Each class has a generator. A generator builds an expression together with its answer: true, false, or that it fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TypeAlias

__all__ = ["CLASSES", "Rule"]

FAILS: Final = "runtime-error"
Answer: TypeAlias = bool | str
Rule: TypeAlias = Callable[[Random], tuple[str, Answer]]


def _text(version: int, value: int) -> str:
    """An address as it is written; of IPv6 all eight groups, so that nothing has to be known about short forms."""
    if version == 4:
        return ".".join(str(value >> shift & 255) for shift in (24, 16, 8, 0))
    return ":".join(
        f"{value >> shift & 0xFFFF:x}" for shift in range(112, -16, -16)
    )


@dataclass(frozen=True)
class _Network:
    version: int
    value: int
    bits: int

    def __str__(self) -> str:
        return f"{_text(self.version, self.value)}/{self.bits}"

    @property
    def width(self) -> int:
        return 32 if self.version == 4 else 128

    def covers(self, version: int, value: int) -> bool:
        """The first bits, as many as the prefix is long, are the same."""
        spare = self.width - self.bits
        return version == self.version and value >> spare == self.value >> spare


def _network(random: Random, near: _Network | None = None) -> _Network:
    """A network, often one that shares its first bits with another; IPv4 in IPv6 is refused and left out."""
    version = random.choice((4, 4, 6))
    width = 32 if version == 4 else 128
    value = random.getrandbits(width) | (1 << (width - 1))
    if near is not None and random.random() < 0.8:
        version, width = near.version, near.width
        value = near.value ^ (
            random.getrandbits(width) >> random.randint(0, width)
        )
        value |= 1 << (width - 1)
    return _Network(version, value, random.randint(0, width))


def addresses(random: Random) -> tuple[str, Answer]:
    """The functions of addresses and networks: ``apiserver/pkg/cel/library/cidr.go`` and ``ip.go``.

    ``containsCIDR`` is that the networks overlap and the second prefix is no shorter. A text as argument is read as the
    type would be, and fails where that cannot be.
    """
    network = _network(random)
    other = _network(random, network)
    address = _text(other.version, other.value)
    contains = network.bits <= other.bits and network.covers(
        other.version, other.value
    )
    covers = network.covers(other.version, other.value)
    base = f'cidr("{network}")'
    masked = (
        network.value
        >> (network.width - network.bits)
        << (network.width - network.bits)
    )
    rules: list[tuple[str, Answer]] = [
        (f'{base}.containsCIDR("{other}")', contains),
        (f'{base}.containsCIDR(cidr("{other}"))', contains),
        (f'{base}.containsIP("{address}")', covers),
        (f'{base}.containsIP(ip("{address}"))', covers),
        (f'{base}.containsIP(cidr("{other}").ip())', covers),
        (f'{base}.containsCIDR("{address}")', FAILS),
        (f'{base}.containsIP("{other}")', FAILS),
        (
            f'{base}.containsCIDR("{_text(other.version, other.value)}/{other.width + 1}")',
            FAILS,
        ),
        (f"{base}.prefixLength() == {other.bits}", network.bits == other.bits),
        (
            f'{base}.masked() == cidr("{_Network(network.version, masked, network.bits)}")',
            True,
        ),
        (f'{base} == cidr("{other}")', network == other),
        (
            f'{base}.ip() == ip("{address}")',
            (network.version, network.value) == (other.version, other.value),
        ),
        (
            f'ip("{address}").family() == {network.version}',
            network.version == other.version,
        ),
        (f'isIP("{address}") && isCIDR("{other}")', True),
        (f'isIP("{other}") || isCIDR("{address}")', False),
    ]
    expression, answer = random.choice(rules)
    if random.random() < 0.3:
        expression = expression.replace(base, f"dyn({base})", 1)
    return expression, answer


class _Fails(Exception):  # noqa: N818 - it says what a value is
    """The value is an error."""


@dataclass(frozen=True)
class _Some:
    """An optional with a value."""

    value: Any


_NONE: Final = object()
_SCALARS: Final = (1, 2, -5, "a", "b", "", True, False, None)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, _Some):
        return f"optional.of({_literal(value.value)})"
    if value is _NONE:
        return "optional.none()"
    if isinstance(value, list):
        return f"[{', '.join(f'dyn({_literal(item)})' for item in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_literal(key)}: dyn({_literal(item)})' for key, item in value.items())}}}"
    return str(value)


def _same(value: Any, other: Any) -> bool:
    """Values of different types are different; the values here are plain or optional."""
    return type(value) is type(other) and bool(value == other)


def _optional(random: Random, depth: int) -> tuple[str, Any]:
    """An expression that hides an optional, another value or an error from the checker, and which it is."""
    kind = random.choice(
        ("or", "or", "orValue", "orValue", "optMap")
        if depth
        else ("none", "some", "plain", "error")
    )
    scalar = random.choice(_SCALARS)
    if kind == "none":
        return "dyn(optional.none())", _NONE
    if kind == "some":
        return f"dyn(optional.of({_literal(scalar)}))", _Some(scalar)
    if kind == "plain":
        return f"dyn({_literal(scalar)})", scalar
    if kind == "error":
        return "dyn(1 / 0)", _Fails()
    text, left = _optional(random, random.randrange(depth))
    if kind == "optMap":
        mapped = (
            _Some(scalar)
            if isinstance(left, _Some)
            else left
            if left is _NONE
            else _Fails()
        )
        return f"dyn({text}.optMap(x, {_literal(scalar)}))", mapped
    other, right = _optional(random, random.randrange(depth))
    opened = (
        left.value if isinstance(left, _Some) and kind == "orValue" else left
    )
    return f"dyn({text}.{kind}({other}))", right if left is _NONE else opened


def optionals(random: Random) -> tuple[str, Answer]:
    """``or`` and ``orValue`` never look at the other side's type: ``evalOptionalOr(Value).Eval`` in ``cel/library.go``.

    What is no optional is handed on as it is; the right side counts, and may fail, only if the left side has no value.
    The other functions refuse what is no optional (``OptionalTypes``, the same file).
    """
    text, outcome = _optional(random, random.randint(0, 4))
    holds = isinstance(outcome, _Some) or outcome is _NONE
    expected = random.choice(_SCALARS)
    hidden = f"dyn({_literal(expected)})"
    rules: list[tuple[str, Answer]] = [
        (f"{text}.hasValue()", isinstance(outcome, _Some) if holds else FAILS),
        (
            f"{text}.value() == {hidden}",
            _same(outcome.value, expected)
            if isinstance(outcome, _Some)
            else FAILS,
        ),
        (
            f"{text} == {hidden}",
            FAILS if isinstance(outcome, _Fails) else _same(outcome, expected),
        ),
        (
            f"optional.unwrap([{text}]).size() == 1",
            isinstance(outcome, _Some) if holds else FAILS,
        ),
    ]
    return random.choice(rules)


_NAMES: Final = ("a", "b", "c")


def _tree(random: Random, depth: int) -> Any:
    """A value that may hold others."""
    kind = random.choice(
        ("map", "map", "map", "list", "some", "none", "scalar")
        if depth
        else ("scalar", "none")
    )
    if kind == "map":
        return {
            name: _tree(random, depth - 1)
            for name in _NAMES
            if random.random() < 0.7
        }
    if kind == "list":
        return [_tree(random, depth - 1) for _ in range(random.randint(0, 2))]
    if kind == "some":
        return _Some(_tree(random, depth - 1))
    return _NONE if kind == "none" else random.choice(_SCALARS)


def _native(value: Any) -> Any:
    """An optional's value as Go has it: optionals inside of optionals are gone."""
    while isinstance(value, _Some):
        value = value.value
    return None if value is _NONE else value


def _present(value: Any, name: str) -> bool:
    """Only maps and lists look for a name, and a list refuses it: ``refQualify`` in ``interpreter/attributes.go``."""
    if isinstance(value, list):
        raise _Fails
    return isinstance(value, dict) and name in value


def _selected(base: Any, path: list[str]) -> bool:
    """Whether the last name of a path is there.

    An optional at the start makes every step optional, ``applyQualifiers`` in the same file. One that is found later is
    a value like any other, in which nothing can be found.
    """
    optional = isinstance(base, _Some)
    if base is _NONE:
        return False
    value = _native(base)
    for name in path[:-1]:
        if not _present(value, name):
            if optional:
                return False
            raise _Fails
        value = value[name]
    return _present(value, path[-1])


def tests(random: Random) -> tuple[str, Answer]:
    """``has(a.b.c)``: ``evalTestOnly`` in ``interpreter/interpretable.go``; only the last step is a test."""
    base = _tree(random, 4)
    path = [random.choice(_NAMES) for _ in range(random.randint(1, 4))]
    try:
        answer: Answer = _selected(base, path)
    except _Fails:
        answer = FAILS
    text = f"has(dyn({_literal(base)}).{'.'.join(path)})"
    if random.random() < 0.3:
        text = f"cel.bind(v, dyn({_literal(base)}), has(v.{'.'.join(path)}))"
    return text, answer


def _logical(random: Random, depth: int) -> tuple[str, Answer]:
    """An expression with its answer: ``evalAnd``, ``evalOr`` and ``evalFold`` in ``interpreter/interpretable.go``."""
    if depth == 0:
        return random.choice(_LEAVES)
    kind = random.choice(
        ("&&", "||", "?", "!", "==", "all", "exists", "exists_one", "filter")
    )
    parts = [
        _logical(random, random.randrange(depth))
        for _ in range(random.randint(2, 3))
    ]
    texts, answers = (
        [text for text, _ in parts],
        [answer for _, answer in parts],
    )
    if kind in {"&&", "||"}:
        return f"({f' {kind} '.join(texts)})", _absorbed(
            answers, decisive=kind == "||"
        )
    if kind == "?":
        chosen = (
            FAILS
            if answers[0] == FAILS
            else answers[1]
            if answers[0]
            else answers[-1]
        )
        return f"({texts[0]} ? {texts[1]} : {texts[-1]})", chosen
    if kind == "!":
        return f"!{texts[0]}", FAILS if answers[0] == FAILS else not answers[0]
    if kind == "==":
        return f"({texts[0]} == {texts[1]})", FAILS if FAILS in answers[
            :2
        ] else answers[0] == answers[1]
    chain = " : ".join(
        f"x == {index} ? {text}" for index, text in enumerate(texts[:-1])
    )
    loop = f"[0, 1, 2].slice(0, {len(texts)}).{kind}(x, {chain} : {texts[-1]})"
    if kind in {"all", "exists"}:
        return loop, _absorbed(answers, decisive=kind == "exists")
    if FAILS in answers:
        return loop if kind == "exists_one" else f"({loop}.size() == 1)", FAILS
    return (
        loop if kind == "exists_one" else f"({loop}.size() == 1)",
        answers.count(True) == 1,
    )


_LEAVES: Final[tuple[tuple[str, Answer], ...]] = (
    ("true", True),
    ("false", False),
    ("dyn(true)", True),
    ("dyn(false)", False),
    ("(1 / 0 == 1)", FAILS),
    ("(1 == 1 / 0)", FAILS),
    ("([1][2] == 1)", FAILS),
    ("dyn(1 / 0)", FAILS),
    ('(1 / 0 == dyn("a"))', FAILS),
    ("(dyn(1 / 0) == true)", FAILS),
    ('device.attributes["gpu.example.com"].nosuch', FAILS),
    ('device.attributes["gpu.example.com"].ecc', True),
)


def _absorbed(answers: list[Answer], *, decisive: bool) -> Answer:
    """The decisive answer wins over an error, wherever it stands, and an error over the other answer."""
    if decisive in answers:
        return decisive
    return FAILS if FAILS in answers else not decisive


def logic(random: Random) -> tuple[str, Answer]:
    """Errors in logical operators, conditionals and loops."""
    text, answer = _logical(random, random.randint(1, 4))
    return f"({text}) && true", answer


_DEVICE: Final = "unknown type"
"""The value of ``kubernetes.DRADevice{}``: it passes the checker, and then cannot be built."""

_STRICT: Final[tuple[tuple[str, object], ...]] = (
    ('quantity("1Ki")', ("quantity", 1024)),
    ('quantity("1024")', ("quantity", 1024)),
    ('semver("1.2.3")', ("semver", 1)),
    ('semver("1.2.3+b")', ("semver", 1)),
    ('ip("10.0.0.1")', ("ip", 1)),
    ('cidr("10.0.0.1/8")', ("cidr", 1)),
    ('url("/x")', ("url", 1)),
    ("format.uuid()", ("format", 1)),
)
"""Kubernetes' own types, which refuse to be compared with others: their ``Equal`` in ``apiserver/pkg/cel``."""

_LENIENT: Final[tuple[tuple[str, object], ...]] = (
    ("google.protobuf.Duration{}", ("duration", 0)),
    ("google.protobuf.Duration{seconds: 1}", ("duration", 10**9)),
    ("google.protobuf.Duration{nanos: 5}", ("duration", 5)),
    ('duration("1s")', ("duration", 10**9)),
    ("google.protobuf.Timestamp{seconds: 1}", ("timestamp", 1)),
    ("timestamp(1)", ("timestamp", 1)),
    ("google.protobuf.Struct{}", ("map", ())),
    ("{}", ("map", ())),
    ('google.protobuf.Struct{fields: {"a": 1.5}}', ("map", ("a", 1.5))),
    ('{"a": 1.5}', ("map", ("a", 1.5))),
    ("google.protobuf.ListValue{}", ("list", ())),
    ("google.protobuf.ListValue{values: [1, 2]}", ("list", (1, 2))),
    ("[1, 2]", ("list", (1, 2))),
    ("google.protobuf.Value{}", None),
    ("google.protobuf.Value{null_value: 0}", None),
    ("null", None),
    ("google.protobuf.Value{number_value: 1.0}", ("number", 1)),
    ("google.protobuf.Int64Value{value: 1}", ("number", 1)),
    ("google.protobuf.Int32Value{}", ("number", 0)),
    ("google.protobuf.UInt32Value{value: 1u}", ("number", 1)),
    ("google.protobuf.FloatValue{value: 1.0}", ("number", 1)),
    ("1", ("number", 1)),
    ("google.protobuf.BoolValue{}", ("bool", False)),
    ("google.protobuf.Value{bool_value: true}", ("bool", True)),
    ("true", ("bool", True)),
    ('google.protobuf.StringValue{value: "a"}', ("string", "a")),
    ('google.protobuf.Value{string_value: "a"}', ("string", "a")),
    ('"a"', ("string", "a")),
    ("google.protobuf.BytesValue{}", ("bytes", b"")),
    ("google.protobuf.Empty{}", ("empty", 0)),
    ("int", ("type", "int")),
    ("type(1)", ("type", "int")),
    ("optional.none()", ("optional", None)),
    ("optional.of(1)", ("optional", 1)),
)
"""Messages and values: ``NewValue`` in ``common/types/provider.go``, ``Equal`` in ``common/types/object.go``."""

_BROKEN: Final[tuple[tuple[str, object], ...]] = (
    ("kubernetes.DRADevice{}", _DEVICE),
    ('kubernetes.DRADevice{driver: "a"}', _DEVICE),
    ("google.protobuf.Int32Value{value: 2147483648}", _DEVICE),
    ('google.protobuf.Duration{seconds: dyn("a")}', _DEVICE),
)


def _equality(left: object, right: object) -> Answer:
    if _DEVICE in {left, right}:
        return FAILS
    strict = left is not None and left in [value for _, value in _STRICT]
    if strict and right is not None and left[0] != right[0]:  # type: ignore[index]
        return FAILS
    return left == right


def objects(random: Random) -> tuple[str, Answer]:
    """Messages that are built, and equality.

    Only the left side of ``==`` may refuse the comparison; ``!=`` and ``in`` take that for different
    (``evalEq``, ``evalNe`` in ``interpreter/interpretable.go``, ``Contains`` in ``common/types/list.go``).
    """
    everything = (*_LENIENT, *_LENIENT, *_STRICT, *_BROKEN)
    (left, left_value), (right, other) = (
        random.choice(everything),
        random.choice(everything),
    )
    if random.random() < 0.3:
        right, other = random.choice(
            [(text, value) for text, value in everything if value == left_value]
        )
    same = _equality(left_value, other)
    broken = _DEVICE in {left_value, other}
    differs = FAILS if broken else same is not True
    rules: list[tuple[str, Answer]] = [
        (f"dyn({left}) == dyn({right})", same),
        (f"dyn({left}) == {right}", same),
        (f"dyn({left}) != dyn({right})", differs),
        (
            f"dyn({left}) in [dyn({right})].map(x, x)",
            FAILS if broken else not differs,
        ),
        (f"false && dyn({left}) == dyn({right})", False),
        (f"dyn({left}) == dyn({right}) || true", True),
    ]
    if other == _DEVICE and right.startswith("kubernetes"):
        rules += [
            (f"device == {right}", FAILS),
            (f"{right} == device", FAILS),
            (f"has({right}.driver)", FAILS),
        ]
    return random.choice(rules)


CLASSES: Final[dict[str, Rule]] = {
    rule.__name__: rule
    for rule in (addresses, optionals, tests, logic, objects)
}
