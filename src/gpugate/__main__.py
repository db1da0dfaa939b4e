"""Runs the program as `python -I -m gpugate`: isolated, so that nothing is imported from the working directory."""

from __future__ import annotations

import sys

from gpugate.webhook.cli.main import run

if __name__ == "__main__":
    sys.exit(run())
