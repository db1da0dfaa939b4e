from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpugate.policies.pods import _hidden_access
from gpugate.policies.sdk.field import Field, render
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.platform import Platform

Object = dict[str, Any]
ENFORCE, WARN = Stance.ENFORCE, Stance.WARN
METADATA: Object = {
    "name": "all",
    "labels": {"gpus": "0", "off": "void"},
    "annotations": {"a/b.c": "GPU-1", "off": "none"},
}


def pod(container: Object, **spec: Any) -> Field:
    return Field({"metadata": METADATA, "spec": {"containers": [{"name": "c", **container}], **spec}})


def found(subject: Field) -> list[tuple[str, Stance]]:
    containers = tuple(subject["spec", "containers"])
    every = (
        *_hidden_access.named(subject, containers),
        *_hidden_access.annotated(subject),
        *_hidden_access.runtime(subject),
        *_hidden_access.exclusive(subject, of_daemon_set=False),
        *_hidden_access.privileged(containers),
        *_hidden_access.general(subject, containers),
    )
    return [(render(sign.field.path), sign.at_most) for sign in every]


def variable(name: str = "NVIDIA_VISIBLE_DEVICES", **rest: Any) -> Object:
    return {"env": [{"name": name, **rest}]}


def of_field(path: str) -> Object:
    return {"valueFrom": {"fieldRef": {"fieldPath": path}}}


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ({"value": "all"}, ENFORCE),
        ({"value": "0,1"}, ENFORCE),
        ({"value": "$(DEVICES)"}, ENFORCE),
        ({"value": "none"}, None),
        ({"value": "void"}, None),
        ({"value": ""}, None),
        ({}, None),
        ({"value": ["all"]}, None),
        (of_field("metadata.name"), ENFORCE),
        (of_field("metadata.labels['gpus']"), ENFORCE),
        (of_field("metadata.annotations['a/b.c']"), ENFORCE),
        (of_field("metadata.labels['off']"), None),
        (of_field("metadata.annotations['off']"), None),
        (of_field("metadata.annotations['set-later']"), WARN),
        (of_field("metadata.namespace"), WARN),
        (of_field("status.podIP"), WARN),
        ({"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}, ENFORCE),
        ({"valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}, WARN),
        ({"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}, WARN),
        ({"valueFrom": {"fileKeyRef": {"volumeName": "v", "path": "p", "key": "k"}}}, WARN),
        ({"valueFrom": {}}, None),
    ],
    ids=str,
)
def test_a_variable_names_devices_by_its_value_or_by_what_it_refers_to(rest: Object, expected: Stance | None) -> None:
    assert [stance for _, stance in found(pod(variable(**rest)))] == ([] if expected is None else [expected])


@pytest.mark.parametrize(
    ("name", "devices"),
    [
        ("HABANA_VISIBLE_DEVICES", "Gaudi accelerators"),
        ("AMD_VISIBLE_DEVICES", "GPUs"),
        ("AWS_NEURON_VISIBLE_DEVICES", "Neuron devices"),
    ],
)
def test_other_runtimes_have_variables_of_their_own(name: str, devices: str) -> None:
    subject = pod(variable(name, value="0"))
    assert [sign.effect for sign in _hidden_access.named(subject, tuple(subject["spec", "containers"]))] == [
        f"{name} exposes {devices} to a container"
    ]


@pytest.mark.parametrize(
    "name",
    [
        "CUDA_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "NEURON_RT_VISIBLE_CORES",
        "HABANA_VISIBLE_MODULES",
        "NVIDIA_DRIVER_CAPABILITIES",
        "nvidia_visible_devices",
    ],
)
def test_a_variable_that_chooses_among_given_devices_is_no_sign(name: str) -> None:
    assert found(pod(variable(name, value="all"))) == []


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ([{"name": "CUDA_VERSION", "value": "12.4"}], True),
        ([{"name": "CUDA_VERSION", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}], True),
        ([{"name": "CUDA_VERSION", "value": "12.4"}, {"name": "NVIDIA_REQUIRE_CUDA", "value": ""}], True),
        ([{"name": "CUDA_VERSION", "value": "12.4"}, {"name": "NVIDIA_REQUIRE_CUDA", "value": "cuda>=12"}], False),
        ([{"name": "CUDA_VERSION", "value": "12.4"}, {"name": "NVIDIA_VISIBLE_DEVICES", "value": ""}], False),
        ([{"name": "CUDA_VERSION", "value": "12.4"}, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "none"}], False),
        ([{"name": "CUDA_VERSION", "value": ""}], False),
    ],
    ids=str,
)
def test_a_container_looks_like_one_of_an_old_cuda_image(env: list[Object], *, expected: bool) -> None:
    assert bool(found(pod({"env": env}))) is expected


@pytest.mark.parametrize(
    ("mount", "source", "expected"),
    [
        ("/var/run/nvidia-container-devices/all", "/dev/null", True),
        ("/var/run/nvidia-container-devices/cdi/nvidia.com/gpu/0", "/dev/null", True),
        ("var/run//nvidia-container-devices/0/", "//dev/./null", True),
        ("/a/../var/run/nvidia-container-devices/0", "/dev/null", True),
        ("/var/run/nvidia-container-devicesall", "/dev/null", True),
        ("/var/run/nvidia-container-devices", "/dev/null", False),
        ("/var/run/nvidia-container-devices/imex/0", "/dev/null", False),
        ("/run/nvidia-container-devices/all", "/dev/null", False),
        ("/var/run/nvidia-container-devices/all", "/dev/zero", False),
    ],
)
def test_a_mount_of_dev_null_names_devices_by_its_path(mount: str, source: str, *, expected: bool) -> None:
    container = {"volumeMounts": [{"name": "v", "mountPath": mount}]}
    assert bool(found(pod(container, volumes=[{"name": "v", "hostPath": {"path": source}}]))) is expected


PATHS: list[tuple[str, Stance | None]] = [
    *((path, ENFORCE) for path in ("/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-caps/nvidia-cap1", "/dev/neuron0")),
    *((path, ENFORCE) for path in ("/dev/kfd", "/dev/accel", "/dev/accel/accel0", "/dev/accel0", "/dev/hl0")),
    *((path, ENFORCE) for path in ("/dev/hl_controlD0", "/dev/char/195:0", "/run/nvidia", "/var/run/nvidia/driver")),
    *((path, ENFORCE) for path in ("/var/lib/kubelet/device-plugins", "/var/lib/kubelet/device-plugins/kubelet.sock")),
    *((path, ENFORCE) for path in ("/", "/dev", "/run", "/var", "/var/lib", "/var/run", "/var/lib/kubelet")),
    *((path, ENFORCE) for path in ("/run/containerd", "/run/containerd/containerd.sock", "/var/run/docker.sock")),
    *((path, ENFORCE) for path in ("/run/k3s", "/run/k3s/containerd/containerd.sock", "/var/run/crio/crio.sock")),
    *((path, ENFORCE) for path in ("/run/cri-dockerd.sock", "/run/dockershim.sock", "/run/podman")),
    *((path, WARN) for path in ("/dev/dri", "/dev/dri/renderD128", "/dev/char", "/etc/cdi", "/var/run/cdi")),
    *((path, None) for path in ("/dev/null", "/dev/fuse", "/dev/mqueue", "/dev/kfdx", "/dev/hlx", "/dev/nvme0n1")),
    *((path, None) for path in ("/var/log", "/run/udev", "/run/nvidia-persistenced", "/run/containerd-x", "/etc")),
    *((path, None) for path in ("/var/lib/kubelet/pod-resources", "/var/lib/kubelet/pods", "/proc", "/data/dev")),
]


@pytest.mark.parametrize(("path", "expected"), PATHS, ids=[path for path, _ in PATHS])
def test_a_path_of_the_host_gives_access(path: str, expected: Stance | None) -> None:
    volumes = [{"name": "v", "hostPath": {"path": path}}]
    where = [] if expected is None else [("spec.volumes[0].hostPath.path", expected)]
    assert found(pod({}, volumes=volumes)) == where


SLASHES = st.sampled_from(["/", "//", "/./", "///./"])


@given(path=st.sampled_from(PATHS), data=st.data())
def test_a_path_may_be_spelled_with_more_slashes_and_dots(path: tuple[str, Stance | None], data: st.DataObject) -> None:
    parts = path[0].strip("/").split("/")
    spelled = "".join(data.draw(SLASHES) + part for part in parts) + data.draw(st.sampled_from(["", "/", "/.", "//"]))
    subject = pod({}, volumes=[{"name": "v", "hostPath": {"path": spelled or "/"}}])
    assert [stance for _, stance in found(subject)] == ([] if path[1] is None else [path[1]])
    if path[1] is not None:
        assert (_hidden_access.DIRECT | _hidden_access.GENERAL).holds(subject, Platform(), "")


@pytest.mark.parametrize(
    ("mounts", "expected"),
    [
        ([{"name": "v", "mountPath": "/host/proc"}], [("spec.containers[0].volumeMounts[0].mountPath", WARN)]),
        ([{"name": "v", "mountPath": "/host/proc", "readOnly": True}], []),
        ([], []),
    ],
    ids=["writable", "read only", "not mounted"],
)
def test_the_processes_of_the_host_are_a_sign_where_they_may_be_written(
    mounts: list[Object], expected: list[tuple[str, Stance]]
) -> None:
    assert found(pod({"volumeMounts": mounts}, volumes=[{"name": "v", "hostPath": {"path": "/proc"}}])) == expected


@pytest.mark.parametrize(
    ("added", "host_pid", "expected"),
    [
        (["SYS_PTRACE"], True, [WARN]),
        (["sys_admin"], True, [WARN]),
        (["ALL"], True, [WARN]),
        (["SYS_PTRACE"], False, []),
        (["NET_ADMIN"], True, []),
        ([], True, []),
    ],
)
def test_capabilities_over_processes_of_the_host(added: list[str], *, host_pid: bool, expected: list[Stance]) -> None:
    subject = pod({"securityContext": {"capabilities": {"add": added}}}, hostPID=host_pid)
    assert [stance for _, stance in found(subject)] == expected


@pytest.mark.parametrize(
    ("name", "vendor"),
    [
        ("nvidia.com/gpu", "nvidia.com"),
        ("gpu.nvidia.com", "nvidia.com"),
        ("deviceclass.resource.kubernetes.io/mig.nvidia.com", "nvidia.com"),
        ("neuron.aws.com", "aws.amazon.com"),
        ("gpu.amd.com", "amd.com"),
        ("aws.amazon.com/neuroncore", "aws.amazon.com"),
        ("k8s.gpu.nvidia.com/claim=uid", "nvidia.com"),
        ("notnvidia.com/gpu", ""),
        ("example.com/npu", ""),
    ],
)
def test_whose_accelerators_a_name_is_of(name: str, vendor: str) -> None:
    assert _hidden_access.vendor_of(name) == vendor
