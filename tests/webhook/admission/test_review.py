from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.admission.review import MAX_BODY, MAX_DEPTH, UnacceptableError, UnattributableError, decode

if TYPE_CHECKING:
    from collections.abc import Callable

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
POD_KIND = {"group": "", "version": "v1", "kind": "Pod"}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "team"}, "spec": {"containers": []}}
REVIEWS = sorted((Path(__file__).parents[2] / "fixtures" / "reviews").glob("*.json"))
ABSENT = object()


def request(**members: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "uid": UID,
        "kind": POD_KIND,
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "name": "a",
        "namespace": "team",
        "operation": "CREATE",
        "userInfo": {"username": "admin", "groups": ["system:masters"]},
        "object": POD,
        "oldObject": None,
        "dryRun": False,
        "options": None,
    }
    return {key: value for key, value in (base | members).items() if value is not ABSENT}


def body(api_version: object = "admission.k8s.io/v1", **members: Any) -> bytes:
    return json.dumps({"kind": "AdmissionReview", "apiVersion": api_version, "request": request(**members)}).encode()


def with_object(text: str) -> bytes:
    return body(object="OBJECT").replace(b'"OBJECT"', text.encode())


def nested(levels: int) -> str:
    return '{"kind":"Pod","apiVersion":"v1","x":' + "[" * levels + "]" * levels + "}"


def many(value: str, count: int) -> str:
    return '{"a":[' + ",".join([value] * count) + "]}"


def other(member: str, value: object) -> bytes:
    return json.dumps(
        {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request()} | {member: value}
    ).encode()


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(b"", 400, id="empty"),
        pytest.param(b'{"a', 400, id="truncated"),
        pytest.param(b"[1,]", 400, id="trailing-comma"),
        pytest.param(b"{'a':1}", 400, id="single-quotes"),
        pytest.param(b"null", 400, id="null"),
        pytest.param(b'"x"', 400, id="string"),
        pytest.param(b"5", 400, id="number"),
        pytest.param(b"[]", 400, id="list"),
        pytest.param(b"\xef\xbb\xbf" + body(), 400, id="byte-order-mark"),
        pytest.param(body().decode().encode("utf-16"), 400, id="utf-16"),
        pytest.param(b"[" * 100_000, 413, id="deep-and-no-uid"),
        pytest.param(b" " * (MAX_BODY + 1), 413, id="too-large-and-no-uid"),
        pytest.param(other("kind", "Review"), 400, id="another-kind"),
        pytest.param(other("kind", None), 400, id="no-kind"),
        pytest.param(body(api_version="audit.k8s.io/v1"), 400, id="another-group"),
        pytest.param(body(api_version=["admission.k8s.io/v1"]), 400, id="api-version-a-list"),
        pytest.param(other("request", None), 400, id="request-null"),
        pytest.param(other("request", []), 400, id="request-a-list"),
        pytest.param(other("request", "x"), 400, id="request-a-string"),
        pytest.param(body(api_version="admission.k8s.io/v2"), 400, id="v2"),
        pytest.param(body(uid=ABSENT), 400, id="uid-missing"),
        pytest.param(body(uid=""), 400, id="uid-empty"),
        pytest.param(body(uid=5), 400, id="uid-a-number"),
        pytest.param(body(uid="u" * 10_000), 400, id="uid-too-long"),
        pytest.param(body(uid='a"b'), 400, id="uid-with-a-quote"),
        pytest.param(body(uid="a\nb"), 400, id="uid-with-a-newline"),
        pytest.param(other("REQUEST", {}).replace(b'"uid"', b'"UID"'), 400, id="keys-in-another-case"),
    ],
)
def test_no_uid_is_known(sent: bytes, code: int) -> None:
    with pytest.raises(UnattributableError) as refused:
        decode(sent)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("sent", "code", "message"),
    [
        pytest.param(body()[:-20], 400, "not JSON", id="truncated-after-the-uid"),
        pytest.param(body() + b"{}", 400, "not JSON", id="trailing-text"),
        pytest.param(with_object('{"a":NaN}'), 400, "not JSON", id="nan"),
        pytest.param(with_object('{"a":1e999}'), 400, "infinity", id="out-of-range"),
        pytest.param(with_object('{"a":' + "9" * 5000 + "}"), 400, "infinity", id="5000-digits"),
        pytest.param(with_object('{"a":"\ufffd"}').replace(b"\xef\xbf\xbd", b"\xe9"), 400, "UTF-8", id="latin-1"),
        pytest.param(with_object('{"a":-Infinity}'), 400, "not JSON", id="minus-infinity"),
        pytest.param(with_object('{"a":1e400}'), 400, "infinity", id="1e400"),
        pytest.param(with_object("{/* no */}"), 400, "not JSON", id="comment"),
        pytest.param(with_object("{" + "[]," * 100), 400, "not JSON", id="half-an-object"),
        pytest.param(with_object(many("{}", 1_000_000)), 413, "250,000 values", id="a-million-empty-objects"),
        pytest.param(with_object(many("0", 250_001)), 413, "250,000 values", id="more-values-than-that"),
        pytest.param(with_object(many('"\\","', 250_000)), 413, "250,000 values", id="strings-of-quotes-and-commas"),
        pytest.param(with_object(r'{"a":"\ud800"}'), 400, "surrogate", id="lone-surrogate"),
        pytest.param(with_object(nested(MAX_DEPTH)), 413, "nested", id="one-level-too-deep"),
        pytest.param(with_object(nested(100_000)), 413, "nested", id="far-too-deep"),
        pytest.param(body() + b" " * MAX_BODY, 413, "32 MiB", id="too-large"),
        pytest.param(body(operation=ABSENT), 400, "operation", id="operation-missing"),
        pytest.param(body(operation="create"), 400, "operation", id="operation-lower-case"),
        pytest.param(body(operation="PATCH"), 400, "operation", id="operation-patch"),
        pytest.param(body(operation=None), 400, "operation", id="operation-null"),
        pytest.param(body(kind=ABSENT), 400, "request.kind", id="kind-missing"),
        pytest.param(body(kind="Pod"), 400, "request.kind", id="kind-a-string"),
        pytest.param(body(kind=POD_KIND | {"group": None}), 400, "request.kind.group", id="group-null"),
        pytest.param(body(resource=ABSENT), 400, "request.resource", id="resource-missing"),
        pytest.param(body(object=POD | {"kind": "Deployment"}), 400, "request.object is not", id="kinds-differ"),
        pytest.param(body(object=POD | {"apiVersion": "apps/v1"}), 400, "request.object", id="versions-differ"),
        pytest.param(body(namespace="other"), 400, "namespace", id="namespaces-differ"),
        pytest.param(body(object=None), 400, "object is missing", id="create-without-object"),
        pytest.param(body(operation="UPDATE"), 400, "oldObject is missing", id="update-without-old-object"),
        pytest.param(body(object=[]), 400, "request.object", id="object-a-list"),
        pytest.param(body(operation="DELETE", object=None), 400, "oldObject is missing", id="delete-of-nothing"),
        pytest.param(body(operation="DELETE"), 400, "oldObject is missing", id="delete-with-the-object-only"),
        pytest.param(body(dryRun="true"), 400, "request.dryRun", id="dry-run-a-string"),
        pytest.param(body(userInfo={"extra": {"a": "b"}}), 400, "userInfo.extra", id="extra-not-lists"),
        pytest.param(body(userInfo={"groups": "a"}), 400, "userInfo.groups", id="groups-a-string"),
    ],
)
def test_uid_is_known_but_the_review_is_unacceptable(sent: bytes, code: int, message: str) -> None:
    with pytest.raises(UnacceptableError, match=message) as refused:
        decode(sent)
    assert (refused.value.uid, refused.value.api_version, refused.value.code) == (UID, "admission.k8s.io/v1", code)


def test_errors_do_not_contain_the_value() -> None:
    with pytest.raises(UnacceptableError) as refused:
        decode(body(name=["canary"], operation="canary"))
    assert "canary" not in refused.value.message


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(body(api_version="admission.k8s.io/v1beta1"), id="v1beta1"),
        pytest.param(other("response", {"allowed": True}), id="response-present"),
        pytest.param(body(dryRun=None), id="dry-run-null"),
        pytest.param(body(dryRun=ABSENT), id="dry-run-missing"),
        pytest.param(body(userInfo=ABSENT), id="user-missing"),
        pytest.param(body(userInfo={"groups": None, "extra": None}), id="groups-null"),
        pytest.param(body(userInfo={"groups": ["g"] * 10_000}), id="many-groups"),
        pytest.param(body(options={"kind": "FooOptions"}), id="unknown-options"),
        pytest.param(body(subResource="foo"), id="unknown-subresource"),
        pytest.param(body(futureMember={"a": 1}), id="unknown-members"),
        pytest.param(with_object(r'{"a":"\u0000"}'), id="nul-in-a-string"),
        pytest.param(with_object('{"a":18446744073709551616}'), id="beyond-64-bits"),
        pytest.param(with_object(nested(MAX_DEPTH - 3)), id="just-deep-enough"),
        pytest.param(with_object("{" + ",".join(f'"a{i}":{{}}' for i in range(1000)) + "}"), id="wide"),
        pytest.param(with_object("{" + ",".join(f'"k{i}":0' for i in range(200_000)) + "}"), id="many-keys"),
        pytest.param(with_object('{"a":"' + "," * 3 * 2**20 + '"}'), id="one-string-of-commas"),
        pytest.param(with_object('{"a":"' + r"{[,\"" * 2**18 + '"}'), id="one-string-of-brackets-and-quotes"),
        pytest.param(with_object('{"a":"' + r"\u003c" * 3 * 2**20 + '"}'), id="18-MiB-of-escapes"),
        pytest.param(body().replace(b'"dryRun"', b'"dryRun": true, "dryRun"'), id="a-key-twice"),
        pytest.param(with_object('{"a":[9223372036854775808,-9223372036854775809]}'), id="just-beyond-64-bits"),
        pytest.param(with_object('{"a":"\\u0007\\u202e"}'), id="escaped-control-characters"),
        pytest.param(
            body(requestKind=None, subResource=None, namespace=None, object=POD | {"metadata": {}}), id="nulls"
        ),
        pytest.param(body(userInfo=None), id="user-null"),
        pytest.param(
            body(kind=POD_KIND | {"kind": "Foo"}, object=None, operation="CONNECT"), id="connect-without-object"
        ),
        pytest.param(with_object('{"a":"' + "[" * 1000 + '"}'), id="brackets-in-a-string"),
    ],
)
def test_accepted(sent: bytes) -> None:
    assert decode(sent).uid == UID


@pytest.mark.parametrize("uid", ["a", UID, "x" * 253, "~!#$%&'()*"], ids=["short", "uuid", "long", "odd"])
def test_uid_is_kept_as_it_is(uid: str) -> None:
    assert decode(body(uid=uid)).uid == uid


@pytest.mark.parametrize("path", REVIEWS, ids=lambda path: path.stem)
def test_captured_reviews_are_accepted(path: Path) -> None:
    sent = json.loads(path.read_bytes())["request"]
    review = decode(path.read_bytes())
    assert (review.uid, review.request.operation) == (sent["uid"], sent["operation"])


def pod(name: str = "", generate_name: str = "") -> dict[str, Any]:
    metadata = {"name": name, "generateName": generate_name, "namespace": "team"}
    return POD | {"metadata": {key: value for key, value in metadata.items() if value}}


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        pytest.param(body(), ("a", "", "a"), id="named"),
        pytest.param(body(name=ABSENT, object=pod(generate_name="g-")), ("", "g-", "g-*"), id="generate-name"),
        pytest.param(body(name="g-x", object=pod("g-x", "g-")), ("g-x", "g-", "g-x"), id="name-made-from-prefix"),
        pytest.param(body(operation="DELETE", object=None, oldObject=pod("a")), ("a", "", "a"), id="delete"),
        pytest.param(
            body(operation="DELETE", name="", object=None, oldObject=pod("old")),
            ("old", "", "old"),
            id="collection",
        ),
        pytest.param(body(name=None, object=POD | {"metadata": None}), ("", "", ""), id="metadata-null"),
        pytest.param(body(name=None, object=POD | {"metadata": {"name": 5}}), ("", "", ""), id="name-a-number"),
    ],
)
def test_names(sent: bytes, expected: tuple[str, str, str]) -> None:
    request = decode(sent).request
    assert (request.name, request.generate_name, request.shown_name) == expected


def test_both_kinds_are_kept() -> None:
    sent = {"group": "", "version": "v0", "kind": "Pod"}
    found = decode(body(requestKind=sent)).request
    assert (found.kind, found.requested_kind) == (GroupVersionKind("", "v1", "Pod"), GroupVersionKind("", "v0", "Pod"))


def test_deletion_evaluates_the_stored_object() -> None:
    request = decode(body(operation="DELETE", object=None, oldObject=POD)).request
    assert [subject.field.value for subject in request.subjects] == [POD]


def test_connect(captured: Callable[[str], bytes]) -> None:
    request = decode(captured("pod-exec-connect.mutate")).request
    found = (request.operation, request.kind.kind, request.subresource, request.name, request.old_object)
    assert found == (Operation.CONNECT, "PodExecOptions", "exec", "gpu-pod", None)


@pytest.mark.parametrize(
    ("name", "kind", "subresource", "stored"),
    [
        ("nodepool-scale-update.validate", "Scale", "scale", "karpenter.sh/v1 NodePool"),
        ("pod-binding-create.mutate", "Binding", "binding", "v1 Pod"),
        ("pod-ephemeralcontainers-update.mutate", "Pod", "ephemeralcontainers", "v1 Pod"),
        ("pod-status-update.mutate", "Pod", "status", "v1 Pod"),
    ],
)
def test_subresources(captured: Callable[[str], bytes], name: str, kind: str, subresource: str, stored: str) -> None:
    request = decode(captured(name)).request
    assert (request.kind.kind, request.subresource, str(request.stored_kind)) == (kind, subresource, stored)


@pytest.mark.parametrize("resource", ["widgets", ""])
def test_of_an_unknown_resource_the_object_of_a_subresource_tells_the_kind(resource: str) -> None:
    request = decode(body(subResource="scale", resource={"group": "", "version": "v1", "resource": resource})).request
    assert (request.parent, str(request.stored_kind)) == (None, "v1 Pod")


def test_the_namespace_of_a_namespace_is_its_name() -> None:
    kind = {"group": "", "version": "v1", "kind": "Namespace"}
    namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "team"}}
    assert decode(body(kind=kind, object=namespace, name="team")).request.namespace == "team"


def test_dry_run(captured: Callable[[str], bytes]) -> None:
    assert decode(captured("scaledobject-create-dry-run.validate")).request.dry_run


def test_user_and_groups() -> None:
    request: Request = decode(body()).request
    assert (request.user, request.groups) == ("admin", ("system:masters",))
