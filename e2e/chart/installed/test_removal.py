"""However it goes, nothing stands in anybody's way afterwards, and nothing of it is left: `prepare` looks for that."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from chart.installed.release import NAME, ROOT
from chart.installed.requests import HIDDEN_ACCESS, eventually, pass_by

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from chart.installed.release import Release
    from chart.installed.stage import Stage

    Prepare = Callable[..., AbstractContextManager[Release]]

# As hard as it can be: everything in force, and requests are refused while nobody answers.
FAIL = {"failurePolicy": "Fail", "mutatingFailurePolicy": "Fail"}
HARD: dict[str, Any] = {
    "policy": {"mode": "enforce", "policies": {HIDDEN_ACCESS: {"mode": "enforce"}}},
    "webhooks": {"failOnInstall": True, "pools": FAIL, "pods": FAIL},
    "hooks": {"wait": {"enabled": False}},
}
UNPULLABLE = {**HARD, "image": {"tag": "no-such-tag"}}


def documented(beginning: str) -> str:
    """The command in `docs/install.md` that begins so."""
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    found = re.search(rf"^\$ ({re.escape(beginning)}.*)$", text, re.MULTILINE)
    assert found, f"docs/install.md has no command that begins with {beginning}"
    return found[1]


def test_uninstalled(stage: Stage, prepare: Prepare, tenant: str) -> None:
    with prepare() as release:
        release.install_one(HARD)
        release.uninstall()
        assert release.configurations() == []
        pass_by(stage, tenant)


def test_uninstalled_when_nothing_runs_any_more(stage: Stage, prepare: Prepare, tenant: str) -> None:
    with prepare() as release:
        release.install_one(HARD)
        release.ran(f"kubectl scale deployment {NAME} --replicas=0 --namespace {release.namespace}")
        eventually(lambda: not release.pods.ready())
        release.uninstall()
        pass_by(stage, tenant)


def test_uninstalled_when_its_image_was_never_pulled(stage: Stage, prepare: Prepare, tenant: str) -> None:
    with prepare() as release:
        release.pods.pulls = False
        failed = release.run(
            f"helm install {NAME} charts/gpugate -n {release.namespace} --create-namespace --timeout 2s"
        )
        assert failed.returncode != 0
        pass_by(stage, tenant)
        release.uninstall()
        pass_by(stage, tenant)


def test_uninstalled_when_its_image_cannot_be_pulled_any_more(stage: Stage, prepare: Prepare, tenant: str) -> None:
    with prepare() as release:
        release.install_one(HARD)
        release.pods.pulls = False
        release.upgrade_without_waiting(UNPULLABLE)
        # Its Job waits for the image too; so the documentation says what to do then.
        stuck = release.run(f"helm uninstall {NAME} --namespace {release.namespace} --timeout 2s")
        assert stuck.returncode != 0
        release.ran(
            documented("helm uninstall gpugate --no-hooks").replace("--namespace gpugate", f"-n {release.namespace}")
        )
        pass_by(stage, tenant)


def test_its_namespace_deleted(stage: Stage, prepare: Prepare, tenant: str, figures: list[str]) -> None:
    with prepare() as release:
        release.install_one(HARD)
        release.ran(f"kubectl delete namespace {release.namespace}")
        figures.append(f"chart: kubectl delete namespace: {release.seconds:.1f} s")
        eventually(lambda: release.configurations() == [])
        pass_by(stage, tenant)
        release.ran(documented("kubectl delete clusterrole,clusterrolebinding"))


def test_its_configurations_deleted_by_hand(stage: Stage, prepare: Prepare, tenant: str) -> None:
    with prepare() as release:
        release.install_one(HARD)
        release.ran(documented("kubectl delete mutatingwebhookconfiguration"))
        pass_by(stage, tenant)
        # Whoever keeps them has noticed, and leaves it at that.
        eventually(lambda: release.metric("gpugate_webhook_config_drift", reason="missing") >= 2)
        assert release.configurations() == []
        release.uninstall()
