"""Whatever happens to what is kept: the replica serves on, stays ready, says what is wrong, and puts it right."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest
from eventually import eventually
from kept.cluster import LEASES, MUTATING, SECRETS, VALIDATING

from gpugate.certs.authorities import Periods, create_authority
from gpugate.certs.pki import common_name
from gpugate.webhook.cluster.connection import wall_clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from kept.cluster import KeptCluster
    from kept.conftest import Kept
    from kept.replica import Replica


def test_a_secret_that_was_deleted_is_restored(kept: Kept) -> None:
    before = kept.cluster.authorities()
    kept.cluster.delete_secret()
    assert eventually(lambda: kept.cluster.store.all(SECRETS))
    assert (kept.cluster.authorities().active, kept.replica.ready()) == (before.active, True)


@pytest.mark.parametrize("plural", [MUTATING, VALIDATING], ids=["mutating", "validating"])
@pytest.mark.parametrize(
    "bundle",
    [b"", b"no PEM", create_authority(Periods(), wall_clock()).certificate],
    ids=["wiped", "garbage", "somebody-else"],
)
def test_a_bundle_is_put_back(kept: Kept, plural: tuple[str, str], bundle: bytes) -> None:
    good = kept.cluster.bundles()
    kept.cluster.set_bundle(bundle, plural)
    assert eventually(lambda: kept.cluster.bundles() == good)


def test_configurations_made_again_get_their_bundles(kept: Kept) -> None:
    good = kept.cluster.bundles()
    for plural in (MUTATING, VALIDATING):
        kept.cluster.store.delete(plural, "", "gpugate")
    kept.cluster.register()
    assert eventually(lambda: kept.cluster.bundles() == good)


@pytest.mark.parametrize(
    "plural", [SECRETS[1], MUTATING[1], VALIDATING[1], LEASES[1]], ids=["secret", "mutating", "validating", "lease"]
)
def test_without_a_right_it_serves_on_and_says_so(kept: Kept, plural: str) -> None:
    kept.cluster.api.forbidden = {plural}
    kept.replica.signal(signal.SIGHUP)
    assert eventually(lambda: any("may not" in reason and plural in reason for reason in kept.replica.reasons()))
    assert eventually(lambda: kept.replica.metric("gpugate_certificate_management_healthy") == 0)
    assert kept.replica.ready()
    kept.replica.review(kept.cluster.bundles()[0])


def test_a_keeper_that_was_killed_is_replaced(kept: Kept) -> None:
    before = kept.replica.served(kept.cluster.bundles()[0])
    ready = []

    def replaced() -> bool:
        ready.append(kept.replica.ready())
        return kept.replica.served(kept.cluster.bundles()[0]) != before

    os.kill(kept.replica.keeper, signal.SIGKILL)
    # Nobody else renews the Lease of the dead.
    kept.cluster.release()
    assert eventually(replaced)
    assert all(ready)
    assert kept.replica.keeper not in kept.replica.workers()
    assert eventually(lambda: kept.replica.metric("gpugate_certificate_leader") == 1)


def test_without_an_api_server_it_serves_on(cluster: KeptCluster, replica: Callable[..., Replica]) -> None:
    alone = replica(cluster)
    assert eventually(alone.ready)
    bundle, signed_by = cluster.bundles()[0], common_name(cluster.authorities().active.certificate)
    cluster.api.stop()
    assert eventually(lambda: alone.metric("gpugate_certificate_management_healthy") == 0)
    alone.review(bundle)
    assert (alone.ready(), alone.signed_by()) == (True, signed_by)


def test_credentials_that_are_gone_for_a_while_end_nothing(
    cluster: KeptCluster, replica: Callable[..., Replica]
) -> None:
    alone = replica(cluster)
    assert eventually(alone.ready)
    asked = len(cluster.api.asked("leases"))
    kubeconfig = alone.log_file.with_name("kubeconfig")
    content = kubeconfig.read_text()
    kubeconfig.unlink()
    cluster.api.token = "another"  # noqa: S105 -- of nobody
    alone.signal(signal.SIGHUP)
    assert eventually(lambda: len(cluster.api.asked("leases")) > asked)
    assert eventually(lambda: alone.metric("gpugate_certificate_management_healthy") == 0)
    cluster.api.token = ""
    kubeconfig.write_text(content)
    renewals = len(cluster.history(LEASES))
    assert eventually(lambda: len(cluster.history(LEASES)) > renewals)
    assert eventually(lambda: alone.metric("gpugate_certificate_management_healthy") == 1)
