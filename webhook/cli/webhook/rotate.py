"""`gpugate webhook rotate`: another certificate authority."""

from __future__ import annotations

import datetime as dt
import sys
from typing import TYPE_CHECKING, Final

from gpugate.webhook.cli.options import Parser, seconds
from gpugate.webhook.cli.webhook.installed import NOT_SO, OK, add_flags, confirmed, connected, names
from gpugate.webhook.operate.rotation import ask, follow

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.webhook.operate.rotation import Progress

_ROTATION: Final = """The leader promotes the next authority as soon as every API server has had time to trust it, ten minutes
after it was published. Replicas then sign new certificates by it within seconds; nothing is interrupted."""
_DISTRUST: Final = """The leader makes a new authority, publishes it, promotes it after ten minutes, and takes the ones
before out of every caBundle after ten more. Until then whoever has the old key can still pass for gpugate."""


def main(arguments: Sequence[str]) -> int:
    """Run the subcommand and return its exit code."""
    args = parser().parse_args(arguments)
    text, question = (
        (_DISTRUST, "Replace every authority?") if args.distrust else (_ROTATION, "Promote the next authority?")
    )
    print(text)
    if not confirmed(question, yes=args.yes):
        print("nothing was asked for", file=sys.stderr)
        return NOT_SO
    value = f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    with connected(args) as connection:
        installation = names(connection, args)
        secret = f"Secret {installation.namespace}/{installation.secret}"
        if not ask(connection, installation, value, distrust=args.distrust):
            print(
                f"error: there is no {secret}: gpugate keeps no certificates there; "
                "those of cert-manager or your own are rotated where they are made",
                file=sys.stderr,
            )
            return NOT_SO
        print(f"asked for, by an annotation of {secret}")
        if not args.wait:
            print("To follow it: gpugate webhook status")
            return OK
        if follow(connection, installation, value, args.timeout, _tell, distrust=args.distrust):
            return OK
    print(f"error: not done after {args.timeout:g} s; the log of the leader says why", file=sys.stderr)
    return NOT_SO


def _tell(progress: Progress) -> None:
    if progress.left:
        print("the authorities before are trusted no longer")
    elif progress.promoted:
        print("the next authority signs")
    elif progress.taken_up:
        print("the leader has taken it up")
    sys.stdout.flush()


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    made = Parser(
        prog="gpugate webhook rotate",
        description="Use the next certificate authority before its time. For installations that keep their own certificates.",
    )
    add_flags(made)
    add = made.add_argument
    add("--distrust", action="store_true", help="a key leaked: replace every authority, and take the old ones away")
    add("--wait", action="store_true", help="wait until it is done, and tell of each step")
    add("--timeout", type=seconds, default=1800.0, metavar="TIME", help="with --wait, for how long (default: 30m)")
    add("--yes", "-y", action="store_true", help="do not ask")
    return made
