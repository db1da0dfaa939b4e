"""`gpugate new-policy`: write the files of a policy outside the library."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.policies.catalog import CATALOG
from gpugate.webhook.cli import project_flags
from gpugate.webhook.cli.options import Parser, UsageError
from gpugate.webhook.manifests.within import refuse_link
from gpugate.webhook.own_policies.scaffold import constant_of, document_of, files_of
from gpugate.webhook.project.find import FILE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.webhook.cli.project_flags import Project

_DIRECTORY: Final = "policies"
_PROJECT: Final = """\
# Settings of gpugate in this repository; `gpugate config schema project` prints a JSON schema.
policy_paths: [{directory}]
"""


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    args, project = project_flags.parse(parser(), "new-policy", arguments)
    family = args.id.partition("/")[0]
    if family in {policy.id.partition("/")[0] for policy in CATALOG}:
        raise UsageError(f"{args.id}: `{family}` is a family of the library: begin the id with your organisation")
    constant = constant_of(args.kind)
    files = document_of(args.id, constant) if args.cel else files_of(args.id, constant, is_own=True)
    configured = [str(directory) for directory in (*project.own.directories, *project.own.of_project)]
    directory = configured[0] if configured else _DIRECTORY
    _write({f"{directory}/{name}": text for name, text in files.items()})
    print("\n".join(_next(args, directory, project, is_configured=bool(configured))))
    return 0


def _write(files: dict[str, str]) -> None:
    """Write new files.

    Raises:
        LinkError: a directory is a link out of the repository.
        UsageError: a file exists or cannot be written.
    """
    for name in files:
        if os.path.lexists(name):
            raise UsageError(f"{name}: already exists; gpugate does not overwrite it, so choose another id")
    for name, text in files.items():
        path = Path(name)
        refuse_link(path.parent, "the policy")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as opened:
                opened.write(text)
        except OSError as error:
            raise UsageError(f"{name}: {(error.strerror or 'cannot be written').lower()}") from None
        print(f"wrote {name}")


def _next(args: argparse.Namespace, directory: str, project: Project, *, is_configured: bool) -> list[str]:
    """Return what to do next; writes a project file if there is none."""
    lines = []
    if not is_configured and project.file is None and not os.path.lexists(FILE):
        _write({FILE: _PROJECT.format(directory=directory)})
    elif not is_configured:
        named = project.file.file if project.file else FILE
        lines.append(f"Add `policy_paths: [{directory}]` to {named}.")
    return [
        *lines,
        f"Write the {'expressions and the' if args.cel else 'check and its'} documentation, and make the examples real. Then run:",
        f"  gpugate test {directory}",
        f"  gpugate explain {args.id}",
        "  gpugate check .",
    ]


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    command = Parser(
        prog="gpugate new-policy",
        description="Create the files of a new policy outside the library: Python file, denied and allowed example; with "
        "--cel a YAML document with both examples.",
        epilog="examples:\n  gpugate new-policy acme/no-h100-in-dev --kind Pod\n"
        "  gpugate new-policy acme/many-gpus --kind Pod --cel",
    )
    command.add_argument("id", metavar="ORG/NAME", help="id of the policy: your organisation, and the bad pattern")
    command.add_argument(
        "--kind", metavar="KIND", required=True, help="kind that the policy evaluates, such as NodePool"
    )
    command.add_argument("--cel", action="store_true", help="write the policy in CEL, which needs no Python")
    command.add_argument(
        "--policy-path",
        action="append",
        default=[],
        type=Path,
        metavar="DIR",
        help=f"directory of policies (default: that of the project file, else {_DIRECTORY})",
    )
    project_flags.add(command)
    return command
