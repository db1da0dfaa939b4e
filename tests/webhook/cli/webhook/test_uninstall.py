from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cluster.fake_api_server import status
from operate.fake_installation import LEASES, MUTATING, SECRETS, VALIDATING

if TYPE_CHECKING:
    from collections.abc import Callable

    from operate.fake_installation import Cluster


def test_both_are_deleted_and_once_more_is_fine(installed: Cluster, webhook: Callable[..., Any]) -> None:
    first, again = webhook("uninstall", "--yes"), webhook("uninstall", "--yes")

    assert (first.code, again.code) == (0, 0)
    assert again.out.count("did not exist") == 2
    assert installed.configurations() == []


def test_only_with_all_the_secret_and_the_lease_go(installed: Cluster, webhook: Callable[..., Any]) -> None:
    installed.secret()
    installed.store.put(LEASES, {"metadata": {"name": "gpugate", "namespace": "gpugate"}})

    webhook("uninstall", "--yes")
    assert len(installed.store.all(SECRETS)) == len(installed.store.all(LEASES)) == 1

    assert webhook("uninstall", "--all", "--yes").code == 0
    assert installed.store.all(SECRETS) == installed.store.all(LEASES) == []


def test_what_is_not_ours_stays(installed: Cluster, webhook: Callable[..., Any]) -> None:
    installed.store.put(MUTATING, {**installed.configurations()[0], "metadata": {"name": "gpugate"}})

    ran = webhook("uninstall", "--yes")

    assert (ran.code, "MutatingWebhookConfiguration gpugate does not belong to gpugate" in ran.err) == (1, True)
    assert (len(installed.store.all(MUTATING)), installed.store.all(VALIDATING)) == (1, [])


@pytest.mark.parametrize(("flag", "code"), [("--yes", 4), ("--best-effort", 0)])
def test_one_that_cannot_be_deleted_does_not_keep_the_other(
    installed: Cluster, webhook: Callable[..., Any], flag: str, code: int
) -> None:
    installed.forbidden.add("mutatingwebhookconfigurations")

    ran = webhook("uninstall", flag)

    assert (ran.code, "MutatingWebhookConfiguration gpugate could not be deleted: 403" in ran.err) == (code, True)
    assert installed.store.all(VALIDATING) == []


def test_best_effort_where_there_is_no_cluster(gpugate: Callable[..., Any], tmp_path: Any) -> None:
    ran = gpugate("webhook", "uninstall", "--best-effort", "--kubeconfig", tmp_path / "none")

    assert (ran.code, "no kubeconfig at" in ran.err) == (0, True)


def test_one_that_goes_meanwhile(installed: Cluster, webhook: Callable[..., Any]) -> None:
    names = [f"{plural}webhookconfigurations/gpugate" for plural in ("mutating", "validating")]
    installed.answers += [status(name, 404, "NotFound") for name in names]

    assert webhook("uninstall", "--yes").code == 0
