"""`gpugate webhook wait`: wait until the API server reaches the webhook."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gpugate.webhook.cli.options import Parser, seconds
from gpugate.webhook.operate.commands.installed import (
    INCOMPLETE,
    NOT_DONE,
    OK,
    add_flags,
    connected,
    names,
    print_troubles,
)

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.webhook.operate.waiting import Reach


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand and return its exit code."""
    args = parser().parse_args(arguments)
    from gpugate.webhook.operate.switching import states  # noqa: PLC0415 -- imports cryptography, which --help does not need
    from gpugate.webhook.operate.waiting import wait  # noqa: PLC0415 -- as above

    with connected(args) as connection:
        installation = names(connection, args)
        result = wait(connection, installation, args.timeout, _print_progress)
        if result.reached:
            print(f"the API server reaches gpugate in {installation.namespace}, to mutate and to validate")
            if any(state.off for state in states(connection, args.name)):
                print("but admission is off; turn it on with: gpugate webhook enable")
            return OK
    print(f"error: the API server does not reach gpugate after {args.timeout:g} s:", file=sys.stderr)
    print_troubles(result, sys.stderr)
    return INCOMPLETE if result.incomplete else NOT_DONE


def _print_progress(result: Reach) -> None:
    print("waiting:", file=sys.stderr)
    print_troubles(result, sys.stderr)
    sys.stderr.flush()


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate webhook wait",
        description="Wait until the webhook answers a request of the API server (a dry run of a ConfigMap), and report why "
        "it does not.",
        epilog="examples:\n  gpugate webhook wait --timeout 5m",
    )
    add_flags(command)
    command.add_argument(
        "--timeout", type=seconds, default=60.0, metavar="TIME", help="time limit: 90, 90s, 5m (default: 60s)"
    )
    return command
