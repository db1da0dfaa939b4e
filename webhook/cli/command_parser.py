"""The parser that every command uses."""

from __future__ import annotations

import argparse
from typing import Any

from gpugate.webhook.cli.program import called


class Parser(argparse.ArgumentParser):
    """A parser of one command, whose texts call the program as the user did."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # Any: argparse's own arguments, passed on
        super().__init__(*args, **kwargs)
        self.prog = called(self.prog)

    def format_help(self) -> str:
        """Return the help."""
        return called(super().format_help())
