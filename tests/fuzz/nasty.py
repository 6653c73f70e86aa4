"""What has hurt programs before: values, CEL expressions and pieces of text."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["EXPRESSIONS", "TOKENS", "VALUES"]

VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 3, 200_000, 2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64,
    10**30, 0.5, 1e300, -0.0, "", " ", "0", "1", "-1", "yes", "null", "1Ki", "0Gi", "-5Gi", "1e100", "1e999999999",
    "9999999999Ei", "0.0000000001", "1m", "0x10", "1_0", "*", "a/b", "/", "a..b", "..", "a" * 64, "a" * 300,
    "x" * 100_000, "ünï\u202ecödé", "\U0001f600", "\x1b[31m\x07", "\u0085\u2028", "--help", "2026-01-01T00:00:00Z",
    "!!int", "&a", "*a", "<<", "{}", "[]", [], {}, [None], [[]], {"": None}, {"a": {}}, [{}], ["a", "a"],
    [1, "1", None, {}],
)  # fmt: skip

EXPRESSIONS: Final = (
    "", "true", "1", "device", "device.driver == 1", "1 / 0 == 1", "device.attributes", "[1, 2].all(x, x > 0)",
    "device.attributes['x'].y == 'z'", "device.capacity['x'].y.isGreaterThan(quantity('1Gi'))", "'a'.matches('(((')",
    "'a'.matches('" + "(a*)*" * 40 + "')", "(" * 500 + "true" + ")" * 500, "!" * 500 + "true",
    "true" + " && true" * 2000, "[" + ", ".join("1" * 40) + "].map(x, [1, 2].map(y, [1, 2].map(z, x))).size() > 0",
    "semver('1.0.0') == 1", "quantity('1e999').isInteger()", "9223372036854775807 + 1 > 0", "'\\ud800' == ''",
    "-9223372036854775808 / -1 > 0", "has(device.attributes.x)", "cel.bind(x, device, x.driver == 'a')",
    "duration('1h') > timestamp('')", "\x00", "a b c",
)  # fmt: skip

TOKENS: Final = (
    b"&a ", b"*a", b"<<: *a", b"!!binary ", b"!!python/object:os.system ", b"---\n", b"...\n", b"%YAML 9.9\n", b"\0",
    b"\xff", b"\xef\xbb\xbf", b"\r", b"\t", b"\"", b"'", b"{", b"}", b"[" * 300, b"]", b": ", b"- " * 300, b"? ",
    b"|\n", b">\n", b"#", b",", b"\\ud800", b"\\u0022", b"9" * 5000, b"0x" + b"f" * 5000, b"1e999", b".nan", b".inf",
    b"NaN", b"-Infinity", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\n", b" ", b"{{", b"\x1f\x8b", b"0b", b"0o", b"-", b"~",
    b"=", b"@", b"`",
)  # fmt: skip
