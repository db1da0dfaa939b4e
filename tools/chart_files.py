"""The parts of the Helm chart that are derived from the policy library, and the descriptions of its values.

Derived are `files/webhooks.json`, `files/rbac.json`, and the schema of `policy` in `values.schema.json`. Everything else in
`charts/gpugate` is written by hand.

Match conditions depend on the names that `policy.platform` adds, which are known when Helm renders the chart. Their
expressions are Go templates in which `.taints` and `.resources` are these names, as alternatives of a regular expression.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.sdk.platform import Accelerators, Platform, Taint
from gpugate.webhook.config.published_schemas import config_schema
from gpugate.webhook.registration import probe
from gpugate.webhook.registration.entries import RiskGroup, entries, whole_catalogue
from gpugate.webhook.registration.objects import COMMON
from gpugate.webhook.registration.rbac import (
    audit_rules,
    event_rules,
    keeper_rules,
    publisher_rules,
    rbac,
    report_rules,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gpugate.webhook.registration.entries import Entry, Phase

_Object = dict[str, Any]  # Any: the JSON edge

# Names that are replaced by those of a platform.
_PLATFORM: Final = Platform(
    taints={"*": (Taint(key="<taints>"),)}, accelerators=Accelerators(resources=("<resources>",))
)
_NAMES: Final = r"'\^\(\?s: \|<(taints|resources)>\)\$'"
# How `match_conditions.py` writes them, and under a negation.
_OF_PLATFORM: Final = re.compile(
    rf" \|\| size\({_NAMES}\) > \d+ \|\| (?:size\([\w.]+\.filter\(\w, )?[\w.]+\.matches\({_NAMES}\)(?:\)\) > 0)?"
    rf"| \|\| size\([\w.]+\) <= \d+ && size\({_NAMES}\) <= \d+ && [\w.]+\.matches\({_NAMES}\)"
)
_COMMENT: Final = re.compile(r" *# (?P<first>-- )?(?P<text>.*)")
_FULL_NAME: Final = '{{ include "gpugate.fullname" . }}'
_DEFINITIONS: Final = "Policy"
# They stand in selectors and match conditions, where quotes and most patterns would mean something else.
_PLATFORM_NAME: Final = {
    "type": "string",
    "pattern": "^[A-Za-z0-9*]([A-Za-z0-9./_*-]*[A-Za-z0-9*])?$",
    "maxLength": 253,
}
_NAMESPACE: Final = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}
# Helm's regular expressions (RE2) cannot look around; the server checks such a parameter itself.
_LOOKS_AROUND: Final = re.compile(r"\(\?<?[=!]")


_SHADOW: Final = f"{_DEFINITIONS}ShadowFile"


def chart_files(schema: str) -> Mapping[str, str]:
    """Return path within the chart -> text.

    Args:
        schema: `values.schema.json` as it is; only the parts that describe `policy` are replaced.
    """
    return {
        "files/webhooks.json": _json(webhooks()),
        "files/rbac.json": _json(rights()),
        "values.schema.json": _json(values_schema(json.loads(schema))),
    }


def webhooks() -> _Object:
    """Return the entries of both webhook configurations for the whole policy library.

    `failurePolicyValue` is the key of the group's values that decides; an entry without it has a fixed failure policy.
    """
    ruleset = whole_catalogue(PolicyConfig(platform=_PLATFORM))

    def configuration(kind: str, phase: Phase, value: str, **common: str) -> _Object:
        rendered = [_entry(entry, value) for entry in entries(ruleset, phase)]
        probe_entry = probe.entry(phase, "")
        del probe_entry["namespaceSelector"]
        return {
            "kind": f"{kind}WebhookConfiguration",
            "path": phase,
            "timeoutValue": f"{phase}TimeoutSeconds",
            "common": {**COMMON, **common},
            "webhooks": [*rendered, probe_entry],
        }

    return {
        "groups": [group.value for group in RiskGroup],
        "configurations": [
            configuration("Mutating", "mutate", "mutatingFailurePolicy", reinvocationPolicy="IfNeeded"),
            configuration("Validating", "validate", "failurePolicy"),
        ],
    }


def _entry(entry: Entry, value: str) -> _Object:
    return {
        "name": entry.name,
        "group": entry.group.value,
        **({"failurePolicyValue": value} if entry.may_wait else {"failurePolicy": "Ignore"}),
        **({"exemptKarpenter": True} if entry.group.written_by_karpenter else {}),
        "matchConditions": [
            {**condition, "expression": _template(condition["expression"])} for condition in entry.conditions
        ],
        "rules": list(entry.rules),
    }


def _template(expression: str) -> str:
    """Return an expression as a Go template: what compares with the names of a platform is left out where there are none."""
    if "{{" in expression:
        raise ValueError(f"Helm would read this match condition as a template: {expression}")
    return _OF_PLATFORM.sub(_compared, expression)


def _compared(match: re.Match[str]) -> str:
    (names,) = {group for group in match.groups() if group}
    return f"{{{{ with .{names} }}}}{match[0].replace(f'|<{names}>', '{{ . }}')}{{{{ end }}}}"


def rights() -> _Object:
    """Return the rules of the roles: role -> rules. Names that depend on the release are Go templates."""
    ruleset = whole_catalogue(PolicyConfig())
    looks_up, _ = rbac(ruleset, "", "")
    return {
        "webhook": looks_up["rules"],
        "certificates": keeper_rules(f"{_FULL_NAME}-certificates", _FULL_NAME),
        "publisher": publisher_rules(_FULL_NAME, "{{ .Release.Namespace }}"),
        "events": event_rules(),
        "audit": audit_rules(ruleset),
        "auditReports": report_rules(),
    }


def values_schema(schema: _Object) -> _Object:
    """Return the schema of the chart's values with that of `policy` in it: all of a policy file but apiVersion and kind.

    `policy.shadow` is another policy file, which has no shadow. `policy.bundle` names a policy file in a registry.

    It is of draft-07, which Helm 3 and 4 both know. Its definitions stand behind the others, and begin with `Policy`.
    """
    policy = _plain(config_schema())
    definitions = {f"{_DEFINITIONS}{name}": definition for name, definition in policy.pop("$defs").items()}
    for key in ("apiVersion", "kind"):
        del policy["properties"][key]
    policy_schema = {key: policy[key] for key in ("type", "properties", "additionalProperties") if key in policy}
    definitions = {_DEFINITIONS: policy_schema, **definitions}
    definitions = json.loads(json.dumps(definitions).replace('"#/$defs/', f'"#/definitions/{_DEFINITIONS}'))
    properties = definitions[_DEFINITIONS]["properties"]
    definitions["PolicyTaint"]["properties"]["key"] = _PLATFORM_NAME
    for names in definitions["PolicyAccelerators"]["properties"].values():
        names["items"] = _PLATFORM_NAME
    properties["excluded_namespaces"]["items"] = _NAMESPACE
    properties["policies"]["propertyNames"] = _ids()
    for entry in ("PolicyNamespaceEntry", "PolicyExemption"):
        named = definitions[entry]["properties"]["policies"]
        named["propertyNames" if named["type"] == "object" else "items"] = _ids()
    same = {key: {"$ref": f"#/definitions/{_DEFINITIONS}/properties/{key}"} for key in properties}
    definitions = {_SHADOW: {**definitions[_DEFINITIONS], "properties": same}, **definitions}
    properties["shadow"] = {"anyOf": [{"$ref": f"#/definitions/{_SHADOW}"}, {"type": "null"}]}
    properties["bundle"] = _BUNDLE
    others = {
        name: definition for name, definition in schema["definitions"].items() if not name.startswith(_DEFINITIONS)
    }
    return {**schema, "definitions": {**others, **definitions}}


_OBJECT_NAME: Final = {"type": "string", "maxLength": 253}
_BUNDLE: Final[_Object] = {
    "type": ["object", "null"],
    "additionalProperties": False,
    "properties": {
        "reference": {"type": "string", "pattern": "^(|[^@\\s]+@sha256:[0-9a-f]{64})$"},
        "key": {"type": "string", "pattern": "^(|\\s*-----BEGIN PUBLIC KEY-----[\\s\\S]*)$"},
        "keySecret": _OBJECT_NAME,
        "pullSecret": _OBJECT_NAME,
        # As in other values, PEM may begin with a comment.
        "ca": {"type": "string", "pattern": "^(|[\\s\\S]*-----BEGIN CERTIFICATE-----[\\s\\S]*)$"},
        "caConfigMap": _OBJECT_NAME,
    },
}


def _ids() -> _Object:
    """Return that a name is that of a policy, or a pattern; the server refuses one that fits none.

    Names outside the families of the library are those of policies that Helm does not know.
    """
    families = "|".join(dict.fromkeys(policy.id.partition("/")[0] for policy in CATALOG))
    others = {"pattern": "/", "not": {"pattern": f"^({families})/"}}
    return {"anyOf": [{"enum": [policy.id for policy in CATALOG]}, {"pattern": "\\*"}, others]}


def _plain(schema: Any) -> Any:
    """Return a schema without titles, descriptions and defaults, which are about types of the program, and for RE2."""
    if isinstance(schema, list):
        return [_plain(element) for element in schema]
    if isinstance(schema, str):
        # Python's `$` also matches before a last line break.
        return schema.replace("\\Z", "$")
    if not isinstance(schema, dict):
        return schema
    return {key: _plain(value) for key, value in schema.items() if not _is_left_out(key, value)}


def _is_left_out(key: str, value: Any) -> bool:
    # A property may be called `default` or `title` too, which then is an object.
    about_types = key == "default" or (key in {"title", "description"} and isinstance(value, str))
    return about_types or (key == "pattern" and bool(_LOOKS_AROUND.search(value)))


@dataclass(frozen=True, slots=True)
class ChartValue:
    """A value of the chart.

    Attributes:
        path: its keys, joined by dots.
        meaning: the comment above it, as one line.
        default: its default; of a section, all of it.
        members: the values of a section; empty for any other value.
    """

    path: str
    meaning: str
    default: Any  # Any: what YAML holds
    members: Sequence[ChartValue]


def chart_values(text: str) -> list[ChartValue]:
    """Return what `values.yaml` holds.

    A comment belongs to the key below it, and begins with `# --`. A mapping whose keys have comments is a section; any other
    is the default of one value.

    Raises:
        ValueError: it holds no mapping, or a key of the file or of a section has no comment.
    """
    root = yaml.compose(text, yaml.CSafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise ValueError("values.yaml: is no mapping")  # noqa: TRY004 -- what it holds is wrong, not a type of the program
    return list(_values(root, "", text.splitlines()))


def _values(node: yaml.MappingNode, prefix: str, lines: Sequence[str]) -> Iterator[ChartValue]:
    for key, value in node.value:
        path = f"{prefix}{key.value}"
        meaning = _comment(lines, key.start_mark.line)
        if not meaning:
            raise ValueError(f"values.yaml:{key.start_mark.line + 1}: write a comment with `# --` above {path}")
        members = list(_values(value, f"{path}.", lines)) if _is_section(value, lines) else []
        yield ChartValue(path, meaning, _read(value), members)


def _is_section(node: yaml.Node, lines: Sequence[str]) -> bool:
    return isinstance(node, yaml.MappingNode) and any(_comment(lines, key.start_mark.line) for key, _ in node.value)


def _comment(lines: Sequence[str], line: int) -> str:
    """Return the comment above a line; empty where there is none that begins with `# --`."""
    texts: list[str] = []
    for above in reversed(lines[:line]):
        match = _COMMENT.fullmatch(above)
        if match is None:
            break
        texts.insert(0, match["text"])
        if match["first"]:
            return " ".join(texts)
    return ""


def _read(node: yaml.Node) -> Any:  # Any: what YAML holds
    return yaml.load(yaml.serialize(node), yaml.CSafeLoader)


def _json(value: _Object) -> str:
    return f"{json.dumps(value, indent=2, ensure_ascii=False)}\n"
