"""`gpugate config`: the configuration in force, and the schema of the file."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import API_VERSION, KIND, PolicyConfig, PolicyEntry
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.cli import options
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.policy import Policy

_Object = dict[str, Any]  # Any: the JSON edge


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="gpugate config", description="Show the configuration.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="show|schema")
    options.add_policy_file(commands.add_parser("show", help="the configuration in force, with every default"))
    commands.add_parser("schema", help="the JSON schema of policy.yaml, for editors")
    args = parser.parse_args(arguments)
    if args.command == "schema":
        print(msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode())
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


def schema() -> _Object:
    """Return the JSON schema (draft 2020-12) of the policy file, with the parameters of each policy."""
    given = {policy.id: policy.params for policy in CATALOG if msgspec.structs.fields(policy.params)}
    types = (PolicyConfig, *given.values())
    (_, *references), definitions = msgspec.json.schema_components(types, ref_template="#/$defs/{name}")
    params = dict(zip(given, references, strict=True))
    root = definitions.pop(PolicyConfig.__name__)
    entry = definitions[PolicyEntry.__name__]
    properties = {
        "apiVersion": {"const": API_VERSION},
        "kind": {"const": KIND},
        **root["properties"],
        "policies": {
            "type": "object",
            "properties": {policy.id: _entry(entry, policy, params.get(policy.id)) for policy in CATALOG},
            "additionalProperties": {"$ref": f"#/$defs/{PolicyEntry.__name__}"},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **root,
        "title": KIND,
        "properties": properties,
        "required": ["apiVersion", "kind"],
        "$defs": definitions,
    }


def _entry(entry: _Object, policy: Policy, params: _Object | None) -> _Object:
    """The entry of one policy: that of any, with its own parameters."""
    own: _Object = params or {"type": "object", "maxProperties": 0}
    return {**entry, "title": policy.title, "properties": {**entry["properties"], "params": own}}
