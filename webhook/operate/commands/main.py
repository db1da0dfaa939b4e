"""`gpugate webhook`: select the subcommand and run it."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import near_misses
from gpugate.webhook.cli.main import COMMANDS
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.cli.program import called

if TYPE_CHECKING:
    from collections.abc import Sequence

SUBCOMMANDS: Final = {
    "status": "show the webhook entries and the installation state",
    "wait": "wait until the API server reaches the webhook",
    "disable": "turn admission off in an emergency; reversible",
    "enable": "undo `disable`",
    "rotate": "use the next certificate authority now",
    "uninstall": "delete both webhook configurations",
}
_INCOMPLETE: Final = 4


def main(arguments: Sequence[str]) -> int:
    """Run a subcommand and return its exit code."""
    name = arguments[0] if arguments else ""
    if name in {"--help", "-h", "help", ""}:
        print(called(_help(), COMMANDS))
        return 0 if name else 2
    if name not in SUBCOMMANDS:
        near = near_misses(name, SUBCOMMANDS)
        suggestion = f"did you mean `gpugate webhook {near[0]}`? " if near else ""
        raise UsageError(f"unknown subcommand {name}\n{suggestion}`gpugate webhook --help` lists the subcommands")
    subcommand = import_module(f"gpugate.webhook.operate.commands.{name}")
    from gpugate.webhook.cluster.errors import CallError  # noqa: PLC0415 -- needs the extra `webhook`, as the subcommand does

    try:
        code: int = subcommand.main(arguments[1:])
    except CallError as error:
        print(f"error: {error}", file=sys.stderr)
        return _INCOMPLETE
    return code


def _help() -> str:
    width = max(map(len, SUBCOMMANDS))
    lines = "\n".join(f"  {name:<{width}}  {text}" for name, text in SUBCOMMANDS.items())
    return f"""usage: gpugate webhook SUBCOMMAND [OPTION ...]

Operate a webhook that is installed in a cluster.

subcommands:
{lines}

exit codes:
  0 success; 1 negative result, or nothing done; 2 wrong usage or configuration;
  4 a read or write failed

examples:
  gpugate webhook status
  gpugate webhook disable --reason 'incident 42'"""
