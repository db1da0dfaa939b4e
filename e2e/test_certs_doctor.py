"""`gpugate doctor` on a real API server: a healthy installation, and each of many that are broken in one place."""

from __future__ import annotations

import base64
import contextlib
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from cluster.kubeconfig import write_kubeconfig
from cluster.service_account import NAMESPACE
from doctor_installation import (
    MUTATING,
    SERVICE,
    VALIDATING,
    DoctorInstallation,
    expired_authority,
    failing,
    foreign_authority,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from cluster.api import Api
    from cluster.control_plane import ControlPlane
    from cluster.served_webhook import ServedWebhook

Break: TypeAlias = "Callable[[DoctorInstallation], object]"


@pytest.fixture(scope="module")
def serving(
    api: Api, control_plane: ControlPlane, webhook: ServedWebhook, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DoctorInstallation]:
    webhook.unregister()
    made = DoctorInstallation(api, control_plane.admin_kubeconfig, tmp_path_factory.mktemp("doctor"))
    made.put(*made.rights())
    with made.serving():
        made.process.wait_until(lambda: not made.lacks_rights(), "allowed to keep authorities")
        yield made
    made.remove(*made.configurations(), made.secret(), made.lease(), *made.rights())
    webhook.register()


@pytest.fixture
def installed(serving: DoctorInstallation) -> Iterator[DoctorInstallation]:
    serving.restore()
    yield serving
    with contextlib.suppress(AssertionError):
        serving.remove(service(), SECOND)


def test_a_healthy_installation_is_said_to_be_so_and_what_was_looked_at(installed: DoctorInstallation) -> None:
    ran = installed.doctor(*failing(), f"--url={installed.url}")

    assert (ran.returncode, ran.stderr) == (0, "")
    assert "0 errors, 0 warnings" in ran.stdout
    for part in (
        "webhook configurations gpugate",
        "every caBundle",
        f"Secret {NAMESPACE}/doctor-certificates",
        f"Lease {NAMESPACE}/gpugate",
        f"rights of ServiceAccount {NAMESPACE}/gpugate",
    ):
        assert part in ran.stdout


def test_a_healthy_installation_answers_a_probe_and_shows_a_certificate_that_is_trusted(
    installed: DoctorInstallation,
) -> None:
    def answered() -> bool:
        return installed.diagnosed("--probe").code == 0

    # The API server takes a configuration up a little after it was written.
    installed.process.wait_until(answered, "reached by the API server")
    checked = installed.diagnosed("--probe").said["checked"]

    assert {"a probe through the API server", "the serving certificate of the webhook"} <= set(checked)


def entry(configuration: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in configuration["webhooks"] if each["name"].startswith(f"{name}."))
    return found


def changed(installed: DoctorInstallation, name: str, **members: Any) -> None:
    """Give an entry of the validating configuration other members."""
    _, validating = installed.configurations()
    entry(validating, name).update(members)
    installed.put(validating)


def trusting(*certificates: bytes) -> Callable[[DoctorInstallation], None]:
    """Put other authorities into the `caBundle` of one entry, beside ours if there is an expired one among them."""

    def broken(installed: DoctorInstallation) -> None:
        _, validating = installed.configurations()
        bundle = base64.b64encode(b"".join(certificates)).decode()
        entry(validating, "pods")["clientConfig"]["caBundle"] = bundle
        installed.put(validating)

    return broken


def without_rule(installed: DoctorInstallation) -> None:
    _, validating = installed.configurations()
    pools = entry(validating, "pools")
    for rule in pools["rules"]:
        rule["resources"] = [name for name in rule["resources"] if name != "nodepools"]
    pools["rules"] = [rule for rule in pools["rules"] if rule["resources"]]
    installed.put(validating)


def escaping(installed: DoctorInstallation) -> None:
    _, validating = installed.configurations()
    pods = entry(validating, "pods")
    condition = {"name": "not-mine", "expression": "request.userInfo.username != 'mallory'"}
    changed(installed, "pods", matchConditions=[*pods["matchConditions"], condition])


def expiring_beside_ours(installed: DoctorInstallation) -> None:
    trusting(installed.authorities.bundle, expired_authority())(installed)


def to_another_path(installed: DoctorInstallation) -> None:
    changed(installed, "pods", clientConfig=entry(installed.configurations()[0], "pods")["clientConfig"])


def leaving_out(*namespaces: str) -> dict[str, Any]:
    expression = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(namespaces)}
    return {"matchExpressions": [expression]}


def service(**spec: Any) -> dict[str, Any]:
    default = {"selector": {"app": "no-such-pod"}, "ports": [{"port": 443, "targetPort": 8443}]}
    metadata = {"name": SERVICE, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {**default, **spec}}


def behind(made: dict[str, Any] | None) -> Callable[[DoctorInstallation], None]:
    """Have requests sent through a Service, which may not be there."""

    def broken(installed: DoctorInstallation) -> None:
        installed.put(*installed.configurations(by_service=True), *([made] if made else []))

    return broken


def corrupt(installed: DoctorInstallation) -> None:
    secret = installed.secret()
    secret["data"]["active.crt"] = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nAAAA\n").decode()
    installed.put(secret)


def stale(installed: DoctorInstallation) -> None:
    lease = installed.lease()
    lease["spec"]["renewTime"] = "2026-01-01T00:00:00.000000Z"
    installed.put(lease)


SECOND: dict[str, Any] = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": VALIDATING,
    "metadata": {"name": "gpugate-old", "labels": {"app.kubernetes.io/name": "gpugate"}},
    "webhooks": [],
}

# How to break it, every error that is then told, and words of what to do about the first.
BROKEN: dict[str, tuple[Break, str, str]] = {
    "mutating configuration deleted": (
        lambda i: i.remove(i.configurations()[0]),
        "missing",
        "gpugate registration",
    ),
    "caBundle wiped": (trusting(), "ca-bundle-empty", "the leader repairs it within a minute"),
    "caBundle of somebody else in one entry": (
        trusting(foreign_authority()),
        "ca-bundle-foreign ca-bundle-incomplete",
        "the leader repairs it within a minute",
    ),
    "expired authority in one caBundle": (expiring_beside_ours, "expired ca-bundle-foreign", "log of the leader"),
    "namespace left out": (
        lambda i: changed(i, "pods", namespaceSelector=leaving_out(NAMESPACE, "kube-system", "mallory")),
        "namespace-selector not-excluded",
        "excluded_namespaces",
    ),
    "no namespace left out": (lambda i: changed(i, "pods", namespaceSelector={}), "not-excluded", "helm upgrade"),
    "objects left out by a label": (
        lambda i: changed(i, "pods", objectSelector={"matchLabels": {"judged": "please"}}),
        "object-selector",
        "helm upgrade",
    ),
    "rule removed": (without_rule, "not-sent", "helm upgrade"),
    "condition that lets somebody escape": (escaping, "match-conditions", "helm upgrade"),
    "failure policy flipped": (
        lambda i: changed(i, "pods", failurePolicy="Ignore"),
        "failure-policy",
        "failurePolicy: Fail",
    ),
    "path of the other phase": (to_another_path, "path", "helm upgrade"),
    "whatever there is is sent": (
        lambda i: changed(
            i,
            "pods",
            rules=[{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"], "operations": ["*"], "scope": "*"}],
        ),
        "too-wide not-sent",
        "helm upgrade",
    ),
    "Service deleted": (behind(None), "service-missing", "--service"),
    "Service without Pods": (behind(service()), "no-pods", "kubectl -n gpugate-system get pods -l app=no-such-pod"),
    "Service without the port": (
        behind(service(ports=[{"port": 8443}])),
        "service-port no-pods",
        "kubectl -n gpugate-system edit service doctor",
    ),
    "Secret corrupt": (corrupt, "secret-corrupt", "kubectl -n gpugate-system delete secret doctor-certificates"),
    "Secret deleted": (lambda i: i.remove(i.secret()), "secret-missing", "kubectl -n gpugate-system logs"),
    "Lease not renewed": (stale, "no-leader", "kubectl -n gpugate-system get pods"),
    "second installation": (
        lambda i: i.put(SECOND),
        "several-installations",
        f"kubectl delete {VALIDATING} gpugate-old",
    ),
}


@pytest.mark.parametrize(("broken", "codes", "remedy"), BROKEN.values(), ids=BROKEN)
def test_a_broken_installation_is_told_with_what_to_do(
    installed: DoctorInstallation, broken: Break, codes: str, remedy: str
) -> None:
    broken(installed)

    found = installed.diagnosed(*failing())

    first, *_ = codes.split()
    remedies = [each["fix"] for each in found.said["problems"] if each["code"] == first]
    assert (found.code, found.codes()) == (1, set(codes.split()))
    assert remedy in remedies[0]


def test_a_certificate_for_another_name_is_told_as_the_api_server_sees_it(installed: DoctorInstallation) -> None:
    try:
        installed.show_certificate_for("gpugate.example")

        def seen() -> bool:
            return "refused" in installed.diagnosed("--probe").codes()

        # The server takes up new files a little later; the API server does not notice while its connections last.
        installed.process.wait_until(seen, "found out")
        found = installed.diagnosed("--probe")
    finally:
        installed.show_certificate_for("127.0.0.1")

    said = " ".join(each["message"] for each in found.said["problems"])
    assert found.code == 1
    assert "127.0.0.1" in said


def test_a_service_account_that_may_not_keep_authorities_is_told(installed: DoctorInstallation) -> None:
    _, binding = installed.rights()
    try:
        installed.remove(binding)
        # The authorizer hears of it a little later.
        installed.process.wait_until(installed.lacks_rights, "without rights")
        said = [each for each in installed.diagnosed().said["problems"] if each["code"] == "right-missing"]
    finally:
        installed.put(binding)
        installed.process.wait_until(lambda: not installed.lacks_rights(), "allowed to keep authorities")

    secrets = {each["message"] for each in said if "secrets" in each["message"]}
    assert secrets == {
        f"may not create secrets in {NAMESPACE}",
        f"may not get, watch, update secrets doctor-certificates in {NAMESPACE}",
    }


def test_credentials_that_may_read_nothing_find_nothing_wrong_and_nothing_fine(
    installed: DoctorInstallation, control_plane: ControlPlane, api: Api, tmp_path: Path
) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": NAMESPACE}}
    request = {**account, "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = api.create_subresource(account, "token", request).body["status"]["token"]
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", control_plane.url, control_plane.ca_file, token)

    ran = installed.doctor(kubeconfig=kubeconfig)

    assert ran.returncode == 4
    assert f"Secret {NAMESPACE}/doctor-certificates: these credentials may not read it" in ran.stdout
    assert f"{MUTATING} gpugate: these credentials may not read it" in ran.stdout
    assert "0 errors" in ran.stdout
