"""A publisher of policy bundles: a folder with a policy file, own policies in Python and CEL, schemas and keys, and a registry."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

from bundled_policies import FILES
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from webhook_process import GPUGATE

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.registry import Registry

_TIMEOUT_SECONDS = 120
_POLICY_FILE = """apiVersion: gpugate.dev/v1
kind: PolicyConfig
policy_paths: [policies]
policies:
  acme/*: {mode: enforce}
"""
_DEFINITION = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trainings.example.com}
spec:
  group: example.com
  names: {kind: Training, plural: trainings}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {gpus: {type: integer, minimum: 1}}}
"""


class Publisher:
    """Runs `gpugate` as the user of a registry, in a folder whose files it pushes.

    Args:
        folder: an empty folder; it becomes the current one of the commands.
        registry: where bundles go.
        repository: the repository in it.

    Attributes:
        folder: with `policy.yaml`, `policies`, `schemas`, `key.pem`, `cosign.pub`, and of the registry its CA in `ca.crt` and
            credentials in `config.json`.
    """

    def __init__(self, folder: Path, registry: Registry, repository: str) -> None:
        self.folder = folder
        self.registry = registry
        self.name = f"{registry.host}/{repository}"
        self.policies = folder / "policies" / "acme"
        self.policies.mkdir(parents=True)
        (folder / "policy.yaml").write_text(_POLICY_FILE, encoding="utf-8")
        for name, text in FILES.items():
            (self.policies / name).write_text(text, encoding="utf-8")
        (folder / "ca.crt").write_bytes(registry.authority.read_bytes())
        write_keys(folder / "key.pem", folder / "cosign.pub")
        self.log_in(registry.login())
        (folder / "crd.yaml").write_text(_DEFINITION, encoding="utf-8")
        self.ran("schema", "add", "crd.yaml", "--schemas", "schemas")

    def log_in(self, configuration: object) -> None:
        """Write the configuration of Docker, which holds the credentials."""
        (self.folder / "config.json").write_text(json.dumps(configuration), encoding="utf-8")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command, without credentials and proxies of this machine."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "DOCKER_CONFIG": str(self.folder)}
        return subprocess.run(  # noqa: S603 -- ours
            [*GPUGATE, *arguments],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_SECONDS,
        )

    def ran(self, *arguments: str) -> str:
        """Run a command that has to succeed; returns what it printed."""
        ran = self.run(*arguments)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def push(self, tag: str, *flags: str) -> str:
        """Push the files of the folder, and return the digest."""
        files = ("--policy-file", "policy.yaml", "--schemas", "schemas", "--ca", "ca.crt")
        printed = self.ran("bundle", "push", f"{self.name}:{tag}", *files, *flags)
        reference, _, digest = printed.strip().partition("@")
        assert reference == f"{self.name}:{tag}"
        return digest

    def push_signed(self, tag: str) -> str:
        """Push them with a signature by `key.pem`, and return the digest."""
        return self.push(tag, "--sign-key", "key.pem")


def write_keys(private: Path, public: Path) -> None:
    """Write a new key pair for signatures."""
    key = ec.generate_private_key(ec.SECP256R1())
    plain = serialization.NoEncryption()
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain))
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, form))
