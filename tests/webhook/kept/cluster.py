"""What a webhook keeps in a cluster, on the fake API server: Namespace, Secret, Lease and both webhook configurations."""

from __future__ import annotations

import base64
import copy
import json
from typing import TYPE_CHECKING, Any, Final

from cluster.fake_api_server import FakeApiServer

from gpugate.certs import authorities as authority_secret
from gpugate.policies.catalog import CATALOG
from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.registration.objects import Server, webhook_configurations

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cluster.fake_api_store import Json, Store

    from gpugate.certs.authorities import Authorities

NAMESPACE: Final = "gpugate"
SECRET: Final = "gpugate-certificates"  # noqa: S105 -- the name of an object
# What API servers ask for.
SERVER_NAME: Final = "gpugate.gpugate.svc"
SECRETS: Final = ("", "secrets")
LEASES: Final = ("coordination.k8s.io", "leases")
_REGISTRATION: Final = "admissionregistration.k8s.io"
MUTATING: Final = (_REGISTRATION, "mutatingwebhookconfigurations")
VALIDATING: Final = (_REGISTRATION, "validatingwebhookconfigurations")


class KeptCluster:
    """Both configurations are there from the beginning, and trust nobody."""

    def __init__(self, store: Store | None = None) -> None:
        self.api = api = FakeApiServer()
        api.store = store or api.store
        api.serve("", ("v1",), "Secret", "secrets")
        api.serve("", ("v1",), "Namespace", "namespaces", namespaced=False)
        api.serve(LEASES[0], ("v1",), "Lease", "leases")
        for kind, (group, plural) in (("Mutating", MUTATING), ("Validating", VALIDATING)):
            api.serve(group, ("v1",), f"{kind}WebhookConfiguration", plural, namespaced=False)
        self.store = api.store
        self.store.put(("", "namespaces"), {"metadata": {"name": NAMESPACE}})
        self.register()

    def register(self) -> None:
        """Put the configurations there as a release brings them: with empty bundles."""
        for plural, made in zip((MUTATING, VALIDATING), _configurations(), strict=True):
            self.store.put(plural, made)

    def bundles(self) -> list[bytes]:
        """Return the bundle of every entry of both configurations."""
        hooks = [
            hook for plural in (MUTATING, VALIDATING) for hook in self.store.get(plural, "", "gpugate")["webhooks"]
        ]
        return [base64.b64decode(hook["clientConfig"].get("caBundle", "")) for hook in hooks]

    def set_bundle(self, bundle: bytes, plural: tuple[str, str] = VALIDATING) -> None:
        """Give one configuration another bundle, as somebody else might."""
        changed = copy.deepcopy(self.store.get(plural, "", "gpugate"))
        for hook in changed["webhooks"]:
            hook["clientConfig"]["caBundle"] = base64.b64encode(bundle).decode()
        self.store.put(plural, changed)

    def authorities(self) -> Authorities:
        """Return what the Secret holds."""
        return authority_secret.decode(self.secret())

    def secret(self) -> dict[str, bytes]:
        """Return the content of the Secret; a StatusError if there is none."""
        return self.decoded(self.store.get(SECRETS, NAMESPACE, SECRET))

    @staticmethod
    def decoded(secret: Json) -> dict[str, bytes]:
        """Return the content of a Secret as it is stored."""
        return {key: base64.b64decode(value) for key, value in secret["data"].items()}

    def promotions(self) -> int:
        """Return how often another authority began to sign."""
        states = [json.loads(self.decoded(secret)["state.json"]) for secret in self.history(SECRETS)]
        return len({state["promotedAt"] for state in states}) - 1

    def delete_secret(self) -> None:
        self.store.delete(SECRETS, NAMESPACE, SECRET)

    def ask_to_rotate(self, value: str) -> None:
        """Annotate the Secret; each new value is a new request."""
        held = copy.deepcopy(self.store.get(SECRETS, NAMESPACE, SECRET))
        held["metadata"].setdefault("annotations", {})["gpugate.dev/rotate"] = value
        self.store.put(SECRETS, held)

    def leader(self) -> str:
        """Return who holds the Lease; empty for nobody."""
        leases = self.store.all(LEASES, NAMESPACE)
        return str(leases[0]["spec"].get("holderIdentity") or "") if leases else ""

    def release(self) -> None:
        """Take the Lease from who holds it, as if it had been released."""
        held = copy.deepcopy(self.store.all(LEASES, NAMESPACE)[0])
        held["spec"]["holderIdentity"] = ""
        self.store.put(LEASES, held)

    def history(self, plural: tuple[str, str]) -> list[Json]:
        """Return every state in which an object of a resource ever was."""
        with self.store.changed:
            return [change.object for change in self.store.history if change.plural == plural]

    def flags(self, folder: Path, *more: str) -> Sequence[str]:
        """Return the flags by which a server keeps its certificates here."""
        kubeconfig = self.api.kubeconfig(folder / "kubeconfig")
        return ("--kubeconfig", str(kubeconfig), "--certificate-secret", SECRET, "--namespace", NAMESPACE, *more)


def _configurations() -> Sequence[dict[str, Any]]:
    return webhook_configurations(bind(CATALOG, PolicyConfig()), Server(b"", NAMESPACE))
