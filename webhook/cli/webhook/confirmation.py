"""Asks the person at the terminal before something is done."""

from __future__ import annotations

import sys

from gpugate.webhook.cli.options import UsageError


def confirmed(question: str, *, yes: bool) -> bool:
    """Return whether to go on: it was said beforehand, or is said now.

    Raises:
        UsageError: nobody is there to ask.
    """
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Nobody is at a terminal to answer: add --yes")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
