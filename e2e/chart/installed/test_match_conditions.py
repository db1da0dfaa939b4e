"""Every bad example of the library is sent to where its policy answers, past the expressions that the chart renders."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from chart.conftest import Helm
from chart.installed.requests import plain_pod
from library.cases import FILES, case
from library.expectations import REFUSED, expected
from library.standing import context_of
from stub_webhook.registration import register
from stub_webhook.server import Stub

import tools
from gpugate.policies.engine.config import PolicyConfig
from gpugate.webhook.registration.entries import whole_catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from chart.installed.stage import Stage
    from library.cases import Case

Json = dict[str, Any]
BAD = [name for name in FILES if "/bad-" in name and name not in REFUSED]
KINDS = {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}
PATHS = {"/mutate": True, "/validate": False}


@pytest.fixture(scope="module")
def install(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Json], Stub]]:
    """Register a stub by what the chart renders for a platform, with everything else as shipped."""
    folder = tmp_path_factory.mktemp("rendered")
    helm = Helm(tools.path("helm"))
    with Stub(folder) as stub:
        numbers = itertools.count(1)

        def installed(platform: Json) -> Stub:
            values = folder / f"values-{next(numbers)}.json"
            webhooks = {"url": stub.url}
            values.write_text(json.dumps({"policy": {"platform": platform}, "webhooks": webhooks}), encoding="utf-8")
            for each in helm.objects("--values", values):
                if each["kind"] in KINDS:
                    for entry in each["webhooks"]:
                        entry["clientConfig"]["caBundle"] = stub.authority.bundle
                    register(stage.api, stub, "default", each)
            return stub

        yield installed
        for kind in KINDS:
            name = {"name": "gate-gpugate"}
            stage.api.delete({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": name})


def by_platform() -> Iterator[tuple[Json, list[Case]]]:
    cases = sorted((case(name) for name in BAD), key=platform_of)
    for written, of_it in itertools.groupby(cases, key=platform_of):
        yield json.loads(written), list(of_it)


def platform_of(of: Case) -> str:
    # As a policy file has it, without what nobody wrote.
    written = json.loads(of.policy_file).get("platform", {})
    return json.dumps(written, sort_keys=True)


def meant(of: Case) -> set[str]:
    """The paths at which policies answer that find something in an example."""
    ruleset = whole_catalogue(msgspec.structs.replace(PolicyConfig(), platform=of.example.config.platform))
    request = of.example.request
    return {
        path
        for path, mutating in PATHS.items()
        for subject in request.subjects
        # The template of a workload is judged with it, and patched in its Pods.
        if not mutating or subject.kind == request.kind
        for rule, _ in ruleset.handlers(subject.kind, mutating=mutating)
        if rule.policy.id in expected(of)
    }


def paths(stage: Stage, stub: Stub, obj: Json) -> set[str]:
    """Where an object is sent that is created in a dry run."""
    stub.calls.clear()
    stage.api.create(obj, dry_run=True)
    return {call.path for call in stub.calls if call.request["kind"]["kind"] == obj["kind"]}


def paths_beside(stage: Stage, stub: Stub, of: Case) -> set[str]:
    """The same, where what the API server asks for exists too."""
    made = [obj for obj in context_of(of) if stage.api.create(obj).ok]
    found = paths(stage, stub, of.judged)
    for obj in reversed(made):
        stage.api.delete(obj, gracePeriodSeconds=0, propagationPolicy="Background")
    return found


def test_every_bad_example_is_sent(stage: Stage, install: Callable[[Json], Stub], figures: list[str]) -> None:
    escaped = {}
    for platform, cases in by_platform():
        stub = install(platform)
        for each in cases:
            wanted = meant(each)
            reached = paths(stage, stub, each.judged)
            if not wanted <= reached:
                reached = paths_beside(stage, stub, each)
            if not wanted <= reached:
                escaped[each.name] = {"reached": reached, "meant": wanted}
    figures.append(f"chart: {len(BAD)} bad examples sent to their policies past the rendered expressions")
    assert escaped == {}


def test_a_plain_pod_is_not_sent(stage: Stage, install: Callable[[Json], Stub], tenant: str) -> None:
    stub = install({})

    assert paths(stage, stub, plain_pod(tenant)) == set()
