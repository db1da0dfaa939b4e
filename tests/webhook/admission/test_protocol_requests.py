"""Every type of request from the API server is answered, and requests without policies are allowed unchanged."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from api_server import go_json, reviews
from api_server.attributes import Attributes, Endpoint, GroupVersion, connect, create, delete, subresource, update

if TYPE_CHECKING:
    from collections.abc import Callable

    from api_server.admission import ApiServer
    from api_server.outcomes import Outcome

Json = dict[str, Any]


@pytest.fixture
def pod(captured: Callable[[str], bytes]) -> Json:
    """A GPU Pod without its toleration, with the defaults of the API server."""
    obj: Json = json.loads(captured("pod-create-gpu-untolerated.mutate"))["request"]["object"]
    return obj


@pytest.fixture
def bad_pool(captured: Callable[[str], bytes]) -> Json:
    """A NodePool that is denied."""
    obj: Json = json.loads(captured("nodepool-create-unlimited.validate"))["request"]["object"]
    return obj


def patched(outcome: Outcome) -> bool:
    return any(call.response.patch for call in outcome.calls)


def untouched(outcome: Outcome) -> bool:
    return outcome.admitted and not patched(outcome) and not outcome.warnings


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_answered_in_the_version_it_was_asked_in(webhook: Any, pod: Json, version: str) -> None:
    sent = reviews.body(create(pod), "u", f"admission.k8s.io/{version}")
    _, _, body = webhook.request("POST", "/validate", sent)
    assert json.loads(body)["apiVersion"] == f"admission.k8s.io/{version}"


def test_two_reviews_of_one_uid_are_two_reviews(webhook: Any, pod: Json, bad_pool: Json) -> None:
    answers = [webhook.validate(reviews.body(create(obj), "u")) for obj in (pod, bad_pool, pod)]
    assert [answer["allowed"] for answer in answers] == [True, False, True]


def test_every_call_has_a_uid_of_its_own(api_server: ApiServer, pod: Json) -> None:
    with ThreadPoolExecutor(8) as side_by_side:
        outcomes = list(side_by_side.map(api_server.admit, [create(pod)] * 100))
    assert all(outcome.admitted and patched(outcome) for outcome in outcomes)


def test_evaluated_as_the_converted_kind(api_server: ApiServer, bad_pool: Json) -> None:
    sent_as = Endpoint(GroupVersion("karpenter.sh", "v1beta1"), "NodePool", "nodepools")
    outcome = api_server.admit(replace(create(bad_pool), requested=sent_as))
    assert "missing-gpu-limit" in outcome.message


def test_generate_name(api_server: ApiServer, pod: Json) -> None:
    metadata = {key: value for key, value in pod["metadata"].items() if key != "name"}
    outcome = api_server.admit(create(pod | {"metadata": metadata | {"generateName": "job-"}}))
    assert outcome.admitted
    assert patched(outcome)


def test_an_update_adds_what_is_missing_nowhere_else(api_server: ApiServer, pod: Json) -> None:
    labelled = pod | {"metadata": pod["metadata"] | {"labels": {"a": "b"}}}
    outcome = api_server.admit(update(pod, labelled))
    assert (outcome.admitted, patched(outcome)) == (True, False)


@pytest.mark.parametrize("collection", [False, True], ids=["one", "collection"])
@pytest.mark.parametrize("kind", ["pod", "bad_pool"])
def test_delete(
    api_server: ApiServer,
    kind: str,
    collection: bool,  # noqa: FBT001 -- a table's column
    request: pytest.FixtureRequest,
) -> None:
    assert untouched(api_server.admit(delete(request.getfixturevalue(kind), collection=collection)))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("exec", "PodExecOptions"),
        ("attach", "PodAttachOptions"),
        ("portforward", "PodPortForwardOptions"),
        ("proxy", "PodProxyOptions"),
    ],
)
def test_connect(api_server: ApiServer, pod: Json, name: str, kind: str) -> None:
    assert untouched(api_server.admit(connect(pod, name, kind, container="c")))


def namespaced(api_version: str, kind: str, **members: Any) -> Json:
    metadata = {"name": "gpu-pod-untolerated", "namespace": "default"}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **members}


DEPLOYMENT = namespaced("apps/v1", "Deployment")
SUBRESOURCES: dict[str, Callable[[Json], Attributes]] = {
    "status": lambda pod: subresource(pod, "status", pod, pod),
    "ephemeralcontainers": lambda pod: subresource(pod, "ephemeralcontainers", pod, pod),
    "binding": lambda pod: subresource(pod, "binding", namespaced("v1", "Binding", target={"name": "n"})),
    "eviction": lambda pod: subresource(pod, "eviction", namespaced("policy/v1", "Eviction")),
    "scale": lambda _: subresource(DEPLOYMENT, "scale", *[namespaced("autoscaling/v1", "Scale")] * 2),
    "token": lambda _: subresource(
        namespaced("v1", "ServiceAccount"), "token", namespaced("authentication.k8s.io/v1", "TokenRequest")
    ),
    "unknown": lambda pod: subresource(pod, "foo", namespaced("example.com/v1", "Foo")),
}


@pytest.mark.parametrize("name", SUBRESOURCES)
def test_subresources_go_through(api_server: ApiServer, pod: Json, name: str) -> None:
    assert untouched(api_server.admit(SUBRESOURCES[name](pod)))


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(namespaced("example.com/v1", "Foo", spec=[1]), id="unknown-kind"),
        pytest.param({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}, id="namespace"),
        pytest.param(namespaced("v1", "ConfigMap", data={"a": "<&>\u2028"}), id="escaped-characters"),
    ],
)
def test_other_kinds_go_through(api_server: ApiServer, obj: Json) -> None:
    assert untouched(api_server.admit(create(obj)))


def test_a_dry_run_is_decided_as_the_real_one(api_server: ApiServer, bad_pool: Json) -> None:
    real, dry = api_server.admit(create(bad_pool)), api_server.admit(create(bad_pool).as_dry_run())
    assert (dry.admitted, dry.message) == (real.admitted, real.message)


@pytest.mark.parametrize(
    "user",
    [
        pytest.param({}, id="nobody"),
        pytest.param({"username": "a"}, id="no-groups"),
        pytest.param({"username": "a", "uid": "1", "groups": ["g"] * 10_000, "extra": {"k": ["v"]}}, id="many-groups"),
    ],
)
def test_users(api_server: ApiServer, pod: Json, user: Json) -> None:
    assert api_server.admit(create(pod, user=user)).admitted


def test_unknown_members_are_ignored(webhook: Any, pod: Json) -> None:
    review = reviews.review(create(pod | {"future": {"a": 1}}), "u")
    review["request"]["future"] = {"a": [1]}
    assert webhook.validate(go_json.encode(review))["allowed"]


def test_the_largest_request(api_server: ApiServer, pod: Json) -> None:
    """Go encodes 3 MiB of `<` as 18 MiB, and the request also contains the stored object."""
    large = pod | {"metadata": pod["metadata"] | {"annotations": {"a": "<" * 3 * 1024 * 1024}}}
    stored = pod | {"metadata": pod["metadata"] | {"annotations": {"a": "<" * 1536 * 1024}}}
    assert api_server.admit(update(stored, large)).admitted


@pytest.mark.parametrize("levels", [1_000, 9_000])
def test_nested_too_deep_is_denied_with_a_message(api_server: ApiServer, levels: int) -> None:
    deep = namespaced("example.com/v1", "Foo", spec="DEEP")

    class Deep:
        def __init__(self, transport: Any) -> None:
            self._transport = transport

        def post(self, body: bytes, timeout_seconds: float) -> Any:
            nested = b"[" * levels + b"]" * levels
            return self._transport.post(body.replace(b'"DEEP"', nested), timeout_seconds)

    hooks = tuple(replace(hook, transport=Deep(hook.transport)) for hook in api_server.validating)
    outcome = replace(api_server, mutating=(), validating=hooks).admit(create(deep))
    assert outcome.status is not None
    assert (outcome.status["code"], "nested" in outcome.message) == (413, True)
