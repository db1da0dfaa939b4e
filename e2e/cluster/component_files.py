"""Files that components are given, besides certificates and kubeconfigs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import tools

if TYPE_CHECKING:
    from pathlib import Path

# How nodes become Ready and stay it, and how Pods run, complete and go.
_STAGES = ("node/fast", "node/heartbeat-with-lease", "pod/fast")


def written_audit_policy(folder: Path) -> Path:
    """Write down what the administrator changes, with what webhooks note of it."""
    changes = {"level": "Metadata", "users": ["admin"], "verbs": ["create", "update", "patch", "delete"]}
    policy = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [changes, {"level": "None"}],
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
    joined.write_text("\n---\n".join(file.read_text(encoding="utf-8") for file in files), encoding="utf-8")
    return joined
