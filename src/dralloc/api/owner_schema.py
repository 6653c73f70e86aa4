"""What is where in the objects of each kind as they are written, those of which controllers make pods among them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from dralloc.api.disclosure import Name, Terms
from dralloc.api.meta import ObjectMeta
from dralloc.api.objects import ApiObject
from dralloc.api.owners import ENDED, PodOwner
from dralloc.api.schema import Entries, Properties, Schema, schema_of
from dralloc.api.workloads import PodTemplate

__all__ = ["wire_schema"]

_NUMBERS: Final = ("replicas", "count", "parallelism", "completions", "minReplicas", "maxReplicas", "numOfHosts")
_INNER_NUMBERS: Final = ("leaderWorkerTemplate.size", "template.spec.parallelism", "template.spec.completions")
_OF_PODS: Final[Mapping[str, Schema]] = {
    **dict.fromkeys(("name", "groupName"), Name.GROUP),
    **dict.fromkeys((*_NUMBERS, *_INNER_NUMBERS), int),
    "suspend": bool,
}
"""What counts and names pods, beside their template."""
_OF_OWNERS: Final[Mapping[str, Schema]] = {
    "metadata": Properties({**schema_of(ObjectMeta).by_name, "name": Name.OWNER}),
    **dict.fromkeys(("spec.suspend", "spec.runPolicy.suspend", "spec.active"), bool),
    "status.conditions.*.type": Terms(*ENDED, "Admitted"),
    "status.conditions.*.status": Terms("True", "False", "Unknown"),
    "status.jobDeploymentStatus": Terms(*ENDED),
}
_ROLES: Final = Terms("Chief", "Evaluator", "Launcher", "Master", "PS", "Worker")
"""What pods are in the jobs of Kubeflow."""


@cache
def wire_schema(model: type[ApiObject]) -> Properties:
    """What is where in objects of a kind."""
    if not issubclass(model, PodOwner):
        return schema_of(model)
    template = schema_of(PodTemplate)
    found = {f"{pods.at}.{path}": template for pods in model.form.pods for path in pods.template}
    beside = {f"{pods.at}.{path}": schema for pods in model.form.pods for path, schema in _OF_PODS.items()}
    tree: dict[str, Any] = {}
    for path, schema in {**found, **_OF_OWNERS, **beside}.items():
        _grow(tree, path.split("."), schema)
    return Properties({step: _grown(part) for step, part in tree.items()})


def _grow(tree: dict[str, Any], path: list[str], schema: Schema) -> None:
    """Put a schema at a path, unless there is one on the way."""
    step, *rest = path
    if not rest:
        tree.setdefault(step, schema)
    elif isinstance(inner := tree.setdefault(step, {}), dict):
        _grow(inner, rest, schema)


def _grown(part: Schema | dict[str, Any]) -> Schema:
    if not isinstance(part, dict):
        return part
    if "*" in part:
        return Entries({}, _ROLES, _grown(part["*"]))
    return Properties({step: _grown(inner) for step, inner in part.items()})
