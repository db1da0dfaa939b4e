"""What keeps certificates works on a real API server with exactly the rights that are generated for it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from cluster.keeper_account import LEASE, SECRET, keeper_connection
from eventually import eventually

from gpugate.certs.protocols import ClusterFailure, ConflictError
from gpugate.webhook.cluster import named_object
from gpugate.webhook.cluster.errors import ApiError
from gpugate.webhook.cluster.lease import LeaderElection
from gpugate.webhook.cluster.named_object import NamedWatch
from gpugate.webhook.cluster.secret_store import NamedSecret

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane

    from gpugate.webhook.cluster.connection import Connection


@pytest.fixture
def keeper(api: Api, control_plane: ControlPlane, tmp_path: Path, namespace: str) -> Iterator[Connection]:
    with keeper_connection(api, control_plane, tmp_path, namespace) as connection:
        yield connection


def test_the_secret_is_created_once_replaced_when_it_is_as_read_and_keeps_what_others_wrote(
    api: Api, keeper: Connection, namespace: str
) -> None:
    store = NamedSecret(keeper, namespace, SECRET)
    assert store.read() is None
    created = store.create({"ca.crt": b"one", "ca.key": bytes(range(256))})
    with pytest.raises(ConflictError):
        store.create({})

    reference = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": namespace}}
    asked = api.patch(reference, {"metadata": {"annotations": {"gpugate.dev/rotate": "now"}}})
    with pytest.raises(ConflictError):
        store.replace({}, created.version)
    replaced = store.replace({"ca.crt": b"two"}, asked.body["metadata"]["resourceVersion"])

    assert created.data == {"ca.crt": b"one", "ca.key": bytes(range(256))}
    assert (replaced.data, replaced.annotations) == ({"ca.crt": b"two"}, {"gpugate.dev/rotate": "now"})
    assert store.read() == replaced

    api.delete(reference)
    with pytest.raises(ConflictError):
        store.replace({}, replaced.version)


def test_a_secret_of_another_name_is_out_of_reach(keeper: Connection, namespace: str) -> None:
    with pytest.raises(
        ClusterFailure, match=f"gpugate may not get secrets 'other' in namespace '{namespace}': grant its Serv"
    ):
        NamedSecret(keeper, namespace, "other").read()


def test_nothing_can_be_listed(keeper: Connection, namespace: str) -> None:
    everything = (
        named_object.secret(namespace, SECRET),
        named_object.lease(namespace, LEASE),
        named_object.namespace(namespace),
    )
    for each in (*everything, *named_object.configurations(namespace).values()):
        for query in ({}, {"fieldSelector": "metadata.name=other"}, {"watch": "true"}):
            with pytest.raises(ApiError, match="403"):
                keeper.read(each.collection, query)


def test_every_object_is_watched_by_its_name(api: Api, keeper: Connection, namespace: str) -> None:
    changes: list[str] = []
    lost: list[str] = []
    stopped = threading.Event()
    watches = [
        NamedWatch(keeper, each, lambda each=each: changes.append(each.resource), lost.append)
        for each in (named_object.secret(namespace, SECRET), *named_object.configurations(namespace).values())
    ]
    threads = [threading.Thread(target=watch.run, args=(stopped,)) for watch in watches]
    for thread in threads:
        thread.start()
    try:
        for watch in watches:
            resource = watch.location.resource
            # It tells once that it begins, of nothing.
            assert eventually(lambda resource=resource: changes.count(resource) == 1)
        made = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": namespace}}
        api.create({**made, "metadata": {"name": "other", "namespace": namespace}})
        api.create(made)
        assert eventually(lambda: changes.count("secrets") == 2)
        api.delete(made)
        assert eventually(lambda: changes.count("secrets") == 3)
        for kind, where in named_object.configurations(namespace).items():
            configuration = {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": {"name": namespace},
            }
            api.create(configuration)
            assert eventually(lambda where=where: changes.count(where.resource) == 2)
            api.delete(configuration)
    finally:
        stopped.set()
        for watch in watches:
            watch.stop()
        for thread in threads:
            thread.join()
    assert not lost


def test_the_lease_is_taken_renewed_released_and_taken_by_another(api: Api, keeper: Connection, namespace: str) -> None:
    first, second = (LeaderElection(keeper, namespace, LEASE, name) for name in ("first", "second"))
    reference = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": namespace},
    }
    held = []
    for each in (first, second, first):
        each.step()
        held.append((first.is_leader, second.is_leader))
    renewed = api.get(reference)["spec"]
    first.release()
    released = api.get(reference)["spec"]
    second.step()
    held.append((first.is_leader, second.is_leader))

    assert held == [(True, False)] * 3 + [(False, True)]
    assert (first.trouble, second.trouble) == ("", "")
    assert (renewed["holderIdentity"], renewed["leaseDurationSeconds"]) == ("first", 15)
    assert renewed["acquireTime"] < renewed["renewTime"]
    assert (released["holderIdentity"], released["leaseDurationSeconds"]) == ("", 1)
    assert api.get(reference)["spec"]["leaseTransitions"] == 1


def test_the_clock_of_the_api_server_is_that_of_this_machine(keeper: Connection) -> None:
    assert keeper.clock_skew is not None

    def is_small() -> bool:
        skew = keeper.clock_skew
        keeper.read("/version", {})  # a slow answer says little, and the next may be quick
        return skew is not None and abs(skew.total_seconds()) <= 2

    assert eventually(is_small)
