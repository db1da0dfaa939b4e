"""Files that components are given, besides certificates and kubeconfigs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import yaml

import tools

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# The namespace whose requests and responses the API server logs whole.
SIMULATED: Final = "simulated"
# The Pod of a Job with this annotation runs until it is deleted; kwok completes all others at once.
HANGS: Final = "e2e.gpugate.dev/hangs"
# How nodes become Ready and stay it, and how Pods run, complete and go.
_STAGES = ("node/fast", "node/heartbeat-with-lease", "pod/fast")


def written_audit_policy(folder: Path) -> Path:
    """Write down what the administrator changes, with what webhooks note of it, and everything in one namespace."""
    everything = {
        "level": "RequestResponse",
        "namespaces": [SIMULATED],
        "verbs": ["create", "update", "patch", "delete"],
    }
    changes = {"level": "Metadata", "users": ["admin"], "verbs": ["create", "update", "patch", "delete"]}
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [everything, changes, {"level": "None"}],
    }
    file = folder / "audit-policy.yaml"
    file.write_text(json.dumps(policy), encoding="utf-8")
    return file


def written_stages(folder: Path) -> Path:
    """Join what kwok does with nodes and Pods, from its own module.

    Raises:
        ToolsError: the module cannot be had.
    """
    source = tools.module_folder(*tools.KWOK) / "kustomize" / "stage"
    # Beside the stages are `kustomization.yaml` and folders of tests.
    files = [file for stage in _STAGES for file in sorted((source / stage).glob("*-*.yaml"))]
    joined = folder / "stages.yaml"
    joined.write_text("\n---\n".join(map(json.dumps, _stages(files))), encoding="utf-8")
    return joined


def _stages(files: list[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        stage = yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)
        if stage["metadata"]["name"] == "pod-complete":
            hangs = {"key": f'.metadata.annotations["{HANGS}"]', "operator": "DoesNotExist"}
            stage["spec"]["selector"]["matchExpressions"].append(hangs)
        yield stage
