"""The reference of the command line, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer
from tables import table

from dralloc.cli import app
from dralloc.cli.console import Exit

__all__ = ["page"]

_INTRO = """# Command line

Made from the commands themselves; `dralloc COMMAND --help` says the same.

"""
_CODES = {
    Exit.DONE: "done",
    Exit.FAILED: "the command ran and found failures (`validate`, `conformance`)",
    Exit.INPUT: "unusable input or command line; one line per problem, with file, object, field and rule",
    Exit.DEFECT: "internal error: an answer that the independent checker does not accept is withheld",
}


def page() -> str:
    """The page."""
    codes = table(["exit code", "meaning"], ((f"`{code.value}`", words) for code, words in _CODES.items()))
    return _INTRO + codes + "\n" + "\n".join(_of_group(typer.main.get_command(app), "dralloc"))


def _of_group(group: Any, name: str) -> Iterator[str]:
    for key, command in sorted(group.commands.items()):
        yield _section(command, f"{name} {key}")
        if hasattr(command, "commands"):
            yield from _of_group(command, f"{name} {key}")


def _section(command: Any, name: str) -> str:
    context = command.make_context(name, [], resilient_parsing=True)
    usage = " ".join([name, "[OPTIONS]", *(_argument(one) for one in command.params if _is_argument(one))])
    parts = [f"## {name}\n", f"{command.help or ''}\n", f"```text\n{usage}\n```\n"]
    records = [_record(parameter, context) for parameter in command.get_params(context)]
    arguments = [record for record in records if record and not record[0].startswith("-")]
    options = [record for record in records if record and record[0].startswith("-")]
    for title, found in (("argument", arguments), ("option", options)):
        if found:
            parts.append(table([title, "meaning"], ((f"`{what}`", _escaped(words)) for what, words in found)))
    return "\n".join(parts)


def _record(parameter: Any, context: Any) -> tuple[str, str] | None:
    record: tuple[str, str] | None = parameter.get_help_record(context)
    return (_argument(parameter), record[1]) if record and _is_argument(parameter) else record


def _is_argument(parameter: Any) -> bool:
    found: bool = parameter.param_type_name == "argument"
    return found


def _argument(parameter: Any) -> str:
    return parameter.name.upper() + ("..." if parameter.nargs != 1 else "")


def _escaped(text: str) -> str:
    """Words in brackets, such as defaults, are no links."""
    return text.replace("[", "\\[").replace("<", "&lt;")
