"""``--show-completion SHELL`` and ``--install-completion SHELL``.

Without a shell, they mean the one that dralloc is called from, and Typer does all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import typer

from dralloc.objects.errors import ChoiceError

__all__ = ["completed_for_shell"]

_SHOW: Final = "--show-completion"
_INSTALL: Final = "--install-completion"
_SHELLS: Final = ("bash", "zsh", "fish", "powershell", "pwsh")


def completed_for_shell(command: Any, name: str, arguments: Sequence[str]) -> bool:
    """Show or install the completion for a shell that is named.

    Parameters
    ----------
    command
        What is completed.
    name
        How it is called.
    arguments
        What follows the name.

    Returns
    -------
    bool
        Whether that was asked, so that nothing is left to do.

    Raises
    ------
    ChoiceError
        There is no completion for this shell.
    """
    if len(arguments) != 2 or arguments[0] not in (_SHOW, _INSTALL):
        return False
    option, shell = arguments
    # Typer shows `install` there, but its types do not say so.
    from typer.completion import install, shell_complete  # type: ignore[attr-defined]

    if shell not in _SHELLS:
        raise ChoiceError("shell", shell, _SHELLS)
    if option == _INSTALL:
        _, path = install(shell=shell, prog_name=name)
        typer.echo(
            f"{shell} completion installed in {path}: it is there when the terminal is started anew"
        )
    else:
        variable = f"_{name.replace('-', '_').upper()}_COMPLETE"
        shell_complete(command, {}, name, variable, f"source_{shell}")
    return True
