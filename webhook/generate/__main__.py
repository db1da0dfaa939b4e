"""Writes what is derived from the catalogue; with `--check`, only says what is stale."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import gpugate.policies
from gpugate.policies.catalog import CATALOG
from gpugate.webhook.generate.policy_index import policy_index

if TYPE_CHECKING:
    from collections.abc import Mapping


def generated() -> Mapping[Path, str]:
    """Return every generated file with what belongs in it."""
    policies = Path(gpugate.policies.__file__).resolve().parent
    return {policies / "README.md": policy_index(CATALOG)}


def main() -> int:
    """Write the files, or say which are stale; 1 when any is."""
    parser = argparse.ArgumentParser(prog="python -m gpugate.webhook.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail when a file is stale")
    check = parser.parse_args().check
    stale = [(path, text) for path, text in generated().items() if not path.exists() or path.read_text() != text]
    for path, text in stale:
        if check:
            sys.stderr.write(f"{path.name} in {path.parent.name}/ is stale: run `make generate`\n")
        else:
            path.write_text(text)
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
