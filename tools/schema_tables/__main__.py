"""Writes the tables, or tells whether those that are there are the same: `python -m ...schemas.build [--check]`."""

from __future__ import annotations

import argparse
import sys

from gpugate.policies.engine.config import GpugateError
from gpugate.tools.schema_tables.releases import PROJECTS, folder
from gpugate.tools.schema_tables.tables import make_tables
from gpugate.webhook.schemas.tables import BUNDLED


def main() -> int:
    """Run; returns the exit code."""
    parser = argparse.ArgumentParser(prog="make schemas", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a table is another")
    parser.add_argument("--go", metavar="PROGRAM", help="the Go to use (default: that on the path)")
    args = parser.parse_args()
    try:
        files = make_tables(PROJECTS, lambda module: folder(module, args.go))
    except GpugateError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    there = {file.name: file.read_bytes() for file in BUNDLED.glob("*.json")}
    stale = sorted(name for name in files.keys() | there.keys() if files.get(name) != there.get(name))
    if args.check:
        for name in stale:
            sys.stderr.write(f"{BUNDLED / name} is not what the modules make: run `make schemas`\n")
        return 1 if stale else 0
    for name in stale:
        if name in files:
            (BUNDLED / name).write_bytes(files[name])
        else:
            (BUNDLED / name).unlink()
    sys.stdout.write(f"{len(files)} tables, {sum(map(len, files.values())):,} bytes; {len(stale)} changed\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
