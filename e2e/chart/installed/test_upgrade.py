"""From audit to enforcement and back, by values alone, while the webhook owns what entries trust."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chart.installed.release import NAME
from chart.installed.requests import HIDDEN_ACCESS, eventually, pass_by, seeing_pod

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from chart.installed.release import Release
    from chart.installed.stage import Stage

    Prepare = Callable[..., AbstractContextManager[Release]]

# What is looked at here does not depend on how many Pods there are, nor on Helm's own Jobs.
AUDIT: dict[str, Any] = {"replicaCount": 1, "hooks": {"wait": {"enabled": False}}}
ENFORCED = AUDIT | {"policy": {"policies": {HIDDEN_ACCESS: {"mode": "enforce"}}}}
WITHOUT_CLAIMS = ENFORCED | {"webhooks": {"claims": {"enabled": False}}}
WAITING = ENFORCED | {"replicaCount": 2, "webhooks": {"pods": {"failurePolicy": "Fail"}}}


def denied(stage: Stage, tenant: str) -> bool:
    return f"[{HIDDEN_ACCESS}]" in stage.api.create(seeing_pod(tenant), dry_run=True).message


def trusted(release: Release) -> set[str]:
    """What the entries trust: one bundle in all of them."""
    return {each["clientConfig"].get("caBundle", "") for each in release.entries().values()}


def kept(release: Release) -> dict[str, str]:
    """The authorities in the Secret, without when they did what."""
    return {key: value for key, value in release.secret().items() if key != "state.json"}


def test_up_and_back(stage: Stage, prepare: Prepare, tenant: str) -> None:
    with prepare() as release:
        release.install(AUDIT)
        authorities, (bundle,), entries = kept(release), trusted(release), list(release.entries())
        assert authorities
        pass_by(stage, tenant)

        # Deleted by hand, both come back as the release's own, which upgrades may write and an uninstall delete.
        release.ran(f"kubectl --namespace {release.namespace} delete secret,lease -l app.kubernetes.io/name={NAME}")
        eventually(lambda: kept(release) == authorities)

        release.upgrade(ENFORCED)
        eventually(lambda: denied(stage, tenant))

        release.upgrade(WITHOUT_CLAIMS)
        assert release.entries()["claims.validate"].get("rules", []) == []
        eventually(lambda: release.metric("gpugate_webhook_config_drift") == 0)

        release.upgrade(WAITING)
        found = release.entries()
        assert found["claims.validate"]["rules"]
        assert {name for name, each in found.items() if each["failurePolicy"] == "Fail"} == {
            "pods.validate",
            "probe.mutate",
            "probe.validate",
        }
        assert denied(stage, tenant)
        assert (kept(release), trusted(release), list(found)) == (authorities, {bundle}, entries)

        release.ran(f"helm rollback {NAME} 1 --namespace {release.namespace} --wait --timeout 60s")
        eventually(lambda: not denied(stage, tenant))
        pass_by(stage, tenant)
        assert release.entries()["pods.validate"]["failurePolicy"] == "Ignore"
        assert (kept(release), trusted(release)) == (authorities, {bundle})

        release.uninstall()
        pass_by(stage, tenant)


def test_helm_3_takes_back_nothing_either(stage: Stage, prepare: Prepare, tenant: str) -> None:
    with prepare("helm3") as release:
        release.install(AUDIT)
        authorities, (bundle,) = kept(release), trusted(release)
        assert authorities

        release.upgrade(WITHOUT_CLAIMS)

        eventually(lambda: denied(stage, tenant))
        assert release.entries()["claims.validate"].get("rules", []) == []
        assert (kept(release), trusted(release)) == (authorities, {bundle})
        release.uninstall()
        pass_by(stage, tenant)
