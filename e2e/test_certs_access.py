"""Test the calls of the certificate keeper on a real API server with exactly the generated permissions."""

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


def test_the_secret_is_created_and_replaced_by_version(api: Api, keeper: Connection, namespace: str) -> None:
    store = NamedSecret(keeper, namespace, SECRET)
    assert store.read() is None
    created = store.create({"ca.crt": b"one", "ca.key": bytes(range(256))})
    with pytest.raises(ConflictError):
        store.create({})

    reference = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": namespace}}
    annotated = api.patch(reference, {"metadata": {"annotations": {"gpugate.dev/rotate": "now"}}})
    with pytest.raises(ConflictError):
        store.replace({}, created.version)
    replaced = store.replace({"ca.crt": b"two"}, annotated.body["metadata"]["resourceVersion"])

    assert created.data == {"ca.crt": b"one", "ca.key": bytes(range(256))}
    assert (replaced.data, replaced.annotations) == ({"ca.crt": b"two"}, {"gpugate.dev/rotate": "now"})
    assert store.read() == replaced

    api.delete(reference)
    with pytest.raises(ConflictError):
        store.replace({}, replaced.version)


def test_other_secrets_are_forbidden(keeper: Connection, namespace: str) -> None:
    with pytest.raises(
        ClusterFailure, match=f"gpugate may not get secrets 'other' in namespace '{namespace}': grant its Serv"
    ):
        NamedSecret(keeper, namespace, "other").read()


def test_lists_are_forbidden(keeper: Connection, namespace: str) -> None:
    locations = (
        named_object.secret(namespace, SECRET),
        named_object.lease(namespace, LEASE),
        named_object.namespace(namespace),
    )
    for location in (*locations, *named_object.configurations(namespace).values()):
        for query in ({}, {"fieldSelector": "metadata.name=other"}, {"watch": "true"}):
            with pytest.raises(ApiError, match="403"):
                keeper.read(location.collection, query)


def test_every_object_can_be_watched_by_name(api: Api, keeper: Connection, namespace: str) -> None:
    changes: list[str] = []
    failures: list[str] = []
    stopped = threading.Event()
    watches = [
        NamedWatch(keeper, location, lambda location=location: changes.append(location.resource), failures.append)
        for location in (named_object.secret(namespace, SECRET), *named_object.configurations(namespace).values())
    ]
    threads = [threading.Thread(target=watch.run, args=(stopped,)) for watch in watches]
    for thread in threads:
        thread.start()
    try:
        for watch in watches:
            resource = watch.location.resource
            # The start of the watch is reported as a change.
            assert eventually(lambda resource=resource: changes.count(resource) == 1)
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": namespace}}
        api.create({**secret, "metadata": {"name": "other", "namespace": namespace}})
        api.create(secret)
        assert eventually(lambda: changes.count("secrets") == 2)
        api.delete(secret)
        assert eventually(lambda: changes.count("secrets") == 3)
        for kind, location in named_object.configurations(namespace).items():
            configuration = {
                "apiVersion": "admissionregistration.k8s.io/v1",
                "kind": kind,
                "metadata": {"name": namespace},
            }
            api.create(configuration)
            assert eventually(lambda location=location: changes.count(location.resource) == 2)
            api.delete(configuration)
    finally:
        stopped.set()
        for watch in watches:
            watch.stop()
        for thread in threads:
            thread.join()
    assert not failures


def test_the_lease_is_acquired_renewed_and_released(api: Api, keeper: Connection, namespace: str) -> None:
    first, second = (LeaderElection(keeper, namespace, LEASE, name) for name in ("first", "second"))
    reference = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": LEASE, "namespace": namespace},
    }
    leadership = []
    for election in (first, second, first):
        election.step()
        leadership.append((first.is_leader, second.is_leader))
    renewed = api.get(reference)["spec"]
    first.release()
    released = api.get(reference)["spec"]
    second.step()
    leadership.append((first.is_leader, second.is_leader))

    assert leadership == [(True, False)] * 3 + [(False, True)]
    assert (first.trouble, second.trouble) == ("", "")
    assert (renewed["holderIdentity"], renewed["leaseDurationSeconds"]) == ("first", 15)
    assert renewed["acquireTime"] < renewed["renewTime"]
    assert (released["holderIdentity"], released["leaseDurationSeconds"]) == ("", 1)
    assert api.get(reference)["spec"]["leaseTransitions"] == 1


def test_the_clock_skew_on_one_machine_is_small(keeper: Connection) -> None:
    assert keeper.clock_skew is not None

    def is_small() -> bool:
        skew = keeper.clock_skew
        keeper.read("/version", {})  # a slow response is not measured, so read again
        return skew is not None and abs(skew.total_seconds()) <= 2

    assert eventually(is_small)
