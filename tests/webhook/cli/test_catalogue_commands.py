from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig, parse_config
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.manifests import yaml_reader

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Policy

    Run = Callable[..., Any]

every_policy = pytest.mark.parametrize("policy", CATALOG, ids=lambda policy: policy.id)


def test_policies_has_one_line_per_policy(gpugate: Run) -> None:
    ran = gpugate("policies")

    assert [line.split()[:2] for line in ran.out.splitlines()] == [[p.id, p.mode.word] for p in CATALOG]


def test_policies_as_json_has_the_same(gpugate: Run) -> None:
    listed = json.loads(gpugate("policies", "-o", "json").out)

    assert [(entry["id"], entry["mode"], entry["title"]) for entry in listed] == [
        (p.id, p.mode.word, p.title) for p in CATALOG
    ]


@every_policy
def test_explain_has_every_part(policy: Policy, gpugate: Run) -> None:
    lines = gpugate("explain", policy.id).out.splitlines()

    changes = ["With the fix", "After the mutation", "After the mutation or fix"]
    headings = ["Why is this bad?", "Instead", "Denied", "Reported", "Mutated", *changes, "Allowed", "Sources"]
    assert lines[:2] == [policy.id, policy.title]
    before, after = next(
        (found, after) for found in headings[2:5] if found in lines for after in headings[5:9] if after in lines
    )
    assert [line for line in lines if line in headings] == [*headings[:2], before, after, "Sources"]
    assert not any("# expect:" in line for line in lines)


@every_policy
def test_explain_names_every_parameter_with_its_default(policy: Policy, gpugate: Run) -> None:
    out = gpugate("explain", policy.id).out

    names = [field.encode_name for field in msgspec.structs.fields(policy.params)]
    assert [name for name in names if f"\n  {name} (default: " not in out] == []
    assert "Attributes:" not in out


def test_the_shown_configuration_means_the_same_when_it_is_read(gpugate: Run) -> None:
    shown = yaml_reader.read(gpugate("config", "show").out).value

    again, shipped = bind(CATALOG, parse_config(shown)), bind(CATALOG, PolicyConfig())
    assert [(r.policy.id, r.mode, r.params) for r in again.rules] == [
        (r.policy.id, r.mode, r.params) for r in shipped.rules
    ]


def test_the_shown_configuration_has_what_the_file_says(gpugate: Run, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: audit\n"
        "policies:\n  pods/missing-gpu-toleration: {mode: off}\n  scaling/*: {mode: warn}\n",
    )

    shown: Any = yaml_reader.read(gpugate("config", "show", "-p", file).out).value

    modes = {policy_id: entry["mode"] for policy_id, entry in shown["policies"].items()}
    assert modes == {
        p.id: "off"
        if p.id == "pods/missing-gpu-toleration"
        else "warn"
        if p.id.startswith("scaling/")
        else min(p.mode, Stance.AUDIT).word
        for p in CATALOG
    }


def test_the_schema_knows_the_parameters_of_each_policy(gpugate: Run) -> None:
    schema = json.loads(gpugate("config", "schema").out)

    policies = schema["properties"]["policies"]["properties"]
    known = {}
    for policy in CATALOG:
        params = policies[policy.id]["properties"]["params"]
        known[policy.id] = (
            set(schema["$defs"][params["$ref"].rpartition("/")[2]]["properties"]) if "$ref" in params else set()
        )
    assert known == {p.id: {field.encode_name for field in msgspec.structs.fields(p.params)} for p in CATALOG}


@pytest.mark.parametrize("of", ["policy", "audit"])
def test_every_reference_of_a_schema_leads_somewhere(of: str, gpugate: Run) -> None:
    text = gpugate("config", "schema", of).out

    references = {part.partition('"')[0] for part in text.split('"$ref": "#/$defs/')[1:]}
    assert references <= set(json.loads(text)["$defs"])


@pytest.mark.parametrize("of", ["policy", "audit"])
def test_a_schema_is_published_as_it_is_printed(of: str, gpugate: Run) -> None:
    published = Path(__file__).parents[3] / "docs" / "schemas" / f"{of}-v1.schema.json"

    assert published.read_text(encoding="utf-8") == gpugate("config", "schema", of).out
