"""Random Pods with planted secrets, and their reviews; the same for the same seed."""

from __future__ import annotations

import base64
import random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

PODS: Final = 1_000
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FORMS: Final[tuple[Callable[[random.Random], str], ...]] = (
    lambda chance: f"{chance.getrandbits(128):032x}",
    lambda chance: base64.b64encode(chance.randbytes(24)).decode(),
    lambda chance: "".join(chance.choices(_LETTERS + "0123456789", k=28)),
    lambda chance: f"{chance.getrandbits(32):08x}-{chance.getrandbits(16):04x}-{chance.getrandbits(64):016x}",
    lambda chance: "".join(chance.choices(_LETTERS, k=12)) + "!" + "".join(chance.choices(_LETTERS, k=9)),
    lambda chance: f"ghp_{''.join(chance.choices(_LETTERS, k=36))}",
    lambda chance: f"eyJ{''.join(chance.choices(_LETTERS, k=20))}.{''.join(chance.choices(_LETTERS, k=30))}.x",
)
_COMMANDS: Final = (
    ["torchrun", "--nproc-per-node=8", "train.py", "--data", "s3://bucket/data"],
    ["python3", "-m", "vllm.entrypoints.openai.api_server", "--tensor-parallel-size", "4", "--model", "org/model-70b"],
    ["sh", "-c", "export HF_HOME=/cache; exec python3 -m sglang.launch_server --tp=2 --model-path /models/llama"],
    ["sleep", "infinity"],
    ["/opt/tests/all_reduce_perf", "-b", "8", "-e", "16G"],
    ["timeout", "3600", "accelerate", "launch", "finetune_lora.py"],
    ["nginx", "-g", "daemon off;"],
)
_IMAGES: Final = ("vllm/vllm-openai:v0.11.0", "registry.example.com/trainer:1.2", "nvcr.io/nvidia/nccl-tests:24.01")


class Secrets:
    """Plants secrets, and knows them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311 -- no cryptography
        self.planted: list[str] = []

    def plant(self) -> str:
        """Return a new secret."""
        secret = self.chance.choice(_FORMS)(self.chance)
        self.planted.append(secret)
        return secret

    def pod(self, number: int) -> dict[str, Any]:
        """Return a Pod with secrets in every field in which a secret is likely."""
        chance, plant = self.chance, self.plant
        container = {
            "name": "main",
            "image": chance.choice(_IMAGES),
            "command": chance.choice(_COMMANDS),
            "args": self._arguments(),
            "env": [
                {"name": "NVIDIA_VISIBLE_DEVICES", "value": chance.choice(["all", "none", "void", ""])},
                {"name": chance.choice(["DB_PASSWORD", "HF_TOKEN", "CONFIG", "URL"]), "value": plant()},
                {"name": "DATABASE", "value": f"postgres://user:{plant()}@db.example.com/x?sslkey={plant()}"},
                {"name": "SETTINGS", "value": f'{{"token": "{plant()}", "$(JOB_COMPLETION_INDEX)": 1}}'},
                {"name": "FROM", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            ],
            "resources": {"limits": {"nvidia.com/gpu": str(chance.choice([0, 1, 4, 8]))}},
            "livenessProbe": {
                "httpGet": {"path": "/", "port": 80, "httpHeaders": [{"name": "Authorization", "value": f"Bearer {plant()}"}]},
                "exec": {"command": ["curl", "-u", f"user:{plant()}", f"http://admin:{plant()}@localhost/"]},
            },
            "volumeMounts": [{"name": "data", "mountPath": "/models"}],
        }  # fmt: skip
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"pod-{number}",
                "namespace": "ml",
                "labels": {"team": "ml", "app": chance.choice(["a", "b"])},
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": f'{{"env": [{{"value": "{plant()}"}}]}}',
                    "example.com/connection": plant(),
                    "vault.hashicorp.com/token": plant(),
                    "karpenter.sh/do-not-disrupt": chance.choice(["true", "false"]),
                },
                "managedFields": [{"manager": "kubectl", "fieldsV1": {f'k:{{"name":"{plant()}"}}': {}}}],
            },
            "spec": {
                "containers": [container],
                "initContainers": [{"name": "init", "image": "busybox", "args": self._arguments()}],
                "volumes": [
                    {"name": "data", "csi": {"driver": "x.csi", "volumeAttributes": {"accessKey": plant(), "mount": plant()}}},
                    {"name": "flex", "flexVolume": {"driver": "d", "options": {"password": plant(), "o": plant()}}},
                    {"name": "iscsi", "iscsi": {"chapAuth": plant(), "portals": [plant()]}},
                    {"name": "nfs", "nfs": {"server": plant(), "path": "/exports"}},
                ],
            },
        }  # fmt: skip

    def _arguments(self) -> list[str]:
        chance, plant = self.chance, self.plant
        options = (
            lambda: ["--token", plant()],
            lambda: [f"--token={plant()}"],
            lambda: [f"--api-key={plant()}", "--port", "8000"],
            lambda: ["--password", "gpu cluster"],
            lambda: [f"export PASSWORD='{plant()} {plant()}'; run --secret \"{plant()}\" --tp 2"],
            lambda: [f"https://user:{plant()}@example.com/path?sig={plant()}"],
            lambda: ["-H", f"Authorization: Bearer {plant()}"],
            lambda: [f'{{"password":"{plant()}","nested":{{"key":"{plant()}"}}}}'],
            lambda: [f"-----BEGIN PRIVATE KEY-----\n{plant()}\n-----END PRIVATE KEY-----"],
            lambda: [plant()],
            lambda: ["--run-id", plant(), "--epochs", "3"],
            lambda: [f"echo {plant()} | login --password-stdin && torchrun train.py"],
        )
        return [word for option in chance.sample(options, 3) for word in option()]
