"""What `gpugate config show --origin` prints: YAML whose comments say where each value comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import API_VERSION, KIND, PolicyConfig
from gpugate.policies.engine.ruleset import entry_of
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.manifests.policy_file import PolicySource, policy_source, read_policy_file
from gpugate.webhook.report import yaml_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gpugate.policies.engine.ruleset import Rule, Ruleset
    from gpugate.policies.sdk import field
    from gpugate.webhook.cli.project_flags import Project

DEFAULT: Final = "default"
SHIPPED: Final = "shipped"


class _Line(NamedTuple):
    text: str
    origin: str = ""


def shown(project: Project, ruleset: Ruleset, policy_file: Path | None) -> str:
    """Return two documents: the settings of the project, and the policy configuration."""
    remarks = [f"# {remark}\n" for remark in project.remarks]
    file = f"# Project file: {project.file.file if project.file else 'none'}\n"
    settings = _written(_settings(project))
    policies = _written(_policies(ruleset, _Origins(policy_file)))
    return f"{file}{''.join(remarks)}{settings}---\n# Policy file: {policy_file or 'none'}\n{policies}"


class _Origins:
    """Where in the policy file something stands."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._source: PolicySource | None = policy_source(file, read_policy_file(file)) if file else None

    def of(self, path: field.Path, otherwise: str) -> str:
        """Return file and line of a path; `otherwise` where the file does not have it."""
        value: Any = self._source.document.value if self._source else None
        for part in path:
            found = isinstance(value, dict) and part in value
            found = found or (isinstance(value, list) and isinstance(part, int) and part < len(value))
            if not found:
                return otherwise
            value = value[part]
        return f"{self._file}:{self._source.place(path)[0]}" if self._source else otherwise


def _settings(project: Project) -> Iterator[_Line]:
    for key, settled in project.settings.items():
        yield _Line(f"{key}: {yaml_text.inline(msgspec.to_builtins(settled.value))}", settled.origin)


def _policies(ruleset: Ruleset, origins: _Origins) -> Iterator[_Line]:
    config = ruleset.config
    document: dict[str, Any] = msgspec.to_builtins(config)
    yield _Line(f"apiVersion: {API_VERSION}")
    yield _Line(f"kind: {KIND}")
    for section in ("target", "platform"):
        yield _Line(f"{section}:")
        for key, value in document[section].items():
            yield _Line(f"  {key}: {yaml_text.inline(value)}", origins.of((section, key), DEFAULT))
    yield _Line("policies:")
    bound = {rule.policy.id: rule for rule in ruleset.rules}
    for policy in CATALOG:
        rule = bound.get(policy.id)
        yield _Line(f"  {policy.id}:")
        mode = (rule.mode if rule else Stance.OFF).word
        yield _Line(f"    mode: {yaml_text.inline(mode)}", _mode_origin(policy.id, config, rule, origins))
        yield from _params(rule, config, origins) if rule else ()
    for section in ("namespaces", "excluded_namespaces"):
        yield _Line(f"{section}: {yaml_text.inline(document[section])}", origins.of((section,), DEFAULT))
    yield _Line("exemptions:" if config.exemptions else "exemptions: []", "" if config.exemptions else DEFAULT)
    for index, exemption in enumerate(document["exemptions"]):
        yield _Line(f"  - {yaml_text.inline(exemption)}", origins.of(("exemptions", index), DEFAULT))


def _mode_origin(policy_id: str, config: PolicyConfig, rule: Rule | None, origins: _Origins) -> str:
    policy = next(policy for policy in CATALOG if policy.id == policy_id)
    key = entry_of(policy, config)
    if key is not None and config.policies[key].mode is not None:
        return origins.of(("policies", key, "mode"), SHIPPED)
    lowered = config.mode is not None and (rule.mode if rule else Stance.OFF) < policy.mode
    return origins.of(("mode",), SHIPPED) if lowered else SHIPPED


def _params(rule: Rule, config: PolicyConfig, origins: _Origins) -> Iterator[_Line]:
    params = msgspec.to_builtins(rule.params)
    key = entry_of(rule.policy, config) or rule.policy.id
    yield from [_Line("    params:")] if params else []
    for name, value in params.items():
        yield _Line(f"      {name}: {yaml_text.inline(value)}", origins.of(("policies", key, "params", name), SHIPPED))


def _written(lines: Iterable[_Line]) -> str:
    return "".join(f"{line.text}  # {line.origin}\n" if line.origin else f"{line.text}\n" for line in lines)
