"""`gpugate webhook enable`: turn admission on after `gpugate webhook disable`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpugate.webhook.cli.options import Parser
from gpugate.webhook.operate.commands.installed import (
    INCOMPLETE,
    NOT_DONE,
    OK,
    add_flags,
    connected,
    names,
    print_troubles,
    report_unusable,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand and return its exit code."""
    args = parser().parse_args(arguments)
    from gpugate.webhook.operate.switching import enable, states  # noqa: PLC0415 -- imports cryptography, which --help does not need
    from gpugate.webhook.operate.waiting import reach  # noqa: PLC0415 -- as above

    with connected(args) as connection:
        current = states(connection, args.name)
        exit_code = report_unusable(current)
        if exit_code is not None:
            return exit_code
        targets = [state.configuration for state in current if state.ours and (state.off or state.note.at)]
        unread = any(state.unread for state in current)
        if not targets:
            print(f"{args.name} is on")
            return INCOMPLETE if unread else OK
        if not args.force:
            reached = reach(connection, names(connection, args))
            if not reached.reached:
                print("error: the API server does not reach the webhook, so it stays off:", file=sys.stderr)
                print_troubles(reached, sys.stderr)
                print("To turn it on anyway: gpugate webhook enable --force", file=sys.stderr)
                return INCOMPLETE if reached.incomplete else NOT_DONE
        if args.dry_run:
            print("\n".join(f"{result}: would be turned on" for result in targets))
            return OK
        done = enable(connection, targets)
    for result in done:
        if result.failure:
            print(f"error: {result.configuration} is still off: {result.failure}", file=sys.stderr)
        else:
            print(f"{result.configuration}: on")
    return INCOMPLETE if unread or any(result.failure for result in done) else OK


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate webhook enable",
        description="Undo `gpugate webhook disable`, if the API server reaches the webhook.",
        epilog="examples:\n  gpugate webhook enable",
    )
    add_flags(command)
    add = command.add_argument
    add("--force", action="store_true", help="turn admission on even if the API server does not reach the webhook")
    add("--dry-run", action="store_true", help="print the changes without making them")
    return command
