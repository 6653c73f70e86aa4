"""Help has each command in one section, with an example that the command line accepts."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from dralloc.cli import app
from dralloc.cli.main import COMMANDS, EXAMPLES, SECTIONS
from dralloc.cli.option_sets import GROUPS
from dralloc.cli.plan import PLANS

MODELS = Path(__file__).parents[2] / "models"
ROOT: Any = typer.main.get_command(app)


def test_each_command_is_in_one_section() -> None:
    shown = Counter(name for names in SECTIONS.values() for name in names)
    assert shown == Counter([*COMMANDS, "plan"])


def test_help_shows_the_sections_in_order() -> None:
    text = CliRunner().invoke(app, ["--help"]).stdout
    heads = [
        line.rstrip(":") for line in text.splitlines() if line[:-1] in SECTIONS
    ]
    assert heads == list(SECTIONS)


@pytest.mark.parametrize("name", [*COMMANDS, *PLANS])
def test_examples_have_arguments_and_options_that_exist(name: str) -> None:
    program, *words = shlex.split(EXAMPLES[name])
    command = ROOT
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    assert (program, command.name) == ("dralloc", name)
    context = command.context_class(command, info_name=name)
    _, surplus, _ = command.make_parser(context).parse_args(list(words))
    assert surplus == []


@pytest.mark.parametrize("name", [*COMMANDS, *PLANS])
def test_help_names_no_types_of_python(name: str) -> None:
    words = [name] if name in COMMANDS else ["plan", name]
    text = CliRunner().invoke(app, [*words, "--help"]).stdout
    assert not re.search(r"<(list\[|path>|int range>|text>)", text)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_ends_with_its_example(name: str) -> None:
    text = CliRunner().invoke(app, [name, "--help"]).stdout
    assert text.rstrip().endswith(EXAMPLES[name].split()[-1])


def test_the_example_of_simulate_says_who_arrives(tmp_path: Path) -> None:
    """Without one of the options for that there is nothing to simulate."""
    path = tmp_path / "cluster.yaml"
    path.write_bytes((MODELS / "first-available" / "cluster.yaml").read_bytes())
    arguments = shlex.split(EXAMPLES["simulate"])[1:]
    arguments[arguments.index("cluster.yaml")] = str(path)
    ended = CliRunner().invoke(app, arguments)
    assert "who arrives" not in ended.stderr
    assert "template team/gpu" in ended.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_shared_options_stand_in_groups(name: str) -> None:
    """Every option once, and none of those that many commands share among the command's own."""
    text = CliRunner().invoke(app, [name, "--help"]).stdout
    heads = [line[:-1] for line in text.splitlines() if line.endswith(":")]
    known = ["Arguments", "Options", *GROUPS]
    assert [head for head in known if head in heads] == [
        head for head in heads if head in known
    ]
    own = text.partition("\nOptions:\n")[2].partition("\n\n")[0]
    assert "--help" in own
    assert not {"--quiet", "--live", "--no-headers"} & set(own.split())
    shown = re.findall(r"^  (?:-\w, )?(--[a-z-]+)", text, re.MULTILINE)
    assert len(shown) == len(set(shown))
