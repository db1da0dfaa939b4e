"""What Argo CD and Flux do to a running installation: compare it with its manifest, and apply the manifest again.

`kubectl diff` and `kubectl apply` merge as they do: on the side of the server (Flux; Argo CD with `ServerSideApply` and
`ServerSideDiff`), and with the annotation of the last applied manifest (Argo CD otherwise).
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from chart.installed.release import NAME
from chart.installed.requests import HIDDEN_ACCESS, acting_as, eventually, pass_by, seeing_pod
from chart.installed.test_upgrade import WITHOUT_CLAIMS, denied, trusted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from chart.installed.release import Release
    from chart.installed.stage import Stage

    Prepare = Callable[..., AbstractContextManager[Release]]

SERVER_SIDE = "--server-side --force-conflicts --field-manager=gitops"


@pytest.mark.parametrize("how", [SERVER_SIDE, ""], ids=["server-side", "client-side"])
def test_a_sync_is_no_gap_and_what_the_webhook_writes_no_difference(
    stage: Stage, prepare: Prepare, tenant: str, how: str
) -> None:
    with prepare() as release:
        bundle = enforced(stage, release, tenant)

        with answers(stage, tenant) as given:
            for _ in range(3):
                release.ran(f"kubectl apply --namespace {release.namespace} {how} -f manifest.yaml")
        assert given
        assert [answer for answer in given if HIDDEN_ACCESS not in answer] == []
        assert trusted(release) == {bundle}
        assert differences(release, how) == ""

        release.ran("gpugate webhook disable --yes")
        assert differences(release, how) == ""
        release.uninstall()
        pass_by(stage, tenant)


def test_a_replace_takes_the_bundle_away_until_the_webhook_writes_it_again(
    stage: Stage, prepare: Prepare, tenant: str
) -> None:
    with prepare() as release:
        bundle = enforced(stage, release, tenant)
        only = "--show-only templates/webhooks.yaml --values values.yaml"
        release.ran(f"helm template {NAME} charts/gpugate --namespace {release.namespace} {only} > webhooks.yaml")

        replaced = release.ran("kubectl replace -f webhooks.yaml --dry-run=server --output yaml")
        assert "clientConfig" in replaced
        assert "caBundle" not in replaced

        release.ran("kubectl replace -f webhooks.yaml")
        eventually(lambda: trusted(release) == {bundle})
        eventually(lambda: denied(stage, tenant))
        release.uninstall()
        # A replace also takes away the annotations by which Helm knows its objects.
        release.ran("kubectl delete -f webhooks.yaml --ignore-not-found")
        pass_by(stage, tenant)


def enforced(stage: Stage, release: Release, tenant: str) -> str:
    """Install with a disabled group, and write the manifest of the release to a file; returns the `caBundle`."""
    release.install(WITHOUT_CLAIMS)
    eventually(lambda: denied(stage, tenant))
    (bundle,) = trusted(release)
    assert bundle
    release.ran(f"helm get manifest {NAME} --namespace {release.namespace} > manifest.yaml")
    return bundle


def differences(release: Release, how: str) -> str:
    """Return how the objects of the cluster differ from the manifest."""
    ran = release.run(f"kubectl diff --namespace {release.namespace} {how} -f manifest.yaml")
    assert ran.returncode in {0, 1}, ran.stderr
    return ran.stdout


@contextmanager
def answers(stage: Stage, tenant: str) -> Iterator[list[str]]:
    """Collect, as long as the context lasts, what the API server says to a Pod that a policy denies; empty if it allows the Pod."""
    given: list[str] = []
    ended = threading.Event()

    def ask() -> None:
        with acting_as(stage, "developer") as developer:
            while not ended.is_set():
                given.append(developer.create(seeing_pod(tenant), dry_run=True).message)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield given
    finally:
        ended.set()
        asking.join()
