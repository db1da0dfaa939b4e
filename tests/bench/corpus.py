"""Writes manifests as a repository holds them, to measure with."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FILE = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app-{number}
  namespace: team-{team}
  labels:
    app.kubernetes.io/name: app-{number}
    app.kubernetes.io/part-of: shop
spec:
  replicas: 2
  selector:
    matchLabels:
      app.kubernetes.io/name: app-{number}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: app-{number}
        team: search
        cost-center: cc-1234
    spec:
      containers:
        - name: app
          image: registry.example.com/app:1.{number}.0
          ports:
            - name: http
              containerPort: 8080
          readinessProbe:
            httpGet: {{path: /healthz, port: http}}
          resources:
            requests: {{cpu: 100m, memory: 128Mi{gpu}}}
            limits: {{memory: 128Mi{gpu}}}
{tolerations}---
apiVersion: v1
kind: Service
metadata:
  name: app-{number}
  namespace: team-{team}
  labels:
    app.kubernetes.io/name: app-{number}
spec:
  type: ClusterIP
  selector:
    app.kubernetes.io/name: app-{number}
  ports:
    - name: http
      port: 80
      targetPort: http
      protocol: TCP
"""
TOLERATIONS = "      tolerations:\n        - {key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}\n"


def write_corpus(folder: Path, files: int) -> None:
    """Write files of a Deployment and a Service; every fifth asks for a GPU, and a quarter of these lacks tolerations."""
    for number in range(files):
        asks, lacks = number % 5 == 0, number % 20 == 0
        text = FILE.format(
            number=number,
            team=number % 17,
            gpu=', nvidia.com/gpu: "1"' if asks else "",
            tolerations=TOLERATIONS if asks and not lacks else "",
        )
        (folder / f"{number:05}.yaml").write_text(text)
