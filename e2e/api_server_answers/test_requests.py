"""What the API server sends, and what it fills into a configuration."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from stub_webhook.registration import config_map, configuration

if TYPE_CHECKING:
    from cluster.api import Api
    from stub_webhook.registration import Registrar
    from stub_webhook.server import Stub


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("failurePolicy", "Fail"),
        ("matchPolicy", "Equivalent"),
        ("timeoutSeconds", 10),
        ("reinvocationPolicy", "Never"),
        ("namespaceSelector", {}),
        ("objectSelector", {}),
    ],
)
def test_defaults_of_a_webhook(api: Api, registrar: Registrar, member: str, value: object) -> None:
    hook = {"name": "a.b.c", **registrar.hook()}
    for given in ("timeoutSeconds", "namespaceSelector"):
        del hook[given]
    stored = api.create(configuration("mutating", "defaults.e2e.gpugate.dev", [hook]), dry_run=True)
    assert stored.body["webhooks"][0][member] == value


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"admissionReviewVersions": ["v2"]}, "must include at least one of v1, v1beta1"),
        ({"sideEffects": "Some"}, 'supported values: "None", "NoneOnDryRun"'),
        ({"sideEffects": None}, "sideEffects: Required value"),
        ({"timeoutSeconds": 31}, "must be between 1 and 30 seconds"),
    ],
    ids=["version", "side-effects", "no-side-effects", "timeout"],
)
def test_what_a_configuration_may_not_say(
    api: Api, registrar: Registrar, members: dict[str, object], message: str
) -> None:
    hook = {key: value for key, value in registrar.hook(name="a.b.c", **members).items() if value is not None}
    answer = api.create(configuration("validating", "wrong.e2e.gpugate.dev", [hook]), dry_run=True)
    assert answer.code == 422
    assert message in answer.message


def test_the_timeout_is_in_the_url(stub: Stub, registrar: Registrar) -> None:
    with registrar.registered("validating", registrar.hook(timeoutSeconds=7)):
        registrar.try_create()
    assert stub.calls[0].query == "timeout=7s"


@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, */*"),
        ("Accept-Encoding", "gzip"),
        ("User-Agent", "kube-apiserver-admission"),
    ],
)
def test_headers(stub: Stub, registrar: Registrar, header: str, value: str) -> None:
    with registrar.registered("validating", registrar.hook()):
        registrar.try_create()
    assert stub.calls[0].headers[header] == value


def test_the_body_has_a_length(stub: Stub, registrar: Registrar) -> None:
    with registrar.registered("validating", registrar.hook()):
        registrar.try_create()
    assert int(stub.calls[0].headers["Content-Length"]) == len(stub.calls[0].body)


def test_the_uid_is_among_the_first_bytes(stub: Stub, registrar: Registrar) -> None:
    with registrar.registered("validating", registrar.hook()):
        registrar.try_create()
    assert stub.calls[0].request["uid"].encode() in stub.calls[0].body[:512]


def test_each_webhook_gets_a_uid_of_its_own(stub: Stub, registrar: Registrar) -> None:
    with registrar.registered("validating", registrar.hook("/one"), registrar.hook("/two")):
        registrar.try_create()
    assert len({call.request["uid"] for call in stub.calls}) == 2


def test_there_is_no_name_yet_where_it_will_be_generated(stub: Stub, registrar: Registrar) -> None:
    with registrar.registered("mutating", registrar.hook()), registrar.registered("validating", registrar.hook("/v")):
        registrar.try_create(generateName="made-")
    assert "name" not in stub.asked("/")[0].request
    assert stub.asked("/v")[0].request["name"].startswith("made-")


def test_signs_that_html_knows_take_six_bytes(stub: Stub, registrar: Registrar) -> None:
    signs = 100_000
    with registrar.registered("validating", registrar.hook()):
        registrar.api.create(config_map(registrar.namespace) | {"data": {"a": "<" * signs}}, dry_run=True)
    assert len(stub.calls[0].body) > 6 * signs
    assert json.loads(stub.calls[0].body)["request"]["object"]["data"]["a"] == "<" * signs


def test_a_request_of_more_than_three_mebibytes_is_refused(stub: Stub, registrar: Registrar) -> None:
    with registrar.registered("validating", registrar.hook()):
        large = config_map(registrar.namespace) | {"data": {"a": "x" * (3 << 20)}}
        assert registrar.api.create(large, dry_run=True).code == 413
    assert not stub.calls
