from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest
from cluster.fake_api_server import Answer
from operate.fake_installation import MUTATING, VALIDATING, answer, failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from operate.fake_installation import Cluster

REFUSED = 'failed calling webhook "probe.mutate.gpugate.dev": failed to call webhook: EOF'


def conditions(cluster: Cluster) -> set[str]:
    """The names of the conditions of every entry that is for anything but probes."""
    entries = [each for found in cluster.configurations() for each in found["webhooks"]]
    return {c["name"] for each in entries if not each["name"].startswith("probe.") for c in each["matchConditions"]}


def test_disable_adds_a_condition_and_says_how_to_go_back(installed: Cluster, webhook: Callable[..., Any]) -> None:
    ran = webhook("disable", "--yes", "--reason", "INC-1")

    assert (ran.code, ran.err) == (0, "")
    assert ran.out.endswith("To turn admission on again: gpugate webhook enable\n")
    assert "disabled-by-gpugate" in conditions(installed)
    said = [each["metadata"]["annotations"]["gpugate.dev/disabled-reason"] for each in installed.configurations()]
    assert said == ["INC-1", "INC-1"]


def test_enable_brings_back_what_was_there(installed: Cluster, webhook: Callable[..., Any], nonce: str) -> None:
    before = installed.contents()
    webhook("disable", "--yes")
    installed.answers.append(answer(nonce, "mutate", "validate"))

    ran = webhook("enable")

    assert (ran.code, ran.err) == (0, "")
    assert installed.contents() == before


@pytest.mark.usefixtures("installed")
def test_enable_has_nothing_to_do(webhook: Callable[..., Any]) -> None:
    assert (webhook("enable").code, webhook("enable").out) == (0, "gpugate is on\n")


def test_enable_refuses_while_the_webhook_is_not_reached(installed: Cluster, webhook: Callable[..., Any]) -> None:
    webhook("disable", "--yes")
    installed.answers.append(failure(REFUSED))

    ran = webhook("enable")

    assert ran.code == 1
    assert "does not reach the webhook, so it stays off" in ran.err
    assert "the connection was closed without a response" in ran.err
    assert "disabled-by-gpugate" in conditions(installed)


def test_enable_by_force(installed: Cluster, webhook: Callable[..., Any]) -> None:
    webhook("disable", "--yes")

    assert webhook("enable", "--force").code == 0
    assert "disabled-by-gpugate" not in conditions(installed)


def test_a_caBundle_that_is_missing_keeps_it_off(installed: Cluster, webhook: Callable[..., Any]) -> None:  # noqa: N802 -- the name of the field
    webhook("disable", "--yes")
    found = installed.configurations()[0]
    for entry in found["webhooks"]:
        del entry["clientConfig"]["caBundle"]
    installed.store.put(MUTATING, found)

    ran = webhook("enable")

    assert (ran.code, "has no caBundle yet" in ran.err) == (1, True)


def test_one_that_cannot_be_written_does_not_keep_the_other_on(installed: Cluster, webhook: Callable[..., Any]) -> None:
    installed.forbidden.add("mutatingwebhookconfigurations")

    ran = webhook("disable", "--yes")

    assert ran.code == 4
    assert "MutatingWebhookConfiguration gpugate: 403 Forbidden" in ran.err
    assert "kubectl delete mutatingwebhookconfiguration,validatingwebhookconfiguration gpugate" in ran.err
    validating = installed.store.all(VALIDATING)[0]
    assert validating["metadata"]["annotations"]["gpugate.dev/disabled-at"]


@pytest.mark.parametrize("subcommand", [("disable", "--yes"), ("enable",)], ids=["disable", "enable"])
class TestWithoutAnInstallation:
    def test_there_is_none(self, webhook: Callable[..., Any], subcommand: tuple[str, ...]) -> None:
        ran = webhook(*subcommand)

        assert (ran.code, ran.out) == (1, "")
        assert "webhook configuration gpugate does not exist: the API server does not call gpugate" in ran.err

    def test_it_belongs_to_another(
        self, installed: Cluster, webhook: Callable[..., Any], subcommand: tuple[str, ...]
    ) -> None:
        for plural, found in zip((MUTATING, VALIDATING), installed.configurations(), strict=True):
            installed.store.put(plural, {**found, "metadata": {"name": "gpugate"}})
        before = installed.contents()

        ran = webhook(*subcommand)

        assert (ran.code, "does not belong to gpugate" in ran.err) == (1, True)
        assert installed.contents() == before

    def test_nobody_may_read_it(
        self, installed: Cluster, webhook: Callable[..., Any], subcommand: tuple[str, ...]
    ) -> None:
        installed.forbidden |= {"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}

        assert webhook(*subcommand).code == 4

    def test_the_api_server_does_not_answer(
        self, cluster: Cluster, webhook: Callable[..., Any], subcommand: tuple[str, ...]
    ) -> None:
        cluster.answers += [Answer("gpugate", cut=True) for _ in range(8)]

        ran = webhook(*subcommand)

        assert (ran.code, "the connection failed" in ran.err) == (4, True)


def test_a_dry_run_changes_nothing(installed: Cluster, webhook: Callable[..., Any]) -> None:
    before = installed.contents()

    ran = webhook("disable", "--dry-run")

    assert (ran.code, "pods.validate.gpugate.dev" in ran.out) == (0, True)
    assert installed.contents() == before


@pytest.mark.parametrize(("said", "code"), [("y\n", 0), ("Yes\n", 0), ("n\n", 1), ("", 1)])
def test_a_person_is_asked(
    installed: Cluster, webhook: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, said: str, code: int
) -> None:
    terminal = io.StringIO(said)
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr("sys.stdin", terminal)

    ran = webhook("disable")

    assert ran.code == code
    assert ("disabled-by-gpugate" in conditions(installed)) is (code == 0)


@pytest.mark.usefixtures("installed")
def test_nobody_is_there_to_ask(webhook: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())

    ran = webhook("disable")

    assert (ran.code, "confirm with --yes" in ran.err) == (2, True)


@pytest.mark.usefixtures("installed")
def test_a_second_time_says_since_when(webhook: Callable[..., Any]) -> None:
    webhook("disable", "--yes")

    ran = webhook("disable", "--yes")

    assert (ran.code, ran.out.count("already off since 20")) == (0, 2)
