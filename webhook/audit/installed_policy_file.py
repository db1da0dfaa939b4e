"""Find the policy file that is installed in a cluster: a ConfigMap of the chart in the namespace of the webhook.

A ConfigMap with the same labels in another namespace may be that of a tenant, who must not choose the policies of an
audit. The namespace is therefore that of the Service in the webhook configurations, which only cluster administrators
register; without one, it is `gpugate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from gpugate.policies.engine.json_text import read_json
from gpugate.webhook.cli.options import UsageError
from gpugate.webhook.cluster.errors import ApiError, CallError
from gpugate.webhook.cluster.policy_bundle import bundle_reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gpugate.webhook.cluster.connection import Connection

_KEY: Final = "policy.yaml"
_LABEL: Final = {"labelSelector": "app.kubernetes.io/name=gpugate"}
_USUAL: Final = "gpugate"
_REGISTRATION: Final = "/apis/admissionregistration.k8s.io/v1"
_CONFIGURATIONS: Final = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")


class InstalledFile(NamedTuple):
    """A policy file in a cluster.

    Attributes:
        source: names the ConfigMap.
        key: the key in it.
        data: the file.
    """

    source: str
    key: str
    data: bytes


class _Metadata(msgspec.Struct):
    name: str
    namespace: str


class _ConfigMap(msgspec.Struct):
    metadata: _Metadata
    data: dict[str, str] | None = None


class _ConfigMaps(msgspec.Struct):
    items: list[_ConfigMap]


class _Service(msgspec.Struct):
    namespace: str


class _ClientConfig(msgspec.Struct, rename="camel"):
    service: _Service | None = None


class _Webhook(msgspec.Struct, rename="camel"):
    client_config: _ClientConfig


class _Configuration(msgspec.Struct):
    webhooks: list[_Webhook] | None = None


class _Configurations(msgspec.Struct):
    items: list[_Configuration]


class _Template(msgspec.Struct):
    spec: dict[str, Any]  # Any: the JSON edge


class _DeploymentSpec(msgspec.Struct):
    template: _Template


class _Deployment(msgspec.Struct):
    spec: _DeploymentSpec


class _Deployments(msgspec.Struct):
    items: list[_Deployment]


_CONFIG_MAPS: Final = msgspec.json.Decoder(_ConfigMaps)
_DEPLOYMENTS: Final = msgspec.json.Decoder(_Deployments)
_REGISTERED: Final = msgspec.json.Decoder(_Configurations)


def installed_policy_file(connection: Connection, *, requested: bool) -> InstalledFile | str:
    """Return the installed policy file, or why there is none.

    Raises:
        UsageError: several are installed; or it is `requested`, and there is none or it cannot be read.
    """
    bundle = ""
    try:
        namespaces = sorted(_webhook_namespaces(connection) or {_USUAL})
        files = list(_policy_files(connection, namespaces))
        if not files:
            bundle = _bundle(connection, namespaces)
    except (CallError, msgspec.DecodeError) as error:
        if requested:
            raise UsageError(f"--with-installed: the policy file cannot be read: {error}") from None
        return "no policy file was given, and the installed one cannot be read"
    if len(files) > 1:
        names = ", ".join(file.source for file in files)
        raise UsageError(f"several policy files are installed ({names}): select one with --policy-file")
    if bundle:
        advice = f"run `gpugate bundle pull {bundle} DIRECTORY`, and set --policy-file DIRECTORY/policy.yaml"
        if requested:
            raise UsageError(f"--with-installed: the policy file is in the bundle {bundle}: {advice}")
        return f"no policy file was given, and the installed one is in a bundle ({advice})"
    if requested and not files:
        raise UsageError(
            f"--with-installed: no ConfigMap with the label {_LABEL['labelSelector']} in the namespace of the webhook "
            f"contains {_KEY}: set --policy-file"
        )
    return files[0] if files else "no policy file was given, and none is installed"


def _policy_files(connection: Connection, namespaces: Iterable[str]) -> Iterator[InstalledFile]:
    for namespace in namespaces:
        answer = connection.read(f"/api/v1/namespaces/{namespace}/configmaps", _LABEL)
        for config_map in read_json(_CONFIG_MAPS.decode, answer).items:
            metadata, data = config_map.metadata, (config_map.data or {}).get(_KEY)
            if data is not None:
                yield InstalledFile(f"ConfigMap {metadata.namespace}/{metadata.name}", _KEY, data.encode())


def _bundle(connection: Connection, namespaces: Iterable[str]) -> str:
    """Return the reference of the bundle that a webhook uses; empty if none does, or Deployments cannot be read."""
    for namespace in namespaces:
        try:
            answer = connection.read(f"/apis/apps/v1/namespaces/{namespace}/deployments", _LABEL)
        except ApiError as error:
            if error.code not in {403, 404}:
                raise
            continue
        for deployment in read_json(_DEPLOYMENTS.decode, answer).items:
            if reference := bundle_reference(deployment.spec.template.spec):
                return reference
    return ""


def _webhook_namespaces(connection: Connection) -> set[str]:
    namespaces: set[str] = set()
    for resource in _CONFIGURATIONS:
        try:
            answer = connection.read(f"{_REGISTRATION}/{resource}", _LABEL)
        except ApiError as error:
            if error.code not in {403, 404}:
                raise
            continue
        for configuration in read_json(_REGISTERED.decode, answer).items:
            services = (webhook.client_config.service for webhook in configuration.webhooks or ())
            namespaces |= {service.namespace for service in services if service is not None}
    return namespaces
