from __future__ import annotations

from gpugate.webhook.rendering.render import ObjectOrigin, without_origins

BUILT = """apiVersion: v1
data:
  a: |
    config.kubernetes.io/origin: |
      path: not-this.yaml
kind: ConfigMap
metadata:
  annotations:
    config.kubernetes.io/origin: |
      configuredIn: ../base/kustomization.yaml
      configuredBy:
        apiVersion: builtin
        kind: ConfigMapGenerator
  name: cm-4h2mbtbbt6
---
apiVersion: apps/v1
kind: Deployment
metadata:
  annotations:
    config.kubernetes.io/origin: |
      path: ../base/deploy.yaml
    x: "y"
  name: web
spec: {}
"""
PLAIN = """apiVersion: v1
data:
  a: |
    config.kubernetes.io/origin: |
      path: not-this.yaml
kind: ConfigMap
metadata:
  name: cm-4h2mbtbbt6
---
apiVersion: apps/v1
kind: Deployment
metadata:
  annotations:
    x: "y"
  name: web
spec: {}
"""


def test_the_annotation_goes_and_what_it_says_stays() -> None:
    text, origins = without_origins(BUILT)

    assert text == PLAIN
    assert origins == (
        ObjectOrigin(1, 8, "../base/kustomization.yaml", generated=True),
        ObjectOrigin(10, 16, "../base/deploy.yaml", generated=False),
    )


def test_what_has_no_annotation_stays_as_it_is() -> None:
    assert without_origins(PLAIN) == (PLAIN, ())
