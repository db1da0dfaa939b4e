"""Test that the rendered webhook configurations are those that the server and `gpugate doctor` expect."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pytest
from chart.conftest import NAMESPACE

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig, parse
from gpugate.policies.engine.ruleset import bind
from gpugate.policies.sdk.platform import Platform
from gpugate.webhook.cli.main import main
from gpugate.webhook.own_policies.catalog import catalog_from
from gpugate.webhook.own_policies.sources import read_directories
from gpugate.webhook.registration import probe
from gpugate.webhook.registration.drift import drift
from gpugate.webhook.registration.drift_reasons import Reason
from gpugate.webhook.registration.entries import entries, whole_catalogue
from gpugate.webhook.registration.objects import Server

if TYPE_CHECKING:
    from pathlib import Path

    from chart.conftest import Helm

    from gpugate.policies.sdk.policy import Policy

Json = dict[str, Any]
KINDS = {"mutate": "MutatingWebhookConfiguration", "validate": "ValidatingWebhookConfiguration"}
PLATFORM: Json = {
    "taints": {"a.b/*": [{"key": "a.b/npu"}, {"key": "dedicated-*", "value": "npu"}]},
    "accelerators": {"resources": ["a.b/npu", "a.b/slice-*"], "device_classes": ["npu.a.b"]},
}


def own_policies(directory: Path) -> list[Policy]:
    return [own.policy for own in catalog_from(read_directories([directory])).own]


def configurations(helm: Helm, *flags: str | Path) -> dict[str, Json]:
    found = {each["kind"]: each for each in helm.objects(*flags)}
    return {phase: found[kind] for phase, kind in KINDS.items()}


@pytest.mark.parametrize(
    "platform",
    [{}, PLATFORM, {"taints": PLATFORM["taints"]}, {"accelerators": PLATFORM["accelerators"]}],
    ids=["no-names-of-its-own", "names-of-its-own", "taints", "accelerators"],
)
def test_the_entries_are_those_of_all_policies(helm: Helm, platform: Json) -> None:
    flags = ("--set-json", f"policy.platform={json.dumps(platform)}", "--set-json", "webhooks.karpenterUsers=[]")
    ruleset = whole_catalogue(PolicyConfig(platform=parse(platform, Platform, ())))

    for phase, configuration in configurations(helm, *flags).items():
        *found, asked, own = configuration["webhooks"]
        assert [(each["name"], each["rules"], each["matchConditions"]) for each in found] == [
            (entry.name, entry.rules, list(entry.conditions))
            for entry in entries(ruleset, phase)  # type: ignore[arg-type] # each is one of both phases
        ]
        expected = probe.entry(phase, NAMESPACE)
        assert {key: asked[key] for key in expected} == expected
        assert ("rules" in own, own["failurePolicy"]) == (False, "Ignore")


POLICY = """apiVersion: gpugate.dev/v1
kind: Policy
id: acme/unnamed-team
title: Object without a team
why: Nobody is told when it fails.
match:
  kinds: [Pod, NodePool, {apiVersion: example.com/v1, kind: Run, plural: runs}]
  operations: [CREATE, UPDATE, DELETE]
validations:
  - expression: "object == null || 'team' in object.metadata.?labels.orValue({})"
    message: has no team
"""


def test_policies_outside_the_library_are_registered_with_the_values_of_the_command(
    helm: Helm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "policies/acme").mkdir(parents=True)
    (tmp_path / "policies/acme/team.yaml").write_text(POLICY, encoding="utf-8")
    directory = tmp_path / "policies"
    assert main(["registration", "--chart-values", "--policy-path", str(directory)]) == 0
    values = tmp_path / "values.yaml"
    values.write_text(capsys.readouterr().out, encoding="utf-8")
    ruleset = bind([*CATALOG, *own_policies(directory)], PolicyConfig())
    server, named = Server(b"", NAMESPACE), ("--set", "fullnameOverride=gpugate")

    def reasons(*flags: str | Path) -> set[Reason]:
        live = [*configurations(helm, *named, *flags).values()]
        return {each.reason for each in drift(ruleset, live, server, b"", now=dt.datetime.now(dt.UTC))}

    assert reasons() == {Reason.BUNDLE_EMPTY, Reason.NOT_SENT}
    assert reasons("--values", values) == {Reason.BUNDLE_EMPTY}
    for only in ("team-a", "team-b"):
        found = configurations(helm, *named, "--values", values, "--set", f"webhooks.onlyNamespaces={{{only}}}")
        own = found["validate"]["webhooks"][-1]
        assert own["namespaceSelector"] == found["validate"]["webhooks"][0]["namespaceSelector"]


@pytest.mark.parametrize("mode", ["audit", None])
def test_the_expected_configurations_do_not_depend_on_the_policy_file(helm: Helm, mode: str | None) -> None:
    live = [*configurations(helm, "--set", "fullnameOverride=gpugate").values()]
    server = Server(b"", NAMESPACE)
    found = drift(bind(CATALOG, PolicyConfig(mode=mode)), live, server, b"", now=dt.datetime.now(dt.UTC))

    # The webhook publishes its authority itself.
    assert {each.reason for each in found} == {Reason.BUNDLE_EMPTY}
