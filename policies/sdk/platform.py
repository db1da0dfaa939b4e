"""What holds for the whole platform and is shared by many policies; a section of the configuration."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from gpugate.policies.data import accelerators
from gpugate.policies.sdk import formats

WorkloadClass: TypeAlias = Literal["training", "inference", "batch", "interactive", "system"]


class Taint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A taint by key and value; the effect is NoSchedule.

    Attributes:
        key: such as nvidia.com/gpu.
        value: what it is set to.
    """

    key: str
    value: str = "true"


class Accelerators(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Resources and device classes that count as accelerators beside the known ones; `*` stands for anything.

    Attributes:
        resources: extended resources, such as example.com/npu. That of a known DeviceClass of accelerators
            (`extendedResourceName`) counts in files and audits without being named here. At admission it has to be named,
            because the webhook is registered for Pods by the names of their resources.
        device_classes: DeviceClasses of DRA.
    """

    resources: tuple[str, ...] = ()
    device_classes: tuple[str, ...] = ()


# The key of the configuration that sets them.
CLASSES_KEY: Final = "platform.workload_classes"


class WorkloadClasses(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a workload's class is read from labels, node selectors and namespace names, where no framework tells it.

    Attributes:
        labels: key -> value -> class, of labels of Pods and of node pools.
        node_selectors: key -> value -> class, of what Pods select their nodes by.
        namespaces: name or pattern -> class.
    """

    labels: dict[str, dict[str, WorkloadClass]] = msgspec.field(
        default_factory=lambda: {"workload": {"training": "training", "inference": "inference"}},
    )
    node_selectors: dict[str, dict[str, WorkloadClass]] = msgspec.field(
        default_factory=lambda: {
            "node-type": {"gpu-training": "training", "gpu-inference": "inference", "gpu-spot": "inference"},
        },
    )
    namespaces: dict[str, WorkloadClass] = msgspec.field(
        default_factory=lambda: {"ml-training*": "training", "ml-serving*": "inference", "inference*": "inference"},
    )


_SHIPPED_CLASSES: Final = WorkloadClasses()


class Platform(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """Taints, accelerators and workload classes of this platform.

    Attributes:
        taints: resource or device class (`*` stands for anything) -> the taints its nodes carry: a node pool needs one
            of them, a Pod tolerates all of them. It adds to the known ones and wins over them; a name beats a pattern,
            and of patterns the first that fits decides.
        accelerators: what counts as an accelerator beside what is known.
        workload_classes: how the class of a workload is read; null: by the labels and names that gpugate ships with.
        karpenter_users: the users as which Karpenter sends requests, by name or pattern. NodeClaims and Machines that
            others create are evaluated, whatever they say of their owner. EKS keeps names that begin with `eks:` for its
            own controllers, such as those of Auto Mode.
        extended_resource_toleration: whether the API server runs the ExtendedResourceToleration plugin, as EKS and GKE do.
            It adds the toleration of a taint that has the name of the resource, so gpugate does not call that one needed.
        ec2: whether the nodes are EC2 instances. Where null, they are when a NodePool refers to a node class of EC2 or of EKS
            Auto Mode.
    """

    taints: dict[str, tuple[Taint, ...]] = {}
    accelerators: Accelerators = Accelerators()
    workload_classes: WorkloadClasses | None = None
    karpenter_users: tuple[str, ...] = ("system:serviceaccount:*:karpenter", "eks:*")
    extended_resource_toleration: bool = False
    ec2: bool | None = None

    @property
    def classes(self) -> WorkloadClasses:
        """How the class of a workload is read, by what is configured or shipped."""
        return self.workload_classes or _SHIPPED_CLASSES

    def is_accelerator(self, resource: str) -> bool:
        """Tell whether an extended resource is an accelerator."""
        if "/" not in resource:
            return False
        implicit = resource.removeprefix(accelerators.IMPLICIT_CLASS_PREFIX)
        if implicit != resource:
            return self.is_accelerator_class(implicit)
        return any(formats.matches(p, resource) for p in (*accelerators.RESOURCES, *self.accelerators.resources))

    def is_accelerator_class(self, device_class: str) -> bool:
        """Tell whether a DRA device class hands out accelerators."""
        known = (*accelerators.DEVICE_CLASSES, *self.accelerators.device_classes)
        return any(formats.matches(p, device_class) for p in known)

    def taints_of(self, name: str) -> tuple[Taint, ...]:
        """Return the taints on nodes that offer a resource or device class; none where nothing is known."""
        configured = self.configured_taints_of(name)
        if configured is not None:
            return configured
        name = name.removeprefix(accelerators.IMPLICIT_CLASS_PREFIX)
        for pattern, key in accelerators.TAINT_KEYS.items():
            if formats.matches(pattern, name):
                return (Taint(key=key),)
        return ()

    def configured_taints_of(self, name: str) -> tuple[Taint, ...] | None:
        """Return the same where the configuration names the resource or device class; None where it does not."""
        name = name.removeprefix(accelerators.IMPLICIT_CLASS_PREFIX)
        if name in self.taints:
            return self.taints[name]
        return next((taints for pattern, taints in self.taints.items() if formats.matches(pattern, name)), None)


Version: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[0-9]+\.[0-9]+$")]


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The versions that policies assume, as `major.minor`; the newest known where none is given.

    Attributes:
        kubernetes: of the API server.
        karpenter: of Karpenter and of its provider.
        keda: of KEDA.
    """

    kubernetes: Version = "1.36"
    karpenter: Version = "1.14"
    keda: Version = "2.20"


def at_least(version: str, minimum: str) -> bool:
    """Compare two versions of the form `major.minor`."""
    return tuple(map(int, version.split("."))) >= tuple(map(int, minimum.split(".")))
