"""Policies outside the library, one in Python and one in CEL, from the ConfigMap that the chart mounts."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self

import pytest
from bundled_policies import FILES, H100, H100_SELECTED, MANY_GPUS, OBJECTS, on_h100, with_gpus
from chart.installed.requests import eventually, plain_pod, refusal
from cluster.namespaces import make_namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from chart.installed.release import Release
    from chart.installed.stage import Stage

    Json = dict[str, Any]

NAME = "gpugate-acme"
VALUES = {
    "policies": {"organisation": "acme", "configMap": NAME},
    "policy": {"policies": {"acme/*": {"mode": "enforce"}}},
}


class Mounted:
    """The ConfigMap with the policies, and the release whose Pods mount it."""

    def __init__(self, stage: Stage, release: Release) -> None:
        self._api = stage.api
        self._release = release
        metadata = {"name": NAME, "namespace": release.namespace}
        self._ref = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}

    def create(self) -> None:
        assert self._api.create({**self._ref, "data": FILES}).ok

    def delete(self) -> None:
        self._api.delete(self._ref)

    def change(self, **files: str | None) -> None:
        """Change files by their names without suffix, and let the kubelets hear of it."""
        suffixes = {name.partition(".")[0]: name for name in (*FILES, "no_team.yaml")}
        data = {suffixes.get(name, f"{name}.py"): text for name, text in files.items()}
        answer = self._api.patch(self._ref, {"data": data})
        assert answer.ok, answer.message
        self._release.pods.update_config_maps(self._api)


@pytest.fixture(scope="module")
def release(stage: Stage, prepare: Callable[[], AbstractContextManager[Release]]) -> Iterator[Release]:
    with prepare() as made:
        make_namespace(stage.api, made.namespace)
        mounted = Mounted(stage, made)
        mounted.create()
        made.install(VALUES)
        yield made
        made.uninstall()
        mounted.delete()


@pytest.fixture
def mounted(stage: Stage, release: Release) -> Iterator[Mounted]:
    yield (changed := Mounted(stage, release))
    changed.change(**{name.partition(".")[0]: text for name, text in FILES.items()})


@pytest.mark.parametrize(("make", "told"), OBJECTS.values(), ids=OBJECTS)
def test_a_pod_is_denied_or_allowed(
    stage: Stage, release: Release, tenant: str, make: Callable[[str], Json], told: str
) -> None:
    answer = stage.api.create(make(tenant), dry_run=True)

    assert (answer.ok, told in answer.message) == (not told, True), answer.message
    assert release.metric("gpugate_config_last_reload_successful") > 0


class Load:
    """Requests to create a Pod that the policy in Python denies, one after the other, until it is stopped."""

    def __init__(self, stage: Stage, tenant: str) -> None:
        self.answers: list[str] = []
        self._ask = lambda: refusal(stage, on_h100(tenant))
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.is_set():
            self.answers.append(self._ask())


def test_a_reload_under_load_loses_no_review(stage: Stage, mounted: Mounted, tenant: str, figures: list[str]) -> None:
    with Load(stage, tenant) as load:
        for most in (4, 2, 6):
            mounted.change(limits=MANY_GPUS.replace("2", str(most)))
            for gpus, told in ((most, ""), (most + 1, f"requests more than {most} GPUs")):
                pod = with_gpus(tenant, gpus)
                eventually(
                    lambda pod=pod: refusal(stage, pod),
                    lambda said, told=told: told in said and bool(told) == bool(said),
                )

    # The API server allows what the webhook does not answer.
    lost = [answer for answer in load.answers if H100 not in answer]
    assert lost == []
    figures.append(f"chart: {len(load.answers)} reviews while own policies were reloaded three times, none lost")


# Files that do not load, and the error in the log.
BROKEN = {
    "an expression": (
        {"limits": MANY_GPUS.replace("gpu.pod.gpus", "gpu.pod.gps")},
        "unknown field `gpu.pod.gps`; did you mean `gpu.pod.gpus`?",
    ),
    "an error in Python": (
        {"h100_selected": f"{H100_SELECTED}\nraise ValueError"},
        "raises ValueError: correct it; no policy was loaded",
    ),
    "the end of the process": (
        {"ends": "import os\nos._exit(3)\n"},
        "a policy ends the process while it is loaded (exit code 3): remove this code",
    ),
}


@pytest.mark.parametrize(("files", "error"), BROKEN.values(), ids=BROKEN)
def test_a_set_that_does_not_load_leaves_the_last_one_in_force(
    stage: Stage, release: Release, mounted: Mounted, tenant: str, files: dict[str, str], error: str
) -> None:
    mounted.change(**files)

    pods = len(release.pods.ready())
    eventually(lambda: release.pods.logs("").count(error), lambda count: count >= pods)
    assert release.metric("gpugate_config_last_reload_successful") == 0
    for make, told in OBJECTS.values():
        assert told in refusal(stage, make(tenant))
    mounted.change(**_restored(files))
    eventually(lambda: release.metric("gpugate_config_last_reload_successful"))


def _restored(files: dict[str, str]) -> dict[str, str | None]:
    shipped = {name.partition(".")[0]: text for name, text in FILES.items()}
    return {name: shipped.get(name) for name in files}


# A policy on Pods of any kind, and one on a kind that the library does not evaluate, which looks up another such kind.
NO_TEAM = """apiVersion: gpugate.dev/v1
kind: Policy
id: acme/no-team
title: Pod without a team
why: Nobody is told when it fails.
mode: enforce
match:
  kinds: [Pod]
  operations: [CREATE]
validations:
  - expression: "'team' in object.metadata.?labels.orValue({})"
    message: has no team
"""
FROZEN = '''"""ConfigMap that changes while there is a ServiceAccount of its name.

## Why is this bad?

The controller reads it only once.
"""

from gpugate.policies.sdk.facts import Need, named
from gpugate.policies.sdk.findings import Stance, Violation
from gpugate.policies.sdk.objects import Kind
from gpugate.policies.sdk.policy import validates

SDK = 1
CONFIG_MAP = Kind("", ("v1",), "ConfigMap", "configmaps")
SERVICE_ACCOUNT = Kind("", ("v1",), "ServiceAccount", "serviceaccounts")


@validates(CONFIG_MAP, mode=Stance.ENFORCE, needs=(Need(SERVICE_ACCOUNT, ("metadata.name",)),))
def check(config_map, ctx):
    """Find the ServiceAccount."""
    if config_map["data", "frozen"]:
        name, namespace = config_map["metadata", "name"].text, ctx.request.namespace
        if named(ctx.facts.list(SERVICE_ACCOUNT, namespace), name):
            yield Violation(config_map["data"].path, "is read only once")
'''


@pytest.fixture
def registered(release: Release, mounted: Mounted, tmp_path: Path) -> Iterator[Callable[[], None]]:
    """The new policies in the ConfigMap; call it to register them."""
    mounted.change(no_team=NO_TEAM, frozen=FROZEN)
    folder = tmp_path / "policies" / "acme"
    folder.mkdir(parents=True)
    for name, text in {**FILES, "no_team.yaml": NO_TEAM, "frozen.py": FROZEN}.items():
        (folder / name).write_text(text, encoding="utf-8")

    def register() -> None:
        printed = release.ran(f"gpugate registration --chart-values --policy-path {folder.parent}")
        (tmp_path / "own-values.yaml").write_text(printed, encoding="utf-8")
        release.upgrade(VALUES, tmp_path / "own-values.yaml")

    yield register
    release.upgrade(VALUES)
    mounted.change(no_team=None, frozen=None)


def reviews_of(stage: Stage, release: Release, pod: Json) -> float:
    """Return how many validating reviews the creation of a Pod takes."""

    def reviews() -> float:
        return release.metric("gpugate_reviews_total", phase="validate", kind="Pod")

    before = reviews()
    stage.api.create(pod, dry_run=True)
    return eventually(lambda: reviews() - before)


def test_objects_that_the_library_does_not_evaluate_are_sent_once_they_are_registered(
    stage: Stage, release: Release, registered: Callable[[], None], tenant: str, tmp_path: Path
) -> None:
    metadata = {"name": "default", "namespace": tenant}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}
    assert stage.api.create(config_map).ok
    doctor = f"gpugate doctor --namespace {release.namespace} --policy-path {tmp_path}/policies"
    try:
        before = release.run(doctor)
        allowed = refusal(stage, plain_pod(tenant))
        registered()
        denied = eventually(lambda: refusal(stage, plain_pod(tenant)))
        change = {"data": {"frozen": "true"}}
        changed = eventually(lambda: stage.api.patch(config_map, change, dry_run=True), lambda answer: not answer.ok)
        reviews = [reviews_of(stage, release, pod) for pod in (with_gpus(tenant, 2), plain_pod(tenant))]
        after = release.run(doctor)
    finally:
        stage.api.delete(config_map)

    assert allowed == ""
    assert before.returncode == 1
    for requests in ("CREATE and UPDATE of configmaps", "CREATE and UPDATE of pods"):
        assert f"policies outside the library evaluate {requests}, but entries send only" in before.stdout
    assert "may not get, list, watch serviceaccounts" in before.stdout
    assert "[acme/no-team]" in denied
    assert "[acme/frozen] data: is read only once" in changed.message
    # Neither the Pod that the library evaluates nor the other one is sent twice.
    assert reviews == [1, 1]
    assert (after.returncode, "0 errors, 0 warnings" in after.stdout) == (0, True), after.stdout


RAISES = """from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, MAY_DEMAND
from gpugate.policies.sdk.objects import POD
from gpugate.policies.sdk.policy import validates

SDK = 1


@validates(POD, needs=CLAIM_NEEDS, concerns=MAY_DEMAND)
def check(pod, ctx):
    raise ValueError(pod["metadata", "name"].text)
"""


def test_a_policy_that_fails_repeatedly_is_switched_off_and_kubectl_shows_it(
    stage: Stage, release: Release, mounted: Mounted, tenant: str
) -> None:
    pod = with_gpus(tenant, 2)
    events = f"kubectl get events --namespace {release.namespace} --field-selector reason=PolicySwitchedOff"
    columns = "-o custom-columns=K:.involvedObject.kind,N:.involvedObject.name,T:.type,M:.message --no-headers"
    mounted.change(raises=f'"""Pod."""\n\n{RAISES}')

    raised = eventually(lambda: refusal(stage, pod))
    eventually(lambda: refusal(stage, pod), lambda said: not said)
    # Each Pod counts for itself, and the API server may keep its connection to one.
    shown = eventually(lambda: release.ran(f"{events} {columns}"))
    mounted.change(raises=None)

    assert "[acme/raises] could not evaluate this object (ValueError at raises.py:12)" in raised
    line = "policy acme/raises failed repeatedly and is not evaluated for some minutes; the log of the webhook has the errors"
    assert {" ".join(each.split()) for each in shown.splitlines()} == {f"Service gpugate Warning {line}"}
    assert "no Kubernetes Event was created" not in release.pods.logs("")


def test_a_plain_pod_is_not_sent(stage: Stage, release: Release, tenant: str) -> None:
    before = release.metric("gpugate_reviews_total")

    assert stage.api.create(plain_pod(tenant), dry_run=True).ok
    assert release.metric("gpugate_reviews_total") == before
