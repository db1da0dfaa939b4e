"""What an audit says is what enforcement then does: each object is created once more, as a dry run, with gpugate enforcing."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from cluster.nodes import is_ready
from library.workers_facts import WorkersFacts

from auditing.recreated import recreating
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.ruleset import Needs
from gpugate.webhook.admission.policy_reload import load_rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane
    from cluster.served_webhook import ServedWebhook

    from auditing.cron_job import CronJob, Ran
    from auditing.recreated import Recreated
    from auditing.stored import Stored

Json = dict[str, Any]
ORDER = ("deny", "mutate", "warn", "allow")


@pytest.fixture(scope="module", params=["as-shipped", "every-policy"])
def policy_file(request: pytest.FixtureRequest, cron_job: CronJob, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the CronJob asks about: what if it were in force?"""
    enforced = {"mode": "enforce"}
    every = {"policies": {policy.id: enforced for policy in CATALOG}} if request.param == "every-policy" else {}
    file: Path = tmp_path_factory.mktemp("policy") / "policy.yaml"
    file.write_text(json.dumps({**cron_job.policy(), **enforced, **every}))
    return file


# A stored workload has the replicas that its autoscaler set; only in a new object are they what its author wrote.
_OF_NEW_OBJECTS = {"scaling/pinned-replicas"}


@pytest.fixture(scope="module")
def audited(cron_job: CronJob, policy_file: Path) -> Ran:
    return cron_job.run(f"--policy-file={policy_file}")


@pytest.fixture(scope="module")
def answers(
    api: Api, control_plane: ControlPlane, stored: Stored, webhook: ServedWebhook, policy_file: Path
) -> Iterator[Mapping[str, list[Recreated]]]:
    """Answers of the API server by the uid of what people wrote: to that itself, and to a Pod of it."""
    webhook.use(policy_file.read_text())
    try:
        webhook.register()
        wait_until_all_is_known(api, webhook)
        found: dict[str, list[Recreated]] = defaultdict(list)
        with recreating(api, control_plane) as again:
            for uid, written in stored.written.items():
                found[uid].append(again.written(written))
            for uid, pod in dict(stored.pods()).items():
                found[uid].append(again.pod(pod))
        yield found
    finally:
        webhook.unregister()
        webhook.reset()


def wait_until_all_is_known(api: Api, webhook: ServedWebhook) -> None:
    """Wait until every worker has heard of all that policies look up."""
    kinds = Needs(load_rules(webhook.policy_file).ruleset.rules).kinds
    versions = {kind.name: f"{kind.group}/{kind.versions[-1]}".lstrip("/") for kind in kinds}
    facts = WorkersFacts(webhook.metrics_folder, webhook.workers)
    facts.wait_for({name: len(api.list(version, name)) for name, version in versions.items()})


def said_of(audited: Ran, uid: str, *actions: str) -> set[str]:
    """Policies with a finding about an object, also where the finding stands at another object with the same cause."""
    (found,) = [each for each in audited.document["objects"] if each["uid"] == uid]
    elsewhere = (
        finding
        for each in audited.document["objects"]
        for finding in each["findings"]
        if any(named_in(related, found["object"]) for related in finding.get("related", ()))
    )
    return {finding["policy"] for finding in (*found["findings"], *elsewhere) if finding["action"] in actions}


def named_in(related: Json, name: Json) -> bool:
    return all(related[key] == name[key] for key in ("kind", "namespace", "name"))


def done(answers: list[Recreated], *words: str) -> set[str]:
    return {policy for each in answers for word in words for policy in each.said.get(word, ())} - _OF_NEW_OBJECTS


def test_pods_were_scheduled_without_being_asked_about(stored: Stored) -> None:
    running = [pod for _, pod in stored.pods() if pod["status"].get("phase") == "Running"]

    assert len(running) >= 3


def test_every_object_is_in_the_audit(audited: Ran, stored: Stored) -> None:
    missing = {named(each) for uid, each in stored.written.items() if uid not in audited.actions()}

    # The policy file leaves that namespace alone, and no policy is about the others.
    assert {name for name in missing if not name.startswith(("PrometheusRule/", "ServiceMonitor/"))} == {
        "DaemonSet/gpu-monitoring/dcgm-exporter"
    }


def test_each_would_become_what_the_api_server_makes_of_it(
    audited: Ran, answers: Mapping[str, list[Recreated]], stored: Stored
) -> None:
    said = {uid: "allow" if action == "record" else action for uid, action in audited.actions().items()}
    wrong = {
        named(stored.written[uid]): (said[uid], answer)
        for uid, each in answers.items()
        if uid in said
        for answer in [min((one.action for one in each), key=ORDER.index)]
        if said[uid] != answer
    }

    assert wrong == {}
    assert {said[uid] for uid in answers if uid in said} >= {"deny", "mutate", "allow"}


@pytest.mark.parametrize("action", ["deny", "mutate"])
def test_by_the_same_policies(
    audited: Ran, answers: Mapping[str, list[Recreated]], stored: Stored, action: str
) -> None:
    wrong = {
        named(stored.written[uid]): (said_of(audited, uid, action), done(each, action))
        for uid, each in answers.items()
        if uid in audited.actions() and said_of(audited, uid, action) != done(each, action)
    }

    assert wrong == {}


def test_whoever_is_warned_is_warned_of_the_same(
    audited: Ran, answers: Mapping[str, list[Recreated]], stored: Stored
) -> None:
    wrong = {
        named(stored.written[uid]): (said, warned)
        for uid, each in answers.items()
        if uid in audited.actions()
        # Whoever writes a template is warned of what would become of its Pods.
        for said in [said_of(audited, uid, "warn", "deny")]
        for warned in [done(each, "warn", "deny")]
        if said != warned
    }

    assert wrong == {}


def test_a_denial_names_the_policies(audited: Ran, answers: Mapping[str, list[Recreated]]) -> None:
    for uid, each in answers.items():
        denials = [answer.answer.message for answer in each if answer.action == "deny"]
        if denials:
            assert any(f"[{policy}]" in denials[0] for policy in said_of(audited, uid, "deny"))


def named(obj: Json) -> str:
    return "/".join(part for part in (obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]) if part)


def test_gpus_of_the_nodes_are_priced(audited: Ran, api: Api) -> None:
    nodes = [each for each in api.list("v1", "Node") if is_ready(each)]
    pools = {(each["node_pool"], each["instance_type"]): each for each in audited.document["cost"]["pools"]}

    assert len(nodes) >= 3
    assert pools["gpu-training", "p5.48xlarge"]["gpus"] == 8
    assert pools["gpu-training", "p5.48xlarge"]["usd_per_hour"] > 0
    assert pools["any", "g5.xlarge"]["allocated"] == 1
