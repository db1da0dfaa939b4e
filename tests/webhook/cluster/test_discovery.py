from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from cluster.fake_api_server import Answer, status

from gpugate.policies.sdk.objects import (
    DEPLOYMENT,
    HORIZONTAL_POD_AUTOSCALER,
    NAMESPACE,
    NODE_CLAIM,
    NODE_POOL,
    RESOURCE_CLAIM,
    SCALED_OBJECT,
)
from gpugate.webhook.cluster.discovery import path_of, resource_name
from gpugate.webhook.cluster.errors import ApiError, NotServedError, UnreachableError

if TYPE_CHECKING:
    from cluster.fake_api_server import FakeApiServer

    from gpugate.policies.sdk.objects import Kind
    from gpugate.webhook.cluster.connection import Connection

SERVED = {
    "core": (NAMESPACE, "/api/v1/namespaces"),
    "a group": (DEPLOYMENT, "/apis/apps/v1/deployments"),
    "in the preferred version": (
        HORIZONTAL_POD_AUTOSCALER,
        "/apis/autoscaling/v2/horizontalpodautoscalers",
    ),
    "in the newest supported version": (RESOURCE_CLAIM, "/apis/resource.k8s.io/v1beta2/resourceclaims"),
}


@pytest.mark.parametrize(("kind", "path"), SERVED.values(), ids=SERVED)
def test_the_path_of_a_served_kind(api: FakeApiServer, connection: Connection, kind: Kind, path: str) -> None:
    api.serve("resource.k8s.io", ("v2", "v1beta1", "v1beta2"), "ResourceClaim", "resourceclaims")

    assert path_of(connection, kind) == path


MISSING = {
    "an unknown group": (SCALED_OBJECT, "the cluster does not serve scaledobjects.keda.sh"),
    "an unknown kind of a group": (NODE_CLAIM, "the cluster does not serve nodeclaims.karpenter.sh"),
    "other versions only": (NODE_POOL, "the cluster does not serve nodepools.karpenter.sh in v1"),
}


@pytest.mark.parametrize(("kind", "message"), MISSING.values(), ids=MISSING)
def test_kinds_that_are_not_served(api: FakeApiServer, connection: Connection, kind: Kind, message: str) -> None:
    if kind == NODE_POOL:
        api.serve("karpenter.sh", ("v1beta1",), "NodePool", "nodepools", namespaced=False)

    with pytest.raises(NotServedError) as error:
        path_of(connection, kind)

    assert str(error.value) == message


def test_a_server_error_does_not_mean_not_served(api: FakeApiServer, connection: Connection) -> None:
    api.answers.append(status("/apis/apps", 503, "ServiceUnavailable"))

    with pytest.raises(ApiError, match="503"):
        path_of(connection, DEPLOYMENT)


def test_a_server_that_is_not_an_api_server(api: FakeApiServer, connection: Connection) -> None:
    api.answers.append(Answer("/apis/apps", body=b"<html>"))

    with pytest.raises(UnreachableError, match="is not a response of an API server"):
        path_of(connection, DEPLOYMENT)


@pytest.mark.parametrize(("kind", "name"), [(NODE_POOL, "nodepools.karpenter.sh"), (NAMESPACE, "namespaces")])
def test_resource_names_as_in_rbac(kind: Kind, name: str) -> None:
    assert resource_name(kind) == name
