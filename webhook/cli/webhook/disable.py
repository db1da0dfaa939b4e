"""`gpugate webhook disable`: turn admission off in an emergency."""

from __future__ import annotations

import datetime as dt
import sys
from typing import TYPE_CHECKING

from gpugate.webhook.cli.options import Parser
from gpugate.webhook.cli.webhook.installed import INCOMPLETE, NOT_SO, OK, add_flags, confirmed, connected, say_unfit
from gpugate.webhook.generate.break_glass import CONDITION, Note
from gpugate.webhook.operate.switching import disable, states, who

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.webhook.operate.switching import Done, State


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand and return its exit code."""
    args = parser().parse_args(arguments)
    with connected(args) as connection:
        found = states(connection, args.name)
        unfit = say_unfit(found)
        if unfit is not None:
            return unfit
        todo = [state for state in found if state.ours and state.on]
        _tell(found)
        if args.dry_run or not todo:
            return OK
        if not confirmed("Admit every object without evaluation by gpugate?", yes=args.yes):
            print("nothing was changed", file=sys.stderr)
            return NOT_SO
        note = Note(who(connection), f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%dT%H:%M:%SZ}", args.reason)
        done = disable(connection, [state.configuration for state in todo], note)
        return _result(done, complete=not any(state.unread for state in found))


def _tell(found: Sequence[State]) -> None:
    for state in found:
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


def _result(done: Sequence[Done], *, complete: bool) -> int:
    for each in done:
        if each.failure:
            print(f"error: {each.configuration} is still on: {each.failure}", file=sys.stderr)
        else:
            print(f"{each.configuration}: off; API servers apply it within seconds")
    if any(each.failure for each in done) or not complete:
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
    made = Parser(
        prog="gpugate webhook disable",
        description="Turn admission off at once: gpugate no longer denies, patches or delays requests. The configurations "
        "are not deleted. Only `gpugate webhook enable` turns admission on again; applying the chart does not.",
    )
    add_flags(made)
    add = made.add_argument
    add("--reason", metavar="TEXT", default="", help="the reason, which `gpugate webhook status` shows")
    add("--dry-run", action="store_true", help="print the changes without making them")
    add("--yes", "-y", action="store_true", help="do not ask for confirmation")
    return made
