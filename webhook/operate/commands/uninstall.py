"""`gpugate webhook uninstall`: delete the webhook configurations."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.cli.options import Parser
from gpugate.webhook.operate.commands.installed import INCOMPLETE, NOT_DONE, OK, add_flags, confirmed, connected, names

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.webhook.operate.removal import Removed


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand and return its exit code."""
    args = parser().parse_args(arguments)
    from gpugate.webhook.operate.removal import End  # noqa: PLC0415 -- imports cryptography, which --help does not need

    question = (
        f"Delete both webhook configurations {args.name}{', the certificate Secret and the Lease' if args.all else ''}?"
    )
    if not confirmed(question, yes=args.yes or args.best_effort):
        print("nothing was deleted", file=sys.stderr)
        return NOT_DONE
    try:
        done = _remove(args)
    except GpugateError as error:
        if not args.best_effort:
            raise
        print(f"error: {error}", file=sys.stderr)
        return OK
    for removed in done:
        reason = f": {removed.reason}" if removed.reason else ""
        print(f"{removed.name} {removed.end.value}{reason}", file=sys.stdout if removed.is_absent else sys.stderr)
    if args.best_effort or all(removed.is_absent for removed in done):
        return OK
    return INCOMPLETE if any(removed.end is End.FAILED for removed in done) else NOT_DONE


def _remove(args: argparse.Namespace) -> Sequence[Removed]:
    from gpugate.webhook.operate.removal import (  # noqa: PLC0415 -- as above
        remove_configurations,
        remove_keeper_objects,
    )

    with connected(args) as connection:
        # The configurations contain the namespace, so they are read before they are deleted.
        installation = names(connection, args) if args.all else None
        done = remove_configurations(connection, args.name)
        return [*done, *remove_keeper_objects(connection, installation)] if installation else done


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate webhook uninstall",
        description="Delete both webhook configurations, so that no request waits for a removed webhook.",
        epilog="examples:\n  gpugate webhook uninstall --all",
    )
    add_flags(command)
    add = command.add_argument
    add("--all", action="store_true", help="delete the certificate Secret and the Lease too")
    add(
        "--best-effort",
        action="store_true",
        help="do not ask for confirmation, and exit with 0 after errors; for Helm hooks",
    )
    add("--yes", "-y", action="store_true", help="do not ask for confirmation")
    return command
