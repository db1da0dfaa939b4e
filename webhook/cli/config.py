"""`gpugate config`: the configuration in force, and the schemas of the files that people and programs write and read."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import API_VERSION, KIND
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.cli import options
from gpugate.webhook.generate.config_schema import config_schema
from gpugate.webhook.report import audit_schema, yaml_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.engine.ruleset import Ruleset

_Object = dict[str, Any]  # Any: the JSON edge
_SCHEMAS: Final = {"policy": config_schema, "audit": audit_schema.schema}


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="gpugate config", description="Show the configuration.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="show|schema")
    options.add_policy_file(commands.add_parser("show", help="the configuration in force, with every default"))
    schema = commands.add_parser("schema", help="the JSON schema of policy.yaml, for editors, or of an audit")
    schema.add_argument("of", nargs="?", choices=tuple(_SCHEMAS), default="policy", help="which (default: policy)")
    args = parser.parse_args(arguments)
    if args.command == "schema":
        print(msgspec.json.format(msgspec.json.encode(_SCHEMAS[args.of]()), indent=2).decode())
    else:
        print(yaml_text.block(effective(options.ruleset(args.policy_file))), end="")
    return 0


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
