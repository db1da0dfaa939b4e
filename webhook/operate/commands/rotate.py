"""`gpugate webhook rotate`: replace the certificate authority."""

from __future__ import annotations

import datetime as dt
import sys
from typing import TYPE_CHECKING, Final

from gpugate.webhook.cli.options import Parser, seconds
from gpugate.webhook.operate.commands.installed import NOT_DONE, OK, add_flags, confirmed, connected, names

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.webhook.operate.rotation import Progress

_ROTATION: Final = """The leader promotes the next CA ten minutes after its publication, when every API server trusts
it. The replicas then sign new certificates with it within seconds, without an interruption."""
_DISTRUST: Final = """The leader creates and publishes a new CA, promotes it after ten minutes, and removes the previous
CAs from every caBundle after ten more minutes. Until then, a leaked key can still impersonate gpugate."""


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand and return its exit code."""
    args = parser().parse_args(arguments)
    from gpugate.webhook.operate.rotation import follow, request_rotation  # noqa: PLC0415 -- imports cryptography, which --help does not need

    text, question = (_DISTRUST, "Replace every CA?") if args.distrust else (_ROTATION, "Promote the next CA?")
    print(text)
    if not confirmed(question, yes=args.yes):
        print("nothing was requested", file=sys.stderr)
        return NOT_DONE
    value = f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    with connected(args) as connection:
        installation = names(connection, args)
        secret = f"Secret {installation.namespace}/{installation.secret}"
        if not request_rotation(connection, installation, value, distrust=args.distrust):
            print(
                f"error: {secret} does not exist: gpugate does not manage certificates there; "
                "rotate certificates of cert-manager or your own at their source",
                file=sys.stderr,
            )
            return NOT_DONE
        print(f"requested with an annotation on {secret}")
        if not args.wait:
            print("To follow the progress: gpugate webhook status")
            return OK
        if follow(connection, installation, value, args.timeout, _print_progress, distrust=args.distrust):
            return OK
    print(f"error: not complete after {args.timeout:g} s; see the log of the leader", file=sys.stderr)
    return NOT_DONE


def _print_progress(progress: Progress) -> None:
    if progress.retired:
        print("the previous CAs are no longer trusted")
    elif progress.promoted:
        print("the next CA signs")
    elif progress.taken_up:
        print("the leader has accepted the request")
    sys.stdout.flush()


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate webhook rotate",
        description="Use the next certificate authority (CA) now, in installations where gpugate manages the certificates.",
        epilog="examples:\n  gpugate webhook rotate --wait",
    )
    add_flags(command)
    add = command.add_argument
    add("--distrust", action="store_true", help="replace all CAs and remove the old ones, after a key leak")
    add("--wait", action="store_true", help="wait until the request is complete, and print each step")
    add("--timeout", type=seconds, default=1800.0, metavar="TIME", help="time limit of --wait (default: 30m)")
    add("--yes", "-y", action="store_true", help="do not ask for confirmation")
    return command
