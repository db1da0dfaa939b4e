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


NODE_POOL = """\
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: pool-{number}
spec:
  template:
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: class-{number}}}
      requirements:
        - {{key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand]}}
        - {{key: karpenter.k8s.aws/instance-category, operator: In, values: [g]}}
        - {{key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["4"]}}
        - {{key: team, operator: In, values: [team-{number}]}}
      taints:
        - {{key: nvidia.com/gpu, value: "true", effect: NoSchedule}}
  limits: {{cpu: 1000, nvidia.com/gpu: 64}}
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: 5m
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata:
  name: class-{number}
spec:
  role: nodes
  amiSelectorTerms: [{{alias: bottlerocket@v1.49.0}}]
  subnetSelectorTerms: [{{tags: {{karpenter.sh/discovery: shop}}}}]
  securityGroupSelectorTerms: [{{tags: {{karpenter.sh/discovery: shop}}}}]
  tags: {{team: search, cost-center: cc-1234}}
"""
SCALED_OBJECT = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: app-{number}
  namespace: team-{team}
spec:
  scaleTargetRef: {{name: app-{number}}}
  minReplicaCount: 1
  maxReplicaCount: 8
  fallback: {{failureThreshold: 3, replicas: 2}}
  triggers:
    - type: prometheus
      metadata:
        serverAddress: http://prometheus.monitoring:9090
        query: sum(rate(http_requests_total{{app="app-{number}"}}[2m]))
        threshold: "100"
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: train-{number}
  namespace: team-{team}
  labels: {{team: search, cost-center: cc-1234}}
spec:
  template:
    metadata:
      labels: {{team: search, cost-center: cc-1234}}
    spec:
      restartPolicy: Never
      tolerations:
        - {{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}}
      containers:
        - name: train
          image: registry.example.com/train:1.{number}.0
          command: [python, train.py]
          resources: {{limits: {{nvidia.com/gpu: 8}}}}
"""
CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings-{number}
  namespace: team-{team}
data:
  settings.yaml: |
{lines}"""
WORKFLOW = """\
name: build {number}
on: push
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v5
      - run: make test
"""
_LINES = "".join(f"    key-{number}: value of {number}\n" for number in range(40))
_OTHERS = (SCALED_OBJECT, JOB, CONFIG_MAP, WORKFLOW)


def write_mixed_corpus(folder: Path, files: int) -> None:
    """Write files as a platform's repository has them: half of them applications, a fiftieth node pools, the others of each kind."""
    write_corpus(folder, files)
    for number in range(1, files, 2):
        shape = NODE_POOL if number % 50 == 1 else _OTHERS[number // 2 % len(_OTHERS)]
        (folder / f"{number:05}.yaml").write_text(shape.format(number=number, team=number % 17, lines=_LINES))


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
