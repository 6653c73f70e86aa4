"""Objects as YAML text, the way `load` reads them back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

try:
    from yaml import CSafeDumper as _Dumper
except ImportError:  # PyYAML was built without libyaml
    from yaml import SafeDumper as _Dumper  # type: ignore[assignment]

__all__ = ["dump_yaml"]


def dump_yaml(documents: Iterable[Any]) -> str:
    """One YAML document per object, fields in the order of the object."""
    return yaml.dump_all(
        documents,
        Dumper=_Dumper,
        sort_keys=False,
        explicit_start=True,
        default_flow_style=False,
        width=120,
    )
