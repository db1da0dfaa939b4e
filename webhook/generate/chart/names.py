"""What the objects are called, and other texts that stand in several of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate import __version__
from gpugate.policies.engine.config import API_VERSION, KIND
from gpugate.policies.sdk.concerns import Listed
from gpugate.webhook.generate.chart.terms import (
    ABSENT,
    Each,
    If,
    Named,
    Node,
    Release,
    Value,
    Variable,
    call,
    either,
    no,
    same,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

APP: Final = "gpugate"
NAMESPACE: Final = Release("Namespace")
FULL_NAME: Final = Named("fullname")
SERVICE_ACCOUNT: Final = Named("serviceAccountName")
IMAGE: Final = Named("image")
POLICY_FILE: Final = Named("policyFile")
# The Secret with the authorities, which the webhook itself keeps.
AUTHORITIES: Final = text(FULL_NAME, "-certificates")
# The Secret with the certificate that somebody else keeps.
TLS_SECRET: Final = If(
    same(Value("certificates.mode"), "provided"), Value("certificates.secretName"), text(FULL_NAME, "-tls")
)

IS_SELF: Final = same(Value("certificates.mode"), "self")
IS_CERT_MANAGER: Final = same(Value("certificates.mode"), "certManager")
IS_PROVIDED: Final = same(Value("certificates.mode"), "provided")
# The ConfigMap that the chart makes for the authorities of client certificates, and the one that is mounted.
OWN_CLIENT_CA: Final = text(FULL_NAME, "-client-ca")
CLIENT_CA: Final = If(
    Value("clientAuthentication.caBundle"), OWN_CLIENT_CA, Value("clientAuthentication.configMapName")
)
# Whether the API server must show a certificate.
HAS_CLIENT_CA: Final = either(Value("clientAuthentication.caBundle"), Value("clientAuthentication.configMapName"))
# Where nothing is judged, but for the namespace of the release.
EXCLUDED_NAMESPACES: Final = call("dig", "excluded_namespaces", [], Value("policy"))
# Of those that are to be judged alone, the ones that are not excluded.
JUDGED_NAMESPACES: Final = Named("judgedNamespaces")
# How many Pods there are at least.
REPLICAS: Final = If(Value("autoscaling.enabled"), Value("autoscaling.minReplicas"), Value("replicaCount"))

# A name from which others can be made without one becoming longer than 63 characters.
_LONGEST: Final = 40


def _full_name() -> Node:
    # Releases may have dots in their names and begin with a digit, Services may not (labels of RFC 1035).
    name = call("replace", ".", "-", Release("Name"))
    alone = call("contains", APP, name)
    made = If(call("regexMatch", "^[0-9]", name), text(f"{APP}-", name), If(alone, name, text(name, f"-{APP}")))
    chosen = If(Value("fullnameOverride"), Value("fullnameOverride"), made)
    return call("trimAll", "-", call("trunc", _LONGEST, chosen))


def _service_account() -> Node:
    made = If(Value("serviceAccount.create"), FULL_NAME, "default")
    return If(Value("serviceAccount.name"), Value("serviceAccount.name"), made)


def _image() -> Node:
    digest = Value("image.digest")
    return text(Value("image.repository"), If(digest, text("@", digest), text(":", Value("image.tag"))))


def _policy_file() -> Node:
    # `mergeOverwrite` would lose what is empty or false, such as `mode: off`.
    versioned = call("set", call("deepCopy", Value("policy")), "apiVersion", API_VERSION)
    return call("toPrettyJson", call("set", versioned, "kind", KIND))


def _judged_namespaces() -> Node:
    name = Variable("name")
    excluded = call("has", name, call("append", EXCLUDED_NAMESPACES, NAMESPACE))
    return text(Each(("name",), Value("webhooks.onlyNamespaces"), If(no(excluded), text(name, " "))))


def own(like: Listed) -> Node:
    """Return what a platform adds to a list of names, as in `policies/sdk/concerns.py`; empty where it adds nothing."""
    return Named("ownTaints" if like is Listed.GPU_TAINTS else "ownResources")


def _own_taints() -> Node:
    key = call("get", Variable("taint"), "key")
    taints = Each(("taint",), Variable("taints"), text("|", _pattern(key)))
    return text(Each(("name", "taints"), _platform("taints", {}), taints))


def _own_resources() -> Node:
    return text(
        Each(("name",), _platform("accelerators", "resources", []), text("|", _pattern(Variable("name")))),
        Each(
            ("class",),
            _platform("accelerators", "device_classes", []),
            text("|", r"deviceclass\\.resource\\.kubernetes\\.io/", _pattern(Variable("class"))),
        ),
    )


def _platform(*path: Node) -> Node:
    return call("dig", "platform", *path, Value("policy"))


def _pattern(name: Node) -> Node:
    """Return a pattern as a regular expression in quotes; the schema lets no other character pass that means something."""
    return call("replace", "*", ".*", call("replace", ".", r"\\.", name))


NAMED: Final[Mapping[str, Node]] = {
    "fullname": _full_name(),
    "serviceAccountName": _service_account(),
    "image": _image(),
    "policyFile": _policy_file(),
    "judgedNamespaces": _judged_namespaces(),
    "ownTaints": _own_taints(),
    "ownResources": _own_resources(),
}


def metadata(name: Node = FULL_NAME, *, namespaced: bool = True, annotations: Node = ABSENT) -> dict[str, Node]:
    """Return the metadata of an object."""
    described: dict[str, Node] = {"name": name}
    if namespaced:
        described["namespace"] = NAMESPACE
    described["labels"] = {**labels(), "app.kubernetes.io/version": __version__}
    if annotations is not ABSENT:
        described["annotations"] = annotations
    return described


def labelled(more: str, name: Node) -> dict[str, Node]:
    """Return the metadata of an object that has more labels, from a value."""
    made = metadata(name)
    return {**made, "labels": call("mergeOverwrite", {}, Value(more), made["labels"])}


def labels() -> dict[str, Node]:
    """Return what tells the objects of this release from all others."""
    return {"app.kubernetes.io/name": APP, "app.kubernetes.io/instance": Release("Name")}


def selector(component: str = "webhook") -> dict[str, Node]:
    """Return what tells the Pods of a part apart."""
    return {**labels(), "app.kubernetes.io/component": component}
