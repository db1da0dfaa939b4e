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
from gpugate.webhook.registration import probe
from gpugate.webhook.registration.drift import drift
from gpugate.webhook.registration.drift_reasons import Reason
from gpugate.webhook.registration.entries import entries, whole_catalogue
from gpugate.webhook.registration.objects import Server

if TYPE_CHECKING:
    from chart.conftest import Helm

Json = dict[str, Any]
KINDS = {"mutate": "MutatingWebhookConfiguration", "validate": "ValidatingWebhookConfiguration"}
PLATFORM: Json = {
    "taints": {"a.b/*": [{"key": "a.b/npu"}, {"key": "dedicated-*", "value": "npu"}]},
    "accelerators": {"resources": ["a.b/npu", "a.b/slice-*"], "device_classes": ["npu.a.b"]},
}


def configurations(helm: Helm, *flags: str) -> dict[str, Json]:
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
        *found, asked = configuration["webhooks"]
        assert [(each["name"], each["rules"], each["matchConditions"]) for each in found] == [
            (entry.name, entry.rules, list(entry.conditions))
            for entry in entries(ruleset, phase)  # type: ignore[arg-type] # each is one of both phases
        ]
        expected = probe.entry(phase, NAMESPACE)
        assert {key: asked[key] for key in expected} == expected


@pytest.mark.parametrize("mode", ["audit", None])
def test_the_expected_configurations_do_not_depend_on_the_policy_file(helm: Helm, mode: str | None) -> None:
    live = [*configurations(helm, "--set", "fullnameOverride=gpugate").values()]
    server = Server(b"", NAMESPACE)
    found = drift(bind(CATALOG, PolicyConfig(mode=mode)), live, server, b"", now=dt.datetime.now(dt.UTC))

    # The webhook publishes its authority itself.
    assert {each.reason for each in found} == {Reason.BUNDLE_EMPTY}
