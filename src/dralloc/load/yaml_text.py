"""YAML as Kubernetes reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from typing import Any, ClassVar, Final

import yaml

try:
    from yaml import CSafeLoader as _YamlLoader
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeLoader as _YamlLoader  # type: ignore[assignment]

__all__ = ["yaml_documents"]

_TEXT: Final = "tag:yaml.org,2002:str"
_MERGE: Final = "tag:yaml.org,2002:merge"


def yaml_documents(text: str) -> tuple[list[Any], str | None]:
    """The documents of a YAML text up to the first that cannot be read, and why it cannot."""
    documents: list[Any] = []
    try:
        documents.extend(yaml.load_all(text, _Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        return documents, f"is not YAML: {place}{error.problem or error.context}"
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return documents, f"is not YAML: {' '.join(str(error).split())}"
    return documents, None


class _Loader(_YamlLoader):
    """YAML as Kubernetes reads it: no dates, no ``yes`` for true, no numbers to base 60; keys are text and unique."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[Any]]] = {}  # type: ignore[misc]

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        node.value = [(self._text_key(key), value) for key, value in node.value]
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.tag != _MERGE:
                raise yaml.constructor.ConstructorError(
                    problem=f'the key "{key.value}" is there twice', problem_mark=key.start_mark
                )
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def _text_key(self, key: yaml.Node) -> yaml.Node:
        if key.tag in (_TEXT, _MERGE):
            return key
        if not isinstance(key, yaml.ScalarNode):
            raise yaml.constructor.ConstructorError(problem="a key must be text", problem_mark=key.start_mark)
        return yaml.ScalarNode(_TEXT, json.dumps(self.construct_object(key)), key.start_mark)


for _tag, _pattern, _first in (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", "[-+]?(?:0b[01_]+|0o?[0-7_]+|0x[0-9a-fA-F_]+|0|[1-9][0-9_]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("merge", "<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))
