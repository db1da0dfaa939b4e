"""What the program is called in its own texts: `gpugate`, or `kubectl gpugate` where kubectl runs it as a plugin.

kubectl runs the executable `kubectl-gpugate` for `kubectl gpugate`; krew's best practices ask that the usage says so.
Source: kubernetes.io, "Extend kubectl with plugins"; krew.sigs.k8s.io, "Best practices".
"""

from __future__ import annotations

import re
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME: Final = "gpugate"
PLUGIN: Final = "kubectl-gpugate"


def program() -> str:
    """Return how the user called the program."""
    executable = PurePath(sys.argv[0]).name if sys.argv else NAME
    return f"kubectl {NAME}" if executable.removesuffix(".exe") == PLUGIN else NAME


def called(text: str, commands: Iterable[str]) -> str:
    """Return a text for users with every call of the program, with one of its commands, as they have to write it."""
    name = program()
    if name == NAME:
        return text
    words = "|".join(map(re.escape, commands))
    # Only before a command is it a call; elsewhere it is the webhook that is spoken of.
    return re.sub(rf"(?<![\w/.-])(?<!kubectl )(?<!-n ){NAME} (?=(?:{words}|COMMAND)\b|--)", f"{name} ", text)
