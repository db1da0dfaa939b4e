"""`gpugate config`: the configuration in force, a file to begin with, and the schemas of what people and programs write."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import API_VERSION, KIND
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.cli import check_flags, config_origins, options, project_flags
from gpugate.webhook.cli.command_parser import Parser
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.generate.case_schema import case_schema
from gpugate.webhook.generate.config_schema import config_schema
from gpugate.webhook.generate.project_schema import project_schema
from gpugate.webhook.project.find import FILE
from gpugate.webhook.project.settings import skeleton
from gpugate.webhook.report import audit_schema, yaml_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gpugate.policies.engine.ruleset import Ruleset

_Object = dict[str, Any]  # Any: the JSON edge
_SCHEMAS: Final = {
    "policy": config_schema,
    "project": project_schema,
    "test": case_schema,
    "audit": audit_schema.schema,
}


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    made = parser()
    args, further = made.parse_known_args(arguments)
    if args.command == "show":
        print(_shown(args, further), end="")
    elif further:
        made.error(f"unrecognized arguments: {' '.join(further)}")
    elif args.command == "init":
        print(f"wrote {_init()}")
    else:
        print(msgspec.json.format(msgspec.json.encode(_SCHEMAS[args.of]()), indent=2).decode())
    return 0


def _shown(args: argparse.Namespace, further: Sequence[str]) -> str:
    of_check = check_flags.parser()
    of_check.prog = "gpugate config show"
    named = [("--policy-file", args.policy_file), ("--config", args.config)]
    given = [part for flag, file in named if file for part in (flag, str(file))]
    given += ["--no-config"] if args.no_config else []
    filled, project = project_flags.parse(of_check, "check", [*given, *further])
    if project.base is not None:
        raise UsageError(
            "--trust base: config show reads the working directory; check out the base to see its settings"
        )
    ruleset = options.ruleset(filled.policy_file)
    return (
        config_origins.shown(project, ruleset, filled.policy_file)
        if args.origin
        else yaml_text.block(effective(ruleset))
    )


def _init() -> Path:
    file = Path(FILE)
    try:
        # Nothing is lost, whoever else writes it at the same time.
        with file.open("x", encoding="utf-8") as opened:
            opened.write(skeleton())
    except FileExistsError:
        raise UsageError(f"{file}: is there already, and is not overwritten: edit it") from None
    except OSError as error:
        raise UsageError(f"{file}: {(error.strerror or 'cannot be written').lower()}") from None
    return file


def parser() -> argparse.ArgumentParser:
    """Return the parser."""
    made = Parser(prog="gpugate config", description="Show the configuration, or begin one.")
    commands = made.add_subparsers(dest="command", required=True, metavar="show|init|schema")
    show = commands.add_parser(
        "show",
        help="the configuration in force, with every default",
        epilog="Further flags are those of `gpugate check`, and count as they do there.",
    )
    options.add_policy_file(show, options.OF_THE_PROJECT)
    project_flags.add(show)
    origin = "how `check` runs too, and of each value who says so: a flag, a variable, a line of a file, or nobody"
    show.add_argument("--origin", action="store_true", help=origin)
    commands.add_parser("init", help=f"write a {FILE} to begin with; one that is there is left alone")
    schema = commands.add_parser("schema", help="the JSON schema of policy.yaml, of the project file, or of an audit")
    schema.add_argument("of", nargs="?", choices=tuple(_SCHEMAS), default="policy", help="which (default: policy)")
    return made


def effective(ruleset: Ruleset) -> _Object:
    """Return a configuration that says everything it means: what is given, and every default."""
    document: _Object = {"apiVersion": API_VERSION, "kind": KIND, **msgspec.to_builtins(ruleset.config)}
    # Each policy has its own mode below, so that there is no ceiling left to say.
    document.pop("mode")
    bound = {rule.policy.id: rule for rule in ruleset.rules}
    document["policies"] = {}
    for policy in CATALOG:
        rule = bound.get(policy.id)
        entry: _Object = {"mode": (rule.mode if rule else Stance.OFF).word}
        params = msgspec.to_builtins(rule.params) if rule else {}
        document["policies"][policy.id] = {**entry, "params": params} if params else entry
    return document
