"""`gpugate webhook disable`: turn admission off in an emergency."""

from __future__ import annotations

import datetime as dt
import sys
from typing import TYPE_CHECKING

from gpugate.webhook.cli.options import Parser
from gpugate.webhook.operate.commands.installed import (
    INCOMPLETE,
    NOT_DONE,
    OK,
    add_flags,
    confirmed,
    connected,
    report_unusable,
)
from gpugate.webhook.registration.break_glass import CONDITION, Note

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.webhook.operate.switching import State, Switched


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand and return its exit code."""
    args = parser().parse_args(arguments)
    from gpugate.webhook.operate.switching import current_user, disable, states  # noqa: PLC0415 -- imports cryptography, which --help does not need

    with connected(args) as connection:
        current = states(connection, args.name)
        exit_code = report_unusable(current)
        if exit_code is not None:
            return exit_code
        targets = [state for state in current if state.ours and state.on]
        _print_states(current)
        if args.dry_run or not targets:
            return OK
        if not confirmed("Admit every object without evaluation by gpugate?", yes=args.yes):
            print("nothing was changed", file=sys.stderr)
            return NOT_DONE
        note = Note(current_user(connection), f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%dT%H:%M:%SZ}", args.reason)
        done = disable(connection, [state.configuration for state in targets], note)
        return _print_results(done, complete=not any(state.unread for state in current))


def _print_states(current: Sequence[State]) -> None:
    for state in current:
        if state.ours and state.on:
            print(
                f"{state.configuration}: {len(state.on)} entries get the condition {CONDITION['name']}, which is always false:"
            )
            for entry in state.on:
                print(f"  {entry}")
        elif state.off:
            by = f" by {state.note.by}" if state.note.by else ""
            print(f"{state.configuration}: already off since {state.note.at or 'an unknown time'}{by}")
        elif state.ours:
            print(f"{state.configuration}: no entries")


def _print_results(done: Sequence[Switched], *, complete: bool) -> int:
    for result in done:
        if result.failure:
            print(f"error: {result.configuration} is still on: {result.failure}", file=sys.stderr)
        else:
            print(f"{result.configuration}: off; API servers apply it within seconds")
    if any(result.failure for result in done) or not complete:
        print(
            "To delete both configurations without gpugate: kubectl delete mutatingwebhookconfiguration,"
            f"validatingwebhookconfiguration {done[0].configuration.name}",
            file=sys.stderr,
        )
        return INCOMPLETE
    print("To turn admission on again: gpugate webhook enable")
    return OK


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate webhook disable",
        description="Turn admission off at once: gpugate no longer denies, patches or delays requests. The configurations "
        "are not deleted. Only `gpugate webhook enable` turns admission on again; applying the chart does not.",
        epilog="examples:\n  gpugate webhook disable --dry-run\n  gpugate webhook disable --yes --reason 'incident 42'",
    )
    add_flags(command)
    add = command.add_argument
    add("--reason", metavar="TEXT", default="", help="the reason, which `gpugate webhook status` shows")
    add("--dry-run", action="store_true", help="print the changes without making them")
    add("--yes", "-y", action="store_true", help="do not ask for confirmation")
    return command
