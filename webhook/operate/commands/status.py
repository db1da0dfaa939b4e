"""`gpugate webhook status`: show the webhook entries and the state of the installation."""

from __future__ import annotations

import datetime as dt
import sys
from typing import TYPE_CHECKING

from gpugate.webhook.cli.options import Parser
from gpugate.webhook.operate import status_report as status_json
from gpugate.webhook.operate import status_report as status_text
from gpugate.webhook.operate.commands.installed import add_flags, connected, names

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand and return its exit code."""
    args = parser().parse_args(arguments)
    from gpugate.webhook.operate.reading import read_installation  # noqa: PLC0415 -- imports cryptography, which --help does not need
    from gpugate.webhook.operate.status import read_counters, status  # noqa: PLC0415 -- as above

    with connected(args) as connection:
        installation = read_installation(connection, names(connection, args), dt.datetime.now(tz=dt.UTC))
        result = status(installation, read_counters(connection))
    write = status_json.write_json if args.output == "json" else status_text.write_text
    sys.stdout.write(write(result))
    return result.exit_code


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate webhook status",
        description="Show each webhook entry with the API server's counters, and the state of the installation. "
        "`gpugate doctor` reports problems.",
        epilog="examples:\n  gpugate webhook status\n  gpugate webhook status -o json",
    )
    add_flags(command)
    command.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="output format (default: text)"
    )
    return command
