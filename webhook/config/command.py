"""`gpugate config`: show the effective configuration, create a config file, and print JSON schemas."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from gpugate.policies.engine.clusters import EVERYWHERE, ClusterConfig, labels_of, layers_of, source_of, unmatched
from gpugate.policies.engine.config import API_VERSION, KIND, PolicyConfig
from gpugate.policies.engine.ruleset import settings_of
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.platform import CLASSES_KEY
from gpugate.webhook.audit import merged, why_json
from gpugate.webhook.audit.formats import json as audit_json
from gpugate.webhook.check import flags as check_flags
from gpugate.webhook.cli import options, project_flags
from gpugate.webhook.cli.identity import cluster_of
from gpugate.webhook.cli.options import Parser, UsageError
from gpugate.webhook.config import starter
from gpugate.webhook.config.published_schemas import (
    case_schema,
    catalogue_schema,
    cel_policy_schema,
    config_schema,
    project_schema,
)
from gpugate.webhook.fleet import model as fleet
from gpugate.webhook.manifests.policy_file import PolicySource, policy_source, read_policy_file
from gpugate.webhook.own_policies.catalog import OwnPaths
from gpugate.webhook.project.find import FILE
from gpugate.webhook.project.settings import skeleton
from gpugate.webhook.report import yaml_text
from gpugate.webhook.simulate import formats as simulation

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.policies.engine.ruleset import Rule, Ruleset
    from gpugate.policies.sdk import field
    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.cli.project_flags import Project

DEFAULT: Final = "default"
SHIPPED: Final = "shipped"


class _Line(NamedTuple):
    text: str
    origin: str = ""


def settings_text(project: Project, ruleset: Ruleset, policy_file: Path | None) -> str:
    """Return two documents: the settings of the project, and the policy configuration."""
    remarks = [f"# {remark}\n" for remark in project.remarks]
    file = f"# Project file: {project.file.file if project.file else 'none'}\n"
    settings = _written(_settings(project))
    return f"{file}{''.join(remarks)}{settings}---\n{policies_text(ruleset, policy_file)}"


def policies_text(ruleset: Ruleset, policy_file: Path | None) -> str:
    """Return the policy configuration of a cluster, with the origin of each value."""
    origins = _Origins(policy_file)
    cluster = "".join(f"# {line}\n" for line in _cluster(ruleset.config, origins))
    return f"# Policy file: {policy_file or 'none'}\n{cluster}{_written(_policies(ruleset, origins))}"


def _cluster(config: PolicyConfig, origins: _Origins) -> Iterator[str]:
    """Yield the cluster, and for each entry of `clusters` whether it applies."""
    if not isinstance(config, ClusterConfig):
        return
    known = labels_of(config.platform.cluster) if config.platform.cluster else {}
    labels = ", ".join(f"{label}={value}" for label, value in known.items())
    yield f"Cluster: {labels or 'unknown; the following holds in all clusters, unless an entry of `clusters` matches'}"
    for index, entry in enumerate(config.file.clusters):
        label = unmatched(entry, known)
        have = f"is {known[label]}" if label in known else "is not set"
        result = f"does not apply: {label} {have}, not {_wanted(entry.match[label])}" if label else "applies"
        yield f"clusters[{index}] ({origins.of(('clusters', index), DEFAULT)}) {result}"


class _Origins:
    """The locations of values in the policy file."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._source: PolicySource | None = policy_source(file, read_policy_file(file)) if file else None

    def of(self, path: field.Path, otherwise: str) -> str:
        """Return file and line of a path; `otherwise` if the file does not set it."""
        value: Any = self._source.document.value if self._source else None
        for part in path:
            is_set = isinstance(value, dict) and part in value
            is_set = is_set or (isinstance(value, list) and isinstance(part, int) and part < len(value))
            if not is_set:
                return otherwise
            value = value[part]
        return f"{self._file}:{self._source.locate(path)[0]}" if self._source else otherwise


def _wanted(values: str | tuple[str, ...]) -> str:
    return values if isinstance(values, str) else " or ".join(values)


def _settings(project: Project) -> Iterator[_Line]:
    for key, settled in project.settings.items():
        yield _Line(f"{key}: {yaml_text.inline(msgspec.to_builtins(settled.value))}", settled.origin)


def _policies(ruleset: Ruleset, origins: _Origins) -> Iterator[_Line]:
    config = ruleset.config
    document = _builtins(config)
    yield _Line(f"apiVersion: {API_VERSION}")
    yield _Line(f"kind: {KIND}")
    for section in ("target", "platform"):
        yield _Line(f"{section}:")
        for key, value in document[section].items():
            path = source_of(config, (section, key))
            yield _Line(f"  {key}: {yaml_text.inline(value)}", origins.of(path, DEFAULT))
    yield _Line("policies:")
    bound = {rule.policy.id: rule for rule in ruleset.rules}
    for policy in ruleset.catalog:
        rule = bound.get(policy.id)
        yield _Line(f"  {policy.id}:")
        mode = (rule.mode if rule else Stance.OFF).word
        yield _Line(f"    mode: {yaml_text.inline(mode)}", _mode_origin(policy, config, rule, origins))
        yield from _params(rule, config, origins) if rule else ()
    for section in ("namespaces", "excluded_namespaces"):
        path = source_of(config, (section,))
        yield _Line(f"{section}: {yaml_text.inline(document[section])}", origins.of(path, DEFAULT))
    yield _Line("exemptions:" if config.exemptions else "exemptions: []", "" if config.exemptions else DEFAULT)
    for index, exemption in enumerate(document["exemptions"]):
        yield _Line(f"  - {yaml_text.inline(exemption)}", origins.of(source_of(config, ("exemptions", index)), DEFAULT))


def _mode_origin(policy: Policy, config: PolicyConfig, rule: Rule | None, origins: _Origins) -> str:
    settings = settings_of(policy, layers_of(config))
    if settings.mode is not None:
        return origins.of(settings.mode_path, SHIPPED)
    lowered = config.mode is not None and (rule.mode if rule else Stance.OFF) < policy.mode
    return origins.of(source_of(config, ("mode",)), SHIPPED) if lowered else SHIPPED


def _params(rule: Rule, config: PolicyConfig, origins: _Origins) -> Iterator[_Line]:
    params = msgspec.to_builtins(rule.params)
    paths = settings_of(rule.policy, layers_of(config)).params_paths
    yield from [_Line("    params:")] if params else []
    for name, value in params.items():
        origin = origins.of(paths[name], SHIPPED) if name in paths else SHIPPED
        yield _Line(f"      {name}: {yaml_text.inline(value)}", origin)


def _written(lines: Iterable[_Line]) -> str:
    return "".join(f"{line.text}  # {line.origin}\n" if line.origin else f"{line.text}\n" for line in lines)


_Object = dict[str, Any]  # Any: the JSON edge
_CLASSES: Final = CLASSES_KEY.rpartition(".")[2]
_SCHEMAS: Final = {
    "policy": config_schema,
    "cel-policy": cel_policy_schema,
    "project": project_schema,
    "test": case_schema,
    "audit": audit_json.schema,
    "audit-clusters": merged.schema,
    "catalogue": catalogue_schema,
    "why": why_json.schema,
    "simulation": simulation.schema,
    "fleet": fleet.schema,
}


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    flags = parser()
    args, further = flags.parse_known_args(arguments)
    if args.command == "show":
        print(_settings_of_check(args, further), end="")
    elif further:
        flags.refuse(further)
    elif args.command == "init":
        _init()
    else:
        print(msgspec.json.format(msgspec.json.encode(_schema(args)), indent=2).decode())
    return 0


def _schema(args: argparse.Namespace) -> _Object:
    if args.of != "policy":
        return _SCHEMAS[args.of]()
    own = OwnPaths(tuple(args.policy_path))
    return config_schema(own.catalog(PolicyConfig(), None).policies)


def _settings_of_check(args: argparse.Namespace, further: Sequence[str]) -> str:
    of_check = check_flags.parser()
    of_check.prog = "gpugate config show"
    named = [("--policy-file", args.policy_file), ("--config", args.config), ("--cluster-name", args.cluster)]
    named_flags = [part for flag, file in named if file for part in (flag, str(file))]
    named_flags += ["--no-config"] if args.no_config else []
    filled, project = project_flags.parse(of_check, "check", [*named_flags, *further])
    if project.base is not None:
        raise UsageError(
            "--trust base: config show reads the working directory; check out the base to see its settings"
        )
    cluster = cluster_of(filled)
    ruleset = options.ruleset(filled.policy_file, project.own, cluster or EVERYWHERE)
    if args.origin:
        return settings_text(project, ruleset, filled.policy_file)
    return policies_text(ruleset, filled.policy_file) if cluster else yaml_text.block(effective(ruleset))


def _init() -> None:
    """Write a project file and the policy file that it names; a policy file that exists is kept.

    Raises:
        UsageError: the project file exists, or a file cannot be written.
    """
    if not _create(Path(FILE), skeleton(starter.FILE)):
        raise UsageError(f"{FILE}: already exists; gpugate does not overwrite it, so edit the file")
    print(f"wrote {FILE}")
    print(f"{'wrote' if _create(Path(starter.FILE), starter.POLICY_FILE) else 'kept'} {starter.FILE}")


def _create(file: Path, text: str) -> bool:
    """Write a file; returns False if it exists."""
    try:
        # Exclusive creation never overwrites a file that another process writes at the same time.
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text)
    except FileExistsError:
        return False
    except OSError as error:
        raise UsageError(f"{file}: {(error.strerror or 'cannot be written').lower()}") from None
    return True


def parser() -> Parser:
    """Return the parser."""
    flags = Parser(
        prog="gpugate config",
        description="Show the configuration, create a project file, or print JSON schemas.",
        epilog="examples:\n  gpugate config init\n  gpugate config show --origin\n  gpugate config schema project",
    )
    commands = flags.add_subparsers(dest="command", required=True, metavar="show|init|schema")
    show = commands.add_parser(
        "show",
        help="show the effective configuration, including defaults",
        description="Show the effective configuration, including defaults. Accepts all options of `gpugate check`.",
        epilog="examples:\n  gpugate config show\n  gpugate config show --origin -p policy.yaml\n"
        "  gpugate config show --cluster gpu-1",
    )
    options.add_policy_file(show, options.OF_THE_PROJECT)
    project_flags.add(show)
    of_cluster = "show what holds in this cluster, and the origin of each value; --cluster-region and --cluster-label describe it"
    show.add_argument("--cluster", metavar="NAME", help=of_cluster)
    origin = "show the settings of `check` too, and the origin of each value: flag, variable, file and line, or default"
    show.add_argument("--origin", action="store_true", help=origin)
    commands.add_parser(
        "init",
        help=f"create {FILE} and {starter.FILE}",
        description=f"Create {FILE} and {starter.FILE}. Existing files are not changed.",
        epilog="examples:\n  gpugate config init",
    )
    schema = commands.add_parser(
        "schema",
        help="print a JSON schema",
        description="Print the JSON schema of a file that gpugate reads, or of a document that it writes.",
        epilog="examples:\n  gpugate config schema project > .gpugate.schema.json\n"
        "  gpugate config schema --policy-path policies > policy.schema.json",
    )
    schema.add_argument(
        "of",
        nargs="?",
        metavar="SCHEMA",
        choices=tuple(_SCHEMAS),
        default="policy",
        help=f"{options.listed(tuple(_SCHEMAS))} (default: policy)",
    )
    options.add_policy_path(schema)
    return flags


def _builtins(config: PolicyConfig) -> _Object:
    """Return a configuration, with the default workload classes if it sets none."""
    document: _Object = msgspec.to_builtins(config)
    # What is shown holds in one cluster.
    for key in ("file", "applied", "clusters"):
        document.pop(key, None)
    document["platform"][_CLASSES] = msgspec.to_builtins(config.platform.classes)
    return document


def effective(ruleset: Ruleset) -> _Object:
    """Return a configuration with all defaults written out."""
    document: _Object = {"apiVersion": API_VERSION, "kind": KIND, **_builtins(ruleset.config)}
    # Each policy below has its effective mode, so the highest mode is redundant.
    document.pop("mode")
    bound = {rule.policy.id: rule for rule in ruleset.rules}
    document["policies"] = {}
    for policy in ruleset.catalog:
        rule = bound.get(policy.id)
        entry: _Object = {"mode": (rule.mode if rule else Stance.OFF).word}
        params = msgspec.to_builtins(rule.params) if rule else {}
        document["policies"][policy.id] = {**entry, "params": params} if params else entry
    return document
