"""The webhook's ServiceAccount may read what policies look up, and do nothing else."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.registration.rbac import rbac

if TYPE_CHECKING:
    from cluster.api import Api

PATIENCE_SECONDS = 90


@pytest.fixture(scope="module")
def account(api: Api) -> str:
    """A user with the generated rights, under names of its own."""
    for made in rbac(bind(CATALOG, PolicyConfig()), "default", "gpugate"):
        answer = api.apply(json.loads(json.dumps(made).replace('"gpugate"', '"access-e2e"')))
        assert answer.ok, answer.message
    user = "system:serviceaccount:default:access-e2e"
    end = time.monotonic() + PATIENCE_SECONDS
    while not may(api, user, "list", "", "namespaces"):
        assert time.monotonic() < end, "the binding did not come into force"
    return user


def may(api: Api, user: str, verb: str, group: str, resource: str) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {"user": user, "resourceAttributes": {"verb": verb, "group": group, "resource": resource}},
    }
    return bool(api.create(review).body["status"]["allowed"])


@pytest.mark.parametrize(
    ("verb", "group", "resource", "allowed"),
    [
        ("list", "", "namespaces", True),
        ("watch", "karpenter.sh", "nodepools", True),
        ("list", "resource.k8s.io", "resourceclaimtemplates", True),
        ("patch", "karpenter.sh", "nodepools", False),
        ("create", "", "namespaces", False),
        ("list", "", "pods", False),
        ("get", "", "secrets", False),
        ("impersonate", "", "users", False),
    ],
)
def test_it_may(api: Api, account: str, verb: str, group: str, resource: str, *, allowed: bool) -> None:
    assert may(api, account, verb, group, resource) == allowed
