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
NODE_JSON = '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"%s}}'
HEAD = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"
TOO_DEEP = "is nested too deeply, more than 254 levels"


def bomb(line: str, levels: int = 12) -> str:
    """Ten times as much with every line; what is read never looks at it."""
    return HEAD + "".join(
        line.format(number, ", ".join([f"*x{number - 1}"] * 10))
        for number in range(1, levels)
    )


HOSTILE: dict[str, tuple[str, str]] = {
    "lists in JSON": ("[" * DEEP, f"a.json: is not JSON: line 1, column 1: {TOO_DEEP}"),
    "objects in JSON": ('{"a":' * DEEP + "1" + "}" * DEEP, f"a.json: is not JSON: line 1, column 1: {TOO_DEEP}"),
    "one level too many in JSON": ("\n" + "[" * 255 + "]" * 255, f"a.json: is not JSON: line 2, column 1: {TOO_DEEP}"),
    "lists in flow style": ("a: " + "[" * DEEP, f"a.yaml: is not YAML: line 1, column 257: {TOO_DEEP}"),
    "lists in block style": ("- " * DEEP + "a", f"a.yaml: is not YAML: line 1, column 509: {TOO_DEEP}"),
    "mappings in flow style": ("{a: " * DEEP, f"a.yaml: is not YAML: line 1, column 1017: {TOO_DEEP}"),
    "depth by aliases": (
        f"a: &a {'[' * 200 + ']' * 200}\nb: {'[' * 60}*a{']' * 60}\n",
        f"a.yaml: is not YAML: line 2, column 64: {TOO_DEEP}",
    ),
    "a long integer in JSON": (
        NODE_JSON % (', "generation": ' + "9" * 5000),
        "a.json: is not JSON: line 1, column 78: number is infinity when parsed as double",
    ),
    "a long integer in YAML": (
        f"a: {'9' * 5000}",
        "a.yaml: is not YAML: line 1, column 4: '99999999999999999999' is not what JSON can hold in 64 bits",
    ),
    "a long hexadecimal integer": (
        f"a: 0x{'f' * 5000}",
        "a.yaml: is not YAML: line 1, column 4: '0xffffffffffffffffff' is not what JSON can hold in 64 bits",
    ),
    "infinity in JSON": (
        "[Infinity]", "a.json: is not JSON: line 1, column 2: unexpected character, expected a JSON value"
    ),
    "infinity in YAML": (
        "a: .inf", "a.yaml: is not YAML: line 1, column 4: '.inf' is not what JSON can hold in 64 bits"
    ),
    "no number": ("a: .nan", "a.yaml: is not YAML: line 1, column 4: '.nan' is not what JSON can hold in 64 bits"),
    "a tag that does not fit": (
        "a: !!int b", "a.yaml: is not YAML: line 1, column 4: 'b' is not what JSON can hold in 64 bits"
    ),
    "a lone surrogate in JSON": (
        '\n["\\ud800"]', "a.json: is not JSON: line 2, column 3: no low surrogate in string"
    ),
    "a lone surrogate in YAML": (
        'a: "\\ud800"', "a.yaml: is not YAML: line 1, column 7: found invalid Unicode character escape code"
    ),
    "a key that stands there twice": (
        NODE_JSON % ',\n "name": "m"', 'a.json: is not JSON: line 2, column 2: the key "name" is there twice'
    ),
    "a key that stands there twice, written differently": (
        NODE_JSON % ', "n\\u0061me": "m"', 'a.json: is not JSON: line 1, column 64: the key "name" is there twice'
    ),
    "a key that stands there twice, with hidden quotation marks": (
        NODE_JSON % ', "name": "\\u0022"', 'a.json: is not JSON: line 1, column 64: the key "name" is there twice'
    ),
    "a key that stands there twice in the second value": (
        NODE_JSON % "" + '\n{"a": {}, "b": [{"a": 1, "a": 2}]}',
        'a.json: document 2: is not JSON: line 2, column 26: the key "a" is there twice',
    ),
    "a bomb of lists": (
        bomb("x{0}: &x{0} [{1}]\n").replace("*x0", "aaa"),
        "a.yaml: is not YAML: line 10, column 15: aliases stand for more than 10000000 characters; --limit "
        "aliases=AMOUNT allows more",
    ),
    "a bomb of merge keys": (
        bomb("x{0}: &x{0} {{k{0}: aaa, <<: [{1}]}}\n").replace("*x0", "{a: b}"),
        "a.yaml: is not YAML: line 10, column 24: aliases stand for more than 10000000 characters; --limit "
        "aliases=AMOUNT allows more",
    ),
    "a bomb of long text": (
        f"a: &a {'a' * 200_000}\nb: [{', '.join(['*a'] * 60)}]\n",
        "a.yaml: is not YAML: line 2, column 201: aliases stand for more than 10000000 characters; --limit "
        "aliases=AMOUNT allows more",
    ),
    "a merge of text": ("a: {<<: b}", "a.yaml: is not YAML: line 1, column 9: only mappings can be merged"),
    "an alias of a list for a key": (
        "a: &a []\n*a : b\n", "a.yaml: is not YAML: line 2, column 1: a key must be text"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text(name: str) -> None:
    text, message = HOSTILE[name]
    assert findings_of_error(text, message.partition(":")[0]) == message


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
        NODE_JSON.replace('"n"', f'"n{number}"') % "" for number in range(4)
    )
    text = '{"apiVersion": "v1", "kind": "List", "items": [\n' + items + "]}"
    assert len(load_text(text).nodes) == 4
    broken = text.replace('"name": "n2"', '"name": "n2", "name": "n2"')
    with pytest.raises(
        InputError, match=r'line 4, column .*: the key "name" is there twice'
    ):
        load_text(broken)
    broken = text.replace('"kind": "List"', '"kind": "List", "kind": "List"')
    with pytest.raises(
        InputError, match=r'line 1, column .*: the key "kind" is there twice'
    ):
        load_text(broken)


def test_integers_beyond_64_bits_are_no_integers() -> None:
    for number, shown in (
        (2**64, "1.8446744073709552e+19"),
        (-(2**63) - 1, "-9.223372036854776e+18"),
    ):
        text = SLICE.replace("generation: 1", f"generation: {number}")
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
    assert load_text(aliases, limits=Limits(aliases=12)).nodes[0].name == "n"
    with pytest.raises(
        InputError, match="aliases stand for more than 11 characters"
    ):
        load_text(aliases, limits=Limits(aliases=11))
    packed = tmp_path / "node.yaml.gz"
    packed.write_bytes(
        gzip.compress(NODE.encode()) + gzip.compress(b" " * 5_000_000)
    )
    assert load(packed).nodes[0].name == "n"
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
