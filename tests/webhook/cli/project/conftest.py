from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  labels: {{team: a, cost-center: "1"}}
spec:
  containers:
    - name: c
      image: example.com/c@sha256:{digest}
      resources: {{limits: {{nvidia.com/gpu: 1}}}}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory: a repository with one Pod, `manifests/pod.yaml`, whose toleration is missing."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "pod.yaml").write_text(POD.format(name="a", digest="0" * 64))
    monkeypatch.chdir(tmp_path)
    return tmp_path
