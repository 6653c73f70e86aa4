"""Text that would take all time or memory, or become something else than it says, is refused with its place."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dralloc.objects import load as loading
from dralloc.objects.errors import InputError
from dralloc.objects.limits import Limits
from dralloc.objects.load import load, load_text
from dralloc.objects.load.json_text import json_documents
from dralloc.objects.load.yaml_text import yaml_documents
from objects.load.texts import NODE, SLICE, findings_of_error

DEEP = 100_000
NODE_JSON = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "m"%s}}'
HEAD = "apiVersion: v1\nkind: Node\nmetadata: {name: m}\n"
TOO_DEEP = "is nested too deeply, more than 254 levels"


def bomb(line: str, levels: int = 12) -> str:
    """Ten times as much with every line; what is read never looks at it."""
    return HEAD + "".join(
        line.format(level, ", ".join([f"*x{level - 1}"] * 10))
        for level in range(1, levels)
    )


HOSTILE: dict[str, tuple[str, str]] = {
    "lists in JSON": ("[" * DEEP, f"a.json:1:1: is not JSON: {TOO_DEEP}"),
    "objects in JSON": ('{"a":' * DEEP + "1" + "}" * DEEP, f"a.json:1:1: is not JSON: {TOO_DEEP}"),
    "one level too many in JSON": ("\n" + "[" * 255 + "]" * 255, f"a.json:2:1: is not JSON: {TOO_DEEP}"),
    "lists in flow style": ("a: " + "[" * 300, f"a.yaml:1:257: is not YAML: {TOO_DEEP}"),
    "lists in block style": ("- " * DEEP + "a", f"a.yaml:1:509: is not YAML: {TOO_DEEP}"),
    "mappings in flow style": ("{a: " * DEEP, f"a.yaml:1:1017: is not YAML: {TOO_DEEP}"),
    "depth by aliases": (
        f"a: &a {'[' * 200 + ']' * 200}\nb: {'[' * 60}*a{']' * 60}\n",
        f"a.yaml:2:64: is not YAML: {TOO_DEEP}",
    ),
    "a long integer in JSON": (
        NODE_JSON % (', "generation": ' + "9" * 5000),
        "a.json:1:78: is not JSON: number is infinity when parsed as double",
    ),
    "a long integer in YAML": (
        f"a: {'9' * 5000}",
        "a.yaml:1:4: is not YAML: '99999999999999999999' is not what JSON can hold in 64 bits",
    ),
    "a long hexadecimal integer": (
        f"a: 0x{'f' * 5000}",
        "a.yaml:1:4: is not YAML: '0xffffffffffffffffff' is not what JSON can hold in 64 bits",
    ),
    "infinity in JSON": (
        "[Infinity]", "a.json:1:2: is not JSON: unexpected character, expected a JSON value"
    ),
    "infinity in YAML": (
        "a: .inf", "a.yaml:1:4: is not YAML: '.inf' is not what JSON can hold in 64 bits"
    ),
    "no number": ("a: .nan", "a.yaml:1:4: is not YAML: '.nan' is not what JSON can hold in 64 bits"),
    "a tag that does not fit": (
        "a: !!int b", "a.yaml:1:4: is not YAML: 'b' is not what JSON can hold in 64 bits"
    ),
    "a lone surrogate in JSON": (
        '\n["\\ud800"]', "a.json:2:3: is not JSON: no low surrogate in string"
    ),
    "a lone surrogate in YAML": (
        'a: "\\ud800"', "a.yaml:1:7: is not YAML: found invalid Unicode character escape code"
    ),
    "a key that stands there twice": (
        NODE_JSON % ',\n "name": "m"', 'a.json:2:2: is not JSON: the key "name" is there twice'
    ),
    "a key that stands there twice, written differently": (
        NODE_JSON % ', "n\\u0061me": "m"', 'a.json:1:64: is not JSON: the key "name" is there twice'
    ),
    "a key that stands there twice, with hidden quotation marks": (
        NODE_JSON % ', "name": "\\u0022"', 'a.json:1:64: is not JSON: the key "name" is there twice'
    ),
    "a key that stands there twice in the second value": (
        NODE_JSON % "" + '\n{"a": {}, "b": [{"a": 1, "a": 2}]}',
        'a.json:2:26: is not JSON: the key "a" is there twice',
    ),
    "a bomb of lists": (
        bomb("x{0}: &x{0} [{1}]\n").replace("*x0", "aaa"),
        "a.yaml:10:15: is not YAML: aliases stand for more than 10000000 characters; --limit "
        "aliases=AMOUNT allows more",
    ),
    "a bomb of merge keys": (
        bomb("x{0}: &x{0} {{k{0}: aaa, <<: [{1}]}}\n").replace("*x0", "{a: b}"),
        "a.yaml:10:24: is not YAML: aliases stand for more than 10000000 characters; --limit "
        "aliases=AMOUNT allows more",
    ),
    "a bomb of long text": (
        f"a: &a {'a' * 200_000}\nb: [{', '.join(['*a'] * 60)}]\n",
        "a.yaml:2:201: is not YAML: aliases stand for more than 10000000 characters; --limit "
        "aliases=AMOUNT allows more",
    ),
    "a merge of text": ("a: {<<: b}", "a.yaml:1:9: is not YAML: only mappings can be merged"),
    "an alias of a list for a key": (
        "a: &a []\n*a : b\n", "a.yaml:2:1: is not YAML: a key must be text"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text(name: str) -> None:
    text, message = HOSTILE[name]
    assert findings_of_error(text, message.partition(":")[0]) == message


def test_lists_beyond_what_the_parser_reads_are_too_deep_wherever_it_notices() -> (
    None
):
    message = findings_of_error("a: " + "[" * DEEP, "a.yaml")
    assert message.endswith(f": is not YAML: {TOO_DEEP}")


def test_keys_may_stand_in_several_objects() -> None:
    text = (
        NODE_JSON
        % ', "labels": {"name": "a \\"quoted\\" \\u0022one\\u0022", "metadata": "\\ud83d\\ude00"}'
    )
    assert load_text(text).nodes[0].metadata.labels == {
        "name": 'a "quoted" "one"',
        "metadata": "😀",
    }


def test_a_key_that_stands_twice_in_a_long_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loading, "SPLIT_FROM", 0)
    items = ",\n".join(
        NODE_JSON.replace('"m"', f'"n{index}"') % "" for index in range(4)
    )
    text = '{"apiVersion": "v1", "kind": "List", "items": [\n' + items + "]}"
    assert len(load_text(text).nodes) == 4
    broken = text.replace('"name": "n2"', '"name": "n2", "name": "n2"')
    with pytest.raises(
        InputError, match=r':4:65: is not JSON: the key "name" is there twice'
    ):
        load_text(broken)
    broken = text.replace('"kind": "List"', '"kind": "List", "kind": "List"')
    with pytest.raises(
        InputError, match=r':1:38: is not JSON: the key "kind" is there twice'
    ):
        load_text(broken)


def test_integers_beyond_64_bits_are_no_integers() -> None:
    for generation, shown in (
        (2**64, "1.8446744073709552e+19"),
        (-(2**63) - 2048, "-9.223372036854778e+18"),
    ):
        text = SLICE.replace("generation: 1", f"generation: {generation}")
        for written in (text, json.dumps(yaml.safe_load(text))):
            assert findings_of_error(written).endswith(
                f"spec.pool.generation: must be an integer, not {shown}"
            )


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (
            SLICE.replace("generation: 1", f"generation: {2**63}"),
            f"spec.pool.generation: must be at most {2**63 - 1}",
        ),
        (
            SLICE.replace("string: A100", f"int: {2**63}"),
            f"attributes[model].int: must be at most {2**63 - 1}",
        ),
        (
            f"apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {{name: p}}\nvalue: {-(2**31) - 1}",
            f"value: must be at least {-(2**31)}",
        ),
    ],
)
def test_integers_have_the_size_of_their_type(text: str, finding: str) -> None:
    assert finding in findings_of_error(text)


def test_limits_can_be_raised_and_lowered(tmp_path: Path) -> None:
    aliases = HEAD + "a: &a [aaaa]\nb: [*a, *a]\n"
    assert load_text(aliases, limits=Limits(aliases=12)).nodes[0].name == "m"
    with pytest.raises(
        InputError, match="aliases stand for more than 11 characters"
    ):
        load_text(aliases, limits=Limits(aliases=11))
    packed = tmp_path / "node.yaml.gz"
    packed.write_bytes(
        gzip.compress(NODE.encode()) + gzip.compress(b" " * 5_000_000)
    )
    assert load(packed).nodes[0].name == "m"
    with pytest.raises(
        InputError,
        match="unpacks to more than 5000000 bytes; --limit unpacked=AMOUNT allows more",
    ):
        load(packed, limits=Limits(unpacked=5_000_000))


PLAIN = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
)
DATA = st.recursive(
    PLAIN,
    lambda part: (
        st.lists(part, max_size=4)
        | st.dictionaries(st.text(max_size=5), part, max_size=4)
    ),
)


@given(DATA)
def test_data_comes_back_as_it_was_written(data: object) -> None:
    text = json.dumps(data)
    assert json_documents(text.encode()) == ([data], None)
    text = yaml.safe_dump(data, default_style='"')
    assert yaml_documents(text.encode(), 10**6) == ([data], None)


def test_a_device_that_never_ends() -> None:
    with pytest.raises(
        InputError,
        match="/dev/zero: is a device that gives more than 1000000 bytes",
    ):
        load("/dev/zero", limits=Limits(unpacked=1_000_000))
    with pytest.raises(InputError, match="/dev/null: holds no objects"):
        load("/dev/null")
