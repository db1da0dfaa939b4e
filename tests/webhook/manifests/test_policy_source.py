from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.findings import Stance
from gpugate.webhook.manifests.policy_file import PolicyFileError, load_policy_file

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: gpugate-policy}\ndata:\n"
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: gpugate}\n"
POLICY = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\npolicies:\n  pods/missing-gpu-toleration: {{mode: {mode}}}\n"


def block(text: str, indicator: str = "|", indent: int = 4) -> str:
    lines = "".join(f"{' ' * indent if line.strip() else ''}{line}" for line in text.splitlines(keepends=True))
    return f"  policy.yaml: {indicator}\n{lines}"


def mode_in(file: Path) -> Stance:
    ruleset = load_policy_file(file, lambda config: bind(CATALOG, config))
    return next(rule.mode for rule in ruleset.rules if rule.policy.id == "pods/missing-gpu-toleration")


WARN = POLICY.format(mode="warn")
AS_JSON = json.dumps({"apiVersion": "gpugate.dev/v1", "kind": "PolicyConfig", "mode": "warn"})
READ = {
    "a block of lines": HEAD + block(WARN),
    "a block that is folded": HEAD + block(WARN.replace("\n", "\n\n"), ">"),
    "a text in double quotes": f"{HEAD}  policy.yaml: {json.dumps(WARN)}\n",
    "JSON in single quotes": f"{HEAD}  policy.yaml: '{AS_JSON}'\n",
    "other keys beside it": f"{HEAD}  notes: |\n    kind: none\n{block(WARN)}",
    "other documents beside it": f"{SERVICE}---\n{HEAD}{block(WARN)}---\n{SERVICE}",
    "another ConfigMap beside it": f"{HEAD}  a: b\n---\n{HEAD}{block(WARN)}",
    "a key twice in another document": f"{SERVICE}kind: Service\n---\n{HEAD}{block(WARN)}",
    "a ConfigMap as JSON": json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "data": {"policy.yaml": WARN}}),
}


@pytest.mark.parametrize("text", READ.values(), ids=READ)
def test_the_configuration_is_read_from_a_config_map(text: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)

    assert mode_in(file) is Stance.WARN


WRONG = POLICY.format(mode="wrn")
WRONG_JSON = AS_JSON.replace("warn", "wrn")
QUOTED = json.dumps(WRONG)
PATH = 'policies["pods/missing-gpu-toleration"].mode: invalid enum value'
NOT_YAML = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: a: b\n"
REFUSED = {
    "in a block": (HEAD + block(WRONG), f"9:43: {PATH}"),
    "in a block that begins with an empty line": (HEAD + block(f"\n{WRONG}"), f"10:43: {PATH}"),
    "in a block with its own indentation": (HEAD + block(WRONG, "|8-", 10), f"9:49: {PATH}"),
    "behind other documents": (f"{SERVICE}---\n{HEAD}{block(WRONG)}", f"13:43: {PATH}"),
    "in double quotes": (f"{HEAD}  policy.yaml: {QUOTED}\n", f"5:{16 + QUOTED.index('wrn')}: {PATH}"),
    "in single quotes": (f"{HEAD}  policy.yaml: '{WRONG_JSON}'\n", f"5:{17 + WRONG_JSON.index('wrn') - 1}: mode: invalid enum"),
    "in a folded block, of which only the key is known": (
        HEAD + block(WRONG.replace("\n", "\n\n"), ">"),
        f"5:3: {PATH}",
    ),
    "not YAML within": (HEAD + block(NOT_YAML), "8:12: not YAML: mapping values are not allowed"),
    "a key twice": (HEAD + block(f"{POLICY.format(mode='warn')}kind: PolicyConfig\n"), "10:5: the key kind occurs twice"),
    "nothing within": (HEAD + block("# nothing\n"), "6:5: policy.yaml holds 0 documents: write one PolicyConfig"),
    "no such key": (f"{HEAD}  policy.yml: a\n", "1:1: this ConfigMap has no text under data: policy.yaml"),
    "no ConfigMap among others": (
        f"{SERVICE}---\n{HEAD}  a: b\n",
        " holds 2 documents: write one PolicyConfig, or a ConfigMap with the key policy.yaml",
    ),
    "two ConfigMaps": (
        f"{HEAD}{block(WARN)}---\n{HEAD}{block(WARN)}",
        " holds 2 ConfigMaps with policy.yaml, on lines 1 and 10: leave one",
    ),
    "a template": (f"{HEAD}  policy.yaml: {{{{ toJson .Values.policy }}}}\n", "5:17: a key is an object or a list: this looks like a template"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_points_into_the_config_map(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)

    with pytest.raises(PolicyFileError) as caught:
        load_policy_file(file, lambda config: bind(CATALOG, config))

    assert str(caught.value).removeprefix(f"{file}:")[: len(message)] == message
