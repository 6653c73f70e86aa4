"""What is offered: every module says what it offers, offers what it says, and others take no more than that."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dralloc
import kubecel
from dralloc.objects.choices import NodelessWords

MODULES = [
    name
    for package in (dralloc, kubecel)
    for name in (
        package.__name__,
        *(
            info.name
            for info in pkgutil.walk_packages(
                package.__path__, f"{package.__name__}."
            )
        ),
    )
    if not name.endswith("__main__")
]

ARTICLES = {"a", "an", "its", "of", "the", "their"}


def imported(name: str) -> Iterator[tuple[str, str]]:
    """What a module imports from others of the project: the module and the name."""
    file = importlib.import_module(name).__file__
    assert file is not None
    for node in ast.walk(ast.parse(Path(file).read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module in MODULES:
            yield from (
                (node.module, alias.name)
                for alias in node.names
                if f"{node.module}.{alias.name}" not in MODULES
            )


def parameters(doc: str) -> Iterator[tuple[str, str]]:
    """The parameters that a docstring describes, and how."""
    _, _, section = inspect.cleandoc(doc).partition("Parameters\n----------\n")
    section = re.split(r"\n\n\w+\n-+\n", section)[0]
    yield from re.findall(
        r"^(\w[^\n]*)\n((?: +[^\n]*\n?|\n(?= ))+)", section, re.MULTILINE
    )


def words(text: str) -> set[str]:
    return {
        word.removesuffix("s") for word in re.findall("[a-z]+", text.lower())
    } - ARTICLES


@pytest.mark.parametrize("name", MODULES)
def test_a_module_offers_what_it_says(name: str) -> None:
    module = importlib.import_module(name)
    assert len(set(module.__all__)) == len(module.__all__)
    assert [
        export for export in module.__all__ if not hasattr(module, export)
    ] == []


@pytest.mark.parametrize("name", MODULES)
def test_nothing_is_taken_that_is_not_offered(name: str) -> None:
    # A star takes what is offered, and nothing else.
    imports = [
        (module, symbol) for module, symbol in imported(name) if symbol != "*"
    ]
    taken = [
        (module, symbol)
        for module, symbol in imports
        if symbol not in importlib.import_module(module).__all__
    ]
    assert taken == []


@pytest.mark.parametrize("name", MODULES)
def test_every_module_says_what_it_is(name: str) -> None:
    assert importlib.import_module(name).__doc__


@pytest.mark.parametrize("name", MODULES)
def test_parameters_are_described_and_not_echoed(name: str) -> None:
    module = importlib.import_module(name)
    documented = [
        member
        for member in vars(module).values()
        if getattr(member, "__module__", "") == name and member.__doc__
    ]
    echoes = [
        f"{member.__name__}: {parameter} - {text.strip()}"
        for member in documented
        if inspect.isclass(member) or inspect.isfunction(member)
        for parameter, text in parameters(member.__doc__ or "")
        if words(text) <= words(parameter.replace("_", " "))
    ]
    assert echoes == []


@pytest.mark.parametrize("name", dralloc.__all__)
def test_what_everybody_uses_is_offered_by_its_module_and_described(
    name: str,
) -> None:
    member = getattr(dralloc, name)
    assert name in importlib.import_module(member.__module__).__all__
    assert name in dir(dralloc)
    assert inspect.getdoc(member)


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in dralloc.__all__
        if inspect.isfunction(getattr(dralloc, name))
    ],
)
def test_every_function_takes_choices_and_says_what_it_does_with_them(
    name: str,
) -> None:
    """All but those that read or write, which are asked nothing."""
    taken = inspect.signature(getattr(dralloc, name)).parameters
    if name in {"example", "load", "report", "validate"}:
        assert "choices" not in taken
        return
    assert taken["choices"].kind is inspect.Parameter.KEYWORD_ONLY
    kinds = {parameter.kind for parameter in taken.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    # Each choice stands in the signature, with what it is by default.
    words = set(NodelessWords.__annotations__)
    assert words <= set(taken)
    assert taken["seed"].default == 0


MODEL = "models/h100-mig-smallest"
POD = "default/large"
QUESTIONS: dict[str, Callable[[Any], object]] = {
    "allocate": dralloc.allocate,
    "capacity": dralloc.capacity,
    "compare": dralloc.compare,
    "defragment": lambda given: dralloc.defragment(given, 1),
    "drain": lambda given: dralloc.drain(given, "node"),
    "explain": lambda given: dralloc.explain(given, claim=POD),
    "export_model": lambda given: dralloc.export_model(given, "unwritten"),
    "fewest_nodes": dralloc.fewest_nodes,
    "headroom": lambda given: dralloc.headroom(given, POD),
    "partition_layout": dralloc.partition_layout,
    "preempt": lambda given: dralloc.preempt(given, pod=POD),
    "simulate": lambda given: dralloc.simulate(given, []),
    "stranded": dralloc.stranded,
    "validate": dralloc.validate,
}


def test_every_question_about_a_cluster_is_among_those_tried() -> None:
    functions = {
        name
        for name in dralloc.__all__
        if inspect.isfunction(getattr(dralloc, name))
    }
    assert (
        functions - {"example", "load", "report", "study"} == QUESTIONS.keys()
    )


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        (MODEL, "not str; dralloc.load('models/h100-mig-smallest') reads it"),
        (
            Path(MODEL),
            "not PosixPath; dralloc.load('models/h100-mig-smallest') reads it",
        ),
        ([{"kind": "Node"}], "not list"),
        (None, "not NoneType"),
    ],
)
def test_a_question_about_a_path_says_how_it_is_read(
    question: str, given: Any, words: str
) -> None:
    with pytest.raises(dralloc.DrallocError) as caught:
        QUESTIONS[question](given)
    assert (
        str(caught.value)
        == f"cluster: must be a Cluster, as dralloc.load gives it, {words}"
    )
