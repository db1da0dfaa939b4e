"""Which Pods are equal but for which copy of their workload they are."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import orjson

Object = dict[str, Any]  # Any: the JSON edge

# What controllers make different in Pods that are otherwise equal. No policy can be about the values: they say which
# copy it is (Kubernetes v1.36, JobSet v0.12.0, LWS v0.10.0, training-operator v1.9.4).
_COPY: Final = frozenset(
    {
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index",
        "controller-revision-hash",
        "controller-uid",
        "jobset.sigs.k8s.io/job-global-index",
        "jobset.sigs.k8s.io/job-index",
        "jobset.sigs.k8s.io/job-key",
        "leaderworkerset.sigs.k8s.io/group-index",
        "leaderworkerset.sigs.k8s.io/group-key",
        "leaderworkerset.sigs.k8s.io/template-revision-hash",
        "leaderworkerset.sigs.k8s.io/worker-index",
        "pod-template-generation",
        "pod-template-hash",
        "statefulset.kubernetes.io/pod-name",
        "training.kubeflow.org/replica-index",
    }
)
# Which of them a Job that is not indexed does not write: that there is one tells what kind of Job it is.
_TELLING: Final = "batch.kubernetes.io/job-completion-index"
_OF_ONE_COPY: Final = frozenset({"hostname", "subdomain"})


def digest(pod: Object) -> bytes:
    """Return 16 bytes that are the same for Pods, or Pod templates, that only differ in which copy they are.

    `pod` is as `pod_as_created` returns it.
    """
    metadata, spec = pod.get("metadata"), pod.get("spec")
    metadata = metadata if isinstance(metadata, dict) else {}
    relevant = [
        _other_marks(metadata.get("labels")),
        _other_marks(metadata.get("annotations")),
        _other_spec(spec) if isinstance(spec, dict) else spec,
    ]
    return hashlib.blake2b(orjson.dumps(relevant, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _other_marks(marks: Any) -> Any:
    if not isinstance(marks, dict) or not marks:
        return {}
    relevant = {key: value for key, value in marks.items() if key not in _COPY}
    if _TELLING in marks:
        relevant[_TELLING] = ""
    return relevant


def _other_spec(spec: Object) -> Object:
    relevant = {key: value for key, value in spec.items() if key not in _OF_ONE_COPY}
    volumes = relevant.get("volumes")
    if isinstance(volumes, list):
        relevant["volumes"] = [_other_volume(volume) for volume in volumes]
    return relevant


def _other_volume(volume: Any) -> Any:
    """Leave out the name of a PersistentVolumeClaim: a StatefulSet makes one for each of its Pods."""
    if isinstance(volume, dict) and "persistentVolumeClaim" in volume:
        return {"name": volume.get("name"), "persistentVolumeClaim": {}}
    return volume
