"""Write the generated files of the repository; with `--check`, only report stale ones."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import gpugate.policies
from gpugate.policies.catalog import CATALOG
from gpugate.tools.chart_files import chart_files
from gpugate.tools.command_reference import command_reference
from gpugate.tools.policy_page import policy_index, policy_page
from gpugate.tools.reference_pages import chart_readme, reference_pages
from gpugate.tools.sdk_page import sdk_page
from gpugate.webhook.config.published_schemas import published_schemas

if TYPE_CHECKING:
    from collections.abc import Mapping


def generated() -> Mapping[Path, str]:
    """Return every generated file with its content."""
    policies = Path(gpugate.policies.__file__).resolve().parent
    pages = policies.parent / "docs" / "policies"
    chart = policies.parent / "charts" / "gpugate"
    schemas = policies.parent / "docs" / "schemas"
    return {
        policies / "README.md": policy_index(CATALOG),
        **{pages / f"{policy.id}.md": policy_page(policy) for policy in CATALOG},
        **{schemas / name: text for name, text in published_schemas().items()},
        **{
            pages.parent / "reference" / name: text
            for name, text in reference_pages((chart / "values.yaml").read_text()).items()
        },
        chart / "README.md": chart_readme((chart / "README.md").read_text(), (chart / "values.yaml").read_text()),
        pages.parent / "reference" / "commands.md": command_reference(),
        pages.parent / "reference" / "policy-sdk.md": sdk_page(),
        **{chart / name: text for name, text in chart_files((chart / "values.schema.json").read_text()).items()},
    }


def left_over(wanted: Mapping[Path, str]) -> list[Path]:
    """Return files that are no longer generated."""
    pages = {path.parent.parent for path in wanted if path.suffix == ".md" and path.parent.parent.name == "policies"}
    paths = [path for folder in pages for path in folder.glob("*/*.md")]
    return [path for path in paths if path not in wanted]


def main() -> int:
    """Write the files, or report stale ones; return 1 if any is stale."""
    parser = argparse.ArgumentParser(prog="python -m gpugate.tools", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, and fail if a file is stale")
    check = parser.parse_args().check
    wanted = generated()
    superfluous = left_over(wanted)
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in (*stale, *superfluous):
        if check:
            sys.stderr.write(f"{path} is stale: run `make generate`\n")
        elif path in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[path])
        else:
            path.unlink()
    return 1 if check and (stale or superfluous) else 0


if __name__ == "__main__":
    sys.exit(main())
