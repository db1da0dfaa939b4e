"""Properties of the platform that many policies read; a section of the configuration."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import msgspec

from gpugate.policies.data import accelerators
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.catalogue import Catalogue, index

if TYPE_CHECKING:
    from gpugate.policies.data.instance_types import InstanceTypes

WorkloadClass: TypeAlias = Literal["training", "inference", "batch", "interactive", "system"]


class Taint(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A taint by key and value; the effect is NoSchedule.

    Attributes:
        key: such as nvidia.com/gpu.
        value: the value of the taint.
    """

    key: str
    value: str = "true"


class Accelerators(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Further resources and device classes that count as accelerators; `*` stands for any text.

    Attributes:
        resources: extended resources, such as example.com/npu. The `extendedResourceName` of a known DeviceClass also counts
            in files and audits. For admission, name it here, because the webhook configurations select Pods by the names of
            their resources.
        device_classes: DeviceClasses of DRA.
    """

    resources: tuple[str, ...] = ()
    device_classes: tuple[str, ...] = ()


# The key of the configuration that sets the workload classes.
CLASSES_KEY: Final = "platform.workload_classes"


class WorkloadClasses(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How the class of a workload follows from labels, node selectors and namespaces, if its framework does not define it.

    Attributes:
        labels: the class, by key and value of a label of Pods and node pools.
        node_selectors: the class, by key and value of a node selector of Pods.
        namespaces: the class, by name or pattern of a namespace.
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


Day: TypeAlias = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: Final[tuple[Day, ...]] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_Time: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^(([01][0-9]|2[0-3]):[0-5][0-9]|24:00)$")]


class WorkingHours(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """When the Pods of some namespaces are expected to work, such as notebooks that are used by day.

    Attributes:
        namespaces: names or patterns of namespaces.
        days: the days of the week.
        start: the begin of each day's working hours, such as 08:00.
        end: their end, later on the same day, such as 18:00; 24:00 is midnight.
        time_zone: the time zone of the hours, such as Europe/Berlin.
    """

    namespaces: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]
    days: Annotated[tuple[Day, ...], msgspec.Meta(min_length=1)] = DAYS[:5]
    start: _Time = "08:00"
    end: _Time = "18:00"
    time_zone: str = "UTC"


class Currency(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The currency in which reports show amounts; prices are in US dollars.

    Attributes:
        symbol: the symbol before an amount, such as €.
        per_usd: the amount of this currency for one US dollar.
    """

    symbol: Annotated[str, msgspec.Meta(min_length=1, max_length=8)]
    per_usd: Annotated[float, msgspec.Meta(gt=0, le=1_000_000)]


CLUSTER_NAME: Final = r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?$"
"""The names of clusters and regions. They become parts of paths and URLs; those of EKS have at most 100 characters."""
LABEL_KEY: Final = r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,98}[A-Za-z0-9])?$"
LABEL_VALUE: Final = r"^([A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?)?$"
MOST_LABELS: Final = 32
_Name: TypeAlias = Annotated[str, msgspec.Meta(pattern=CLUSTER_NAME)]
_Value: TypeAlias = Annotated[str, msgspec.Meta(pattern=LABEL_VALUE)]


class ClusterIdentity(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The cluster of this policy file, by which reports of many clusters tell it from the others.

    Attributes:
        name: the name, which must be unique among the clusters; null for the UID of the namespace `kube-system`.
        region: the region, such as eu-west-1.
        labels: labels of the cluster, such as `env: prod`; at most 32.
    """

    name: _Name | None = None
    region: _Name | None = None
    labels: Annotated[dict[str, _Value], msgspec.Meta(max_length=MOST_LABELS)] = {}

    def __post_init__(self) -> None:
        # In a pattern of JSON schema, `$` also matches before a final newline.
        for key, text, pattern in (
            ("name", self.name, CLUSTER_NAME),
            ("region", self.region, CLUSTER_NAME),
            *(("labels", label, LABEL_KEY) for label in self.labels),
            *(("labels", value, LABEL_VALUE) for value in self.labels.values()),
        ):
            if text is not None and not _is_whole(pattern, text):
                raise ValueError(f"`{key}`: {text!r} is invalid: write at most 100 letters, digits and inner . _ -")


def _is_whole(pattern: str, text: str) -> bool:
    """Tell whether a whole text matches a pattern, and does not end with a newline."""
    return re.fullmatch(pattern, text) is not None and not text.endswith("\n")


class Platform(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, dict=True):
    """Taints, accelerators and workload classes of this platform.

    Attributes:
        taints: the taints of nodes, by resource or device class; `*` stands for any text. A node pool needs one of them, and
            a Pod tolerates all of them. An entry overrides the taints that gpugate knows. A name takes precedence over a
            pattern; if several patterns match, the first one applies.
        accelerators: further resources and device classes that count as accelerators.
        workload_classes: how the class of a workload is determined; null for the labels and names that gpugate ships with.
        karpenter_users: the users of Karpenter's controllers, as names or patterns. NodeClaims and Machines of other users
            are evaluated, whatever owner they name; those of ServiceAccounts only if they do not look like Karpenter's. EKS
            reserves names that begin with `eks:` for its own controllers, such as those of Auto Mode.
        extended_resource_toleration: whether the API server runs the ExtendedResourceToleration plugin, as EKS and GKE do.
            The plugin adds the toleration for a taint with the name of the resource, so gpugate does not require it.
        ec2: whether the nodes are EC2 instances. If null, they are if a NodePool refers to a node class of EC2 or EKS Auto
            Mode.
        catalogue: instance types of nodes that are not EC2 instances.
        currency: the currency of reports; null for US dollars.
        working_hours: when namespaces work. The audit judges the use of their GPUs within these hours.
        cluster: the cluster, for reports and metrics of many clusters; null if it has no name and no labels.
    """

    taints: dict[str, tuple[Taint, ...]] = {}
    accelerators: Accelerators = Accelerators()
    workload_classes: WorkloadClasses | None = None
    karpenter_users: tuple[str, ...] = ("system:serviceaccount:*:karpenter", "eks:*")
    extended_resource_toleration: bool = False
    ec2: bool | None = None
    catalogue: Catalogue = Catalogue()
    currency: Currency | None = None
    working_hours: tuple[WorkingHours, ...] = ()
    cluster: ClusterIdentity | None = None

    @cached_property
    def listed_types(self) -> InstanceTypes | None:
        """The instance types that the configuration lists; None if it lists none."""
        listed = self.catalogue
        return index(listed.types, self.is_accelerator, complete=listed.complete) if listed.types else None

    @property
    def classes(self) -> WorkloadClasses:
        """The rules for the class of a workload: those of the configuration, or the shipped ones."""
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
        """Tell whether a DRA device class provides accelerators."""
        known = (*accelerators.DEVICE_CLASSES, *self.accelerators.device_classes)
        return any(formats.matches(p, device_class) for p in known)

    def taints_of(self, name: str) -> tuple[Taint, ...]:
        """Return the taints on nodes that offer a resource or device class; none if they are unknown."""
        configured = self.configured_taints_of(name)
        if configured is not None:
            return configured
        name = name.removeprefix(accelerators.IMPLICIT_CLASS_PREFIX)
        for pattern, key in accelerators.TAINT_KEYS.items():
            if formats.matches(pattern, name):
                return (Taint(key=key),)
        return ()

    def configured_taints_of(self, name: str) -> tuple[Taint, ...] | None:
        """Return the taints that the configuration sets for a resource or device class; None if it sets none."""
        name = name.removeprefix(accelerators.IMPLICIT_CLASS_PREFIX)
        if name in self.taints:
            return self.taints[name]
        return next((taints for pattern, taints in self.taints.items() if formats.matches(pattern, name)), None)


Version: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[0-9]+\.[0-9]+$")]


class Target(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The versions that policies assume, as `major.minor`. The default is the newest supported version.

    Attributes:
        kubernetes: the version of the API server.
        karpenter: the version of Karpenter and its provider.
        keda: the version of KEDA.
    """

    kubernetes: Version = "1.36"
    karpenter: Version = "1.14"
    keda: Version = "2.20"


def at_least(version: str, minimum: str) -> bool:
    """Compare two versions of the form `major.minor`."""
    return tuple(map(int, version.split("."))) >= tuple(map(int, minimum.split(".")))
