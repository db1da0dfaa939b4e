"""`gpugate webhook enable`: turn admission on after `gpugate webhook disable`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpugate.webhook.cli.options import Parser
from gpugate.webhook.cli.webhook.installed import (
    INCOMPLETE,
    NOT_SO,
    OK,
    add_flags,
    connected,
    names,
    say_unfit,
    tell_troubles,
)
from gpugate.webhook.operate.switching import enable, states
from gpugate.webhook.operate.waiting import reach

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand and return its exit code."""
    args = parser().parse_args(arguments)
    with connected(args) as connection:
        found = states(connection, args.name)
        unfit = say_unfit(found)
        if unfit is not None:
            return unfit
        todo = [state.configuration for state in found if state.ours and (state.off or state.note.at)]
        unread = any(state.unread for state in found)
        if not todo:
            print(f"{args.name} is on")
            return INCOMPLETE if unread else OK
        if not args.force:
            reached = reach(connection, names(connection, args))
            if not reached.reached:
                print("error: the API server does not reach the webhook, so it stays off:", file=sys.stderr)
                tell_troubles(reached, sys.stderr)
                print("To turn it on anyway: gpugate webhook enable --force", file=sys.stderr)
                return INCOMPLETE if reached.incomplete else NOT_SO
        if args.dry_run:
            print("\n".join(f"{each}: would be turned on" for each in todo))
            return OK
        done = enable(connection, todo)
    for each in done:
        if each.failure:
            print(f"error: {each.configuration} is still off: {each.failure}", file=sys.stderr)
        else:
            print(f"{each.configuration}: on")
    return INCOMPLETE if unread or any(each.failure for each in done) else OK


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    made = Parser(
        prog="gpugate webhook enable",
        description="Undo `gpugate webhook disable`, if the API server reaches the webhook.",
    )
    add_flags(made)
    add = made.add_argument
    add("--force", action="store_true", help="turn admission on even if the API server does not reach the webhook")
    add("--dry-run", action="store_true", help="print the changes without making them")
    return made
