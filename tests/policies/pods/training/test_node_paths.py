from __future__ import annotations

from typing import Any

import pytest

from gpugate.policies.pods._training import node_paths
from gpugate.policies.sdk.field import Field


def pod(path: str, **mount: Any) -> Field:
    container = {"name": "a", "volumeMounts": [{"name": "v", "mountPath": "/v", **mount}]}
    return Field({"spec": {"containers": [container], "volumes": [{"name": "v", "hostPath": {"path": path}}]}})


@pytest.mark.parametrize(
    ("path", "more", "paths"),
    [
        ("/mnt/data", {}, ["/mnt/data"]),
        ("/fsx", {}, ["/fsx"]),
        ("/sys/fs", {}, []),
        ("//sys/fs", {}, []),
        ("/", {}, []),
        ("/mnt/data", {"readOnly": True}, []),
        ("/mnt/data", {"name": "other"}, []),
    ],
)
def test_data_may_be_written_to_a_path_of_the_node(path: str, more: dict[str, Any], paths: list[str]) -> None:
    assert list(node_paths(pod(path, **more))) == paths
