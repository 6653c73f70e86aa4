"""Rules about CEL selectors and configurations, in classes and in claims."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from dralloc.api import DeviceSelector, OpaqueDeviceConfiguration
from dralloc.features import Features
from dralloc.validate.names import driver_name
from dralloc.validate.rule import Issue, Part, Scene, at_most, error, named
from dralloc.validate.walk import classes, configurations, details, opaque, selectors
from kubecel import CelCompileError, FeatureGates, compile_selector, estimated_cost

__all__ = ["MAX_COST", "RULES", "Expression", "raw_object", "too_long"]

MAX_SELECTORS: Final = 32
MAX_EXPRESSION: Final = 10 * 1024
MAX_COST: Final = 1_000_000
MAX_PARAMETERS: Final = 10 * 1024
_COMPILE: Final = "resource.k8s.io validation, validateCELExpression; KEP-4381"


def _lists(scene: Scene) -> Iterator[Part[tuple[DeviceSelector, ...]]]:
    for owner, _, one in classes(scene):
        yield Part(owner, "spec.selectors", one.spec.selectors)
    for owner, path, request in details(scene):
        yield Part(owner, f"{path}.selectors", request.selectors)


def _limit(items: tuple[DeviceSelector, ...], at: str) -> Iterator[Issue]:
    yield from at_most(MAX_SELECTORS, items, at, "selectors")


def _cel(selector: DeviceSelector, at: str) -> Iterator[Issue]:
    if selector.cel is None:
        yield Issue(f"{at}.cel", "is required")


class Expression(NamedTuple):
    """The text of an expression and what it may use."""

    text: str
    features: Features

    @property
    def gates(self) -> FeatureGates:
        """What it may use when it is created."""
        return FeatureGates(self.features.ConsumableCapacity, self.features.ListTypeAttributes)


def _expressions(scene: Scene) -> Iterator[Part[Expression]]:
    for owner, path, selector in selectors(scene):
        if selector.cel is not None:
            yield Part(owner, f"{path}.cel.expression", Expression(selector.cel.expression, scene.features))


def too_long(one: Expression, at: str) -> Iterator[Issue]:
    """An issue with an expression that is longer than the API allows."""
    size = len(one.text.encode(errors="surrogatepass"))
    if size > MAX_EXPRESSION:
        yield Issue(at, f"is {size} bytes long, at most {MAX_EXPRESSION} are allowed")


def _compiles(one: Expression, at: str) -> Iterator[Issue]:
    if any(too_long(one, at)):
        return
    try:
        compile_selector(one.text, one.gates)
    except CelCompileError as failure:
        yield Issue(at, str(failure))


def _cost(one: Expression, at: str) -> Iterator[Issue]:
    if any(too_long(one, at)) or any(_compiles(one, at)):
        return
    cost = estimated_cost(one.text, one.gates)
    if cost > MAX_COST:
        yield Issue(at, f"is too complex: it may cost {cost}, at most {MAX_COST} are allowed")


def _config_kind(config: Any, at: str) -> Iterator[Issue]:
    if config.opaque is None:
        yield Issue(f"{at}.opaque", "is required")


def _driver(config: OpaqueDeviceConfiguration, at: str) -> Iterator[Issue]:
    yield from named(config.driver, f"{at}.driver", driver_name)


def raw_object(value: Any, path: str, limit: int) -> Iterator[Issue]:
    """Issues with something that must be an object whose JSON is not too long."""
    if not isinstance(value, dict):
        yield Issue(path, "must be a JSON object")
        return
    size = len(json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="surrogatepass"))
    if size > limit:
        yield Issue(path, f"is {size} bytes long as JSON, at most {limit} are allowed")


def _parameters(config: OpaqueDeviceConfiguration, at: str) -> Iterator[Issue]:
    yield from raw_object(config.parameters, f"{at}.parameters", MAX_PARAMETERS)


RULES: Final = (
    error("selector-limit", _lists, _limit, "There are at most 32 selectors."),
    error("selector-cel", selectors, _cel, "A selector is a CEL expression."),
    error("selector-length", _expressions, too_long, "An expression has at most 10 KiB.", _COMPILE),
    error("selector-compile", _expressions, _compiles, "An expression compiles and gives a bool.", _COMPILE),
    error("selector-cost", _expressions, _cost, "An expression costs at most 1,000,000 by its estimate.", _COMPILE),
    error("config-opaque", configurations, _config_kind, "A configuration has opaque parameters."),
    error("config-driver", opaque, _driver, "A driver's name is a DNS subdomain of at most 63 characters."),
    error("config-parameters", opaque, _parameters, "Parameters are a JSON object of at most 10 KiB."),
)
