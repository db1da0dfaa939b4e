from __future__ import annotations

import copy
from typing import Any

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.registration.break_glass import CONDITION, Note, disabled, enabled, note, off, on
from gpugate.webhook.registration.objects import Server, webhook_configurations

GENERATED = webhook_configurations(bind(CATALOG, PolicyConfig()), Server(b"ca"))
NOTE = Note("admin", "2026-11-21T10:00:00Z", "INC-1")
PLAIN: dict[str, Any] = {
    "metadata": {"name": "gpugate", "annotations": {"owner": "platform"}},
    "webhooks": [{"name": "pods.gpugate.dev"}],
}
CONFIGURATIONS = {
    "mutating": GENERATED[0],
    "validating": GENERATED[1],
    "without conditions": PLAIN,
    "without annotations": {**PLAIN, "metadata": {"name": "gpugate"}},
    "without entries": {"metadata": {"name": "gpugate"}},
}


@pytest.mark.parametrize("configuration", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_enabled_undoes_disabled_and_neither_touches_what_it_is_given(configuration: dict[str, Any]) -> None:
    before = copy.deepcopy(configuration)

    assert enabled(disabled(configuration, NOTE)) == before
    assert configuration == before


@pytest.mark.parametrize("configuration", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_one_that_is_on_stays_as_it_is(configuration: dict[str, Any]) -> None:
    assert enabled(configuration) == configuration


@pytest.mark.parametrize("configuration", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def test_a_second_time_changes_nothing_not_even_who_it_was(configuration: dict[str, Any]) -> None:
    once = disabled(configuration, NOTE)

    assert disabled(once, Note("somebody", "2026-11-22T10:00:00Z")) == once
    assert note(once) == NOTE


@pytest.mark.parametrize("configuration", GENERATED, ids=["mutating", "validating"])
def test_every_entry_is_off_but_that_for_probes(configuration: dict[str, Any]) -> None:
    entries = {each["name"] for each in configuration["webhooks"]}
    found = disabled(configuration, NOTE)

    assert on(found) == []
    assert set(off(found)) == {name for name in entries if not name.startswith("probe.")}


def test_conditions_that_were_there_stay() -> None:
    own = {"name": "own", "expression": "true"}
    found = disabled({**PLAIN, "webhooks": [{"name": "a.gpugate.dev", "matchConditions": [own]}]}, NOTE)

    assert found["webhooks"][0]["matchConditions"] == [own, CONDITION]


def test_what_nobody_said_is_not_written_down() -> None:
    assert disabled(PLAIN, Note(at="now"))["metadata"]["annotations"] == {
        "owner": "platform",
        "gpugate.dev/disabled-at": "now",
    }
