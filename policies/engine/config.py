"""The policy configuration: one file for the webhook, the audit and `check`; strict, and typed at load.

GpugateError
└── ConfigError          the configuration is refused: what is wrong, at which field, and what to write instead
OutOfTimeError           the time for a request is over
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

import msgspec

from gpugate.policies.sdk.catalogue import Catalogue, CatalogueError, check_types
from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import GroupVersionKind
from gpugate.policies.sdk.platform import LABEL_KEY, Currency, Platform, Target, Version, WorkingHours, WorkloadClasses

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.pod_templates import TemplatePath


class GpugateError(Exception):
    """An error that a user can fix. Its text is shown unchanged."""


class ConfigError(GpugateError):
    """The policy configuration is invalid at `path`."""

    def __init__(self, path: Path, message: str) -> None:
        super().__init__(f"{render(path)}: {message}" if path else message)
        self.path = path
        self.message = message


class OutOfTimeError(BaseException):
    """The time limit of a request expired, so there is no verdict. `policy` is the one that was running, if known.

    Not an `Exception`, because it may be raised inside a policy, which may catch exceptions.
    """

    def __init__(self, policy: str = "") -> None:
        super().__init__(f"out of time at {policy}")
        self.policy = policy


API_VERSION = "gpugate.dev/v1"
KIND = "PolicyConfig"

# YAML 1.1 and kubectl read a bare `off` as false. `true` is rejected.
Mode = Literal["off", "audit", "warn", "enforce"] | bool
# The names under which findings without a policy can be exempted: fields of the wrong type, and schema errors.
WITHOUT_POLICY: Final = ("malformed", "schema")


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A section in which unknown keys are errors."""


class PolicyEntry(_Strict, frozen=True, kw_only=True):
    """Mode and parameters of a policy, or of every policy that a pattern such as `pods/*` names.

    Attributes:
        mode: the mode of the policy. If it is not set: the lower of its default mode and the global `mode`.
        params: the parameters of the policy. Under a pattern, every matching policy must have these parameters.
    """

    mode: Mode | None = None
    params: dict[str, Any] | None = None  # Any: each policy parses its own parameters, in `bind`


class NamespacePolicyEntry(_Strict, frozen=True, kw_only=True):
    """The mode of a policy in some namespaces.

    Attributes:
        mode: the mode of the policy there. It overrides the entry under `policies` and the global `mode`.
    """

    mode: Mode


class NamespaceEntry(_Strict, frozen=True, kw_only=True):
    """The settings of a namespace, or of every namespace that a pattern matches.

    Attributes:
        policies: the mode, by policy id or pattern.
    """

    policies: dict[str, NamespacePolicyEntry]


class Exemption(_Strict, frozen=True, kw_only=True):
    """An exemption of objects from policies, until the end of the day `expires`.

    Attributes:
        policies: ids or patterns of policies. `malformed` (fields of the wrong type) and, for `check`, `schema` must be named
            exactly: patterns do not match them.
        reason: the reason, which is shown with each affected finding.
        owner: the person or team responsible for the exemption.
        expires: the last day on which the exemption applies, such as 2027-03-31.
        kinds: kinds of objects, such as NodePool.
        namespaces: names or patterns. If set, objects without a namespace are not exempt.
        names: names or patterns of objects. If the API server still has to generate the name from `generateName`, only `*`
            matches. Such an object is mutated, and the exemption applies when it is validated.
        users: names or patterns of the requesting users.
        groups: groups of the requesting user, of which one must match.
    """

    policies: tuple[str, ...]
    reason: str
    owner: str
    expires: dt.date
    kinds: tuple[str, ...] = ("*",)
    namespaces: tuple[str, ...] = ("*",)
    names: tuple[str, ...] = ("*",)
    users: tuple[str, ...] = ("*",)
    groups: tuple[str, ...] = ("*",)


EXCLUDED_NAMESPACES = (
    "kube-system",
    "kube-node-lease",
    "kube-public",
    "karpenter",
    "keda",
    "gpu-operator",
    "gpu-monitoring",
    "nvidia-dra-driver-gpu",
    "gpugate",
)


class PodTemplateEntry(_Strict, frozen=True, kw_only=True):
    """The location of Pod templates in objects of a kind that gpugate does not know.

    Attributes:
        apiVersion: the group and version of the kind, such as `example.com/v1`.
        kind: the name of the kind, such as `TrainingRun`.
        path: the field that contains a Pod template or a Pod spec, such as `spec.workers[*].template`. `[*]` stands for
            every element of a list or member of a map.
    """

    api_version: str = msgspec.field(name="apiVersion")
    kind: str
    path: str

    @property
    def steps(self) -> TemplatePath:
        """The path as keys; `*` stands for every element or member."""
        return tuple(self.path.replace("[*]", ".*").split("."))


class ClusterTarget(_Strict, frozen=True, kw_only=True):
    """The versions of some clusters, as `major.minor`; a version that is not set is that of the whole file.

    Attributes:
        kubernetes: the version of the API server.
        karpenter: the version of Karpenter and its provider.
        keda: the version of KEDA.
    """

    kubernetes: Version | msgspec.UnsetType = msgspec.UNSET
    karpenter: Version | msgspec.UnsetType = msgspec.UNSET
    keda: Version | msgspec.UnsetType = msgspec.UNSET


class ClusterPlatform(_Strict, frozen=True, kw_only=True):
    """The properties of the platform that may differ between clusters; each replaces that of the whole file.

    The others decide what API servers send to the webhook, which is the same in all clusters.

    Attributes:
        workload_classes: how the class of a workload is determined.
        ec2: whether the nodes are EC2 instances.
        catalogue: instance types of nodes that are not EC2 instances.
        currency: the currency of reports.
        working_hours: when namespaces work.
    """

    workload_classes: WorkloadClasses | msgspec.UnsetType | None = msgspec.UNSET
    ec2: bool | msgspec.UnsetType | None = msgspec.UNSET
    catalogue: Catalogue | msgspec.UnsetType = msgspec.UNSET
    currency: Currency | msgspec.UnsetType | None = msgspec.UNSET
    working_hours: tuple[WorkingHours, ...] | msgspec.UnsetType = msgspec.UNSET


class ClusterEntry(_Strict, frozen=True, kw_only=True):
    """What is different in some clusters.

    Attributes:
        match: the clusters: a label, `name` or `region`, and its value, a pattern, or a list of these of which one must fit.
            All labels must fit; a cluster without a label does not.
        mode: the maximum mode there of every policy for which neither this entry nor a later one sets a mode.
        target: the versions that policies assume there.
        platform: properties of the platform there.
        policies: mode and parameters there, by policy id or pattern. They take precedence over everything that `policies`
            of the file and of earlier entries say, parameter by parameter.
        namespaces: settings there, by namespace or pattern, added to those of the file; equal ones are replaced.
        exemptions: exemptions there, added to those of the file.
    """

    match: dict[str, str | tuple[str, ...]]
    mode: Mode | None = None
    target: ClusterTarget = ClusterTarget()
    platform: ClusterPlatform = ClusterPlatform()
    policies: dict[str, PolicyEntry] = {}
    namespaces: dict[str, NamespaceEntry] = {}
    exemptions: tuple[Exemption, ...] = ()


class PolicyConfig(_Strict, frozen=True, kw_only=True):
    """The policy file.

    Attributes:
        target: the versions that policies assume.
        mode: the maximum mode of every policy without a `mode` of its own.
        platform: taints, accelerators and workload classes shared by many policies.
        policies: mode and parameters, by policy id or pattern. An id takes precedence over a pattern. Only an id enables a
            policy whose default mode is off.
        namespaces: settings, by namespace or pattern. A name takes precedence over a pattern.
        excluded_namespaces: exact names of namespaces whose objects are not evaluated.
        exemptions: objects that are exempt from policies, with a reason, an owner and an end date.
        pod_templates: further kinds with Pod templates.
        policy_paths: directories of policies outside the library, relative to this file.
        clusters: what is different in some clusters. All entries that match a cluster apply, in this order: a later one takes
            precedence.
    """

    target: Target = Target()
    mode: Mode | None = None
    platform: Platform = msgspec.field(default_factory=Platform)
    policies: dict[str, PolicyEntry] = {}
    namespaces: dict[str, NamespaceEntry] = {}
    excluded_namespaces: tuple[str, ...] = EXCLUDED_NAMESPACES
    exemptions: tuple[Exemption, ...] = ()
    pod_templates: tuple[PodTemplateEntry, ...] = ()
    policy_paths: tuple[str, ...] = ()
    clusters: tuple[ClusterEntry, ...] = ()

    @property
    def added_templates(self) -> Mapping[GroupVersionKind, tuple[TemplatePath, ...]]:
        """Type -> the paths of `pod_templates`, each once."""
        paths: dict[GroupVersionKind, tuple[TemplatePath, ...]] = {}
        for entry in self.pod_templates:
            kind = GroupVersionKind.of(entry.api_version, entry.kind)
            paths[kind] = tuple(dict.fromkeys((*paths.get(kind, ()), entry.steps)))
        return paths


T = TypeVar("T")


def parse_config(document: Json) -> PolicyConfig:
    """Parse a configuration document.

    Raises:
        ConfigError: an unknown key, a value of the wrong type, another apiVersion or kind, an exemption without a
            reason, an owner or a date, an empty name where names or patterns are listed, an invalid type or path of
            Pod templates, an empty directory of policies, an invalid amount in a catalogue of instance types, a selector that
            can match no cluster.
    """
    if not isinstance(document, dict):
        raise ConfigError((), f"the policy file is not a YAML mapping; start it with `apiVersion: {API_VERSION}`")
    for key, wanted in (("apiVersion", API_VERSION), ("kind", KIND)):
        if document.get(key) != wanted:
            raise ConfigError((key,), f"must be {wanted}")
    body = {key: value for key, value in document.items() if key not in {"apiVersion", "kind"}}
    clusters = body.get("clusters")
    for index, entry in enumerate(clusters if isinstance(clusters, list) else ()):
        if isinstance(entry, dict):
            _parse_members(entry, ("clusters", index))
        parse(entry, ClusterEntry, ("clusters", index))
    _parse_members(body, ())
    config = parse(body, PolicyConfig, ())
    _check_section(config, ())
    _refuse_empty(config.excluded_namespaces, ("excluded_namespaces",))
    _check_templates(config.pod_templates)
    _check_directories(config.policy_paths)
    _check_platform(config.platform.catalogue, config.platform.working_hours, ("platform",))
    _check_clusters(config.clusters)
    return config


def _parse_members(section: dict[str, Json], path: Path) -> None:
    """Parse the members of maps one by one, because the parser's messages do not name the invalid member."""
    for name, entry in _members(section.get("policies")):
        parse(entry, PolicyEntry, (*path, "policies", name))
    for namespace, differing in _members(section.get("namespaces")):
        for name, entry in _members(differing.get("policies") if isinstance(differing, dict) else None):
            parse(entry, NamespacePolicyEntry, (*path, "namespaces", namespace, "policies", name))
        parse(differing, NamespaceEntry, (*path, "namespaces", namespace))


def _check_section(section: PolicyConfig | ClusterEntry, path: Path) -> None:
    for index, exemption in enumerate(section.exemptions):
        _check(exemption, (*path, "exemptions", index))
    if "" in section.namespaces:
        raise ConfigError((*path, "namespaces", ""), "is empty: write a namespace, or a pattern such as `team-*`")


def _check_platform(
    catalogue: Catalogue | msgspec.UnsetType, hours: tuple[WorkingHours, ...] | msgspec.UnsetType, path: Path
) -> None:
    try:
        check_types(catalogue.types if catalogue else ())
    except CatalogueError as error:
        raise ConfigError((*path, "catalogue", *error.path), error.message) from None
    _check_hours(hours or (), path)


_MOST_CLUSTERS: Final = 500
_LONGEST_SELECTOR: Final = 100  # as that of the name or label of a cluster
_SELECTOR: Final = re.compile(r"[A-Za-z0-9*]([A-Za-z0-9._*-]*[A-Za-z0-9*])?", re.ASCII)
_LABEL_KEY: Final = re.compile(LABEL_KEY, re.ASCII)


def _check_clusters(entries: tuple[ClusterEntry, ...]) -> None:
    if len(entries) > _MOST_CLUSTERS:
        raise ConfigError(("clusters",), f"has {len(entries):,} entries (limit: {_MOST_CLUSTERS})")
    for index, entry in enumerate(entries):
        path: Path = ("clusters", index)
        if not entry.match:
            raise ConfigError(
                (*path, "match"), "is empty: write what holds in every cluster outside `clusters`, or a label here"
            )
        for label, wanted in entry.match.items():
            _check_selector(label, wanted, (*path, "match", label))
        _check_section(entry, path)
        _check_platform(entry.platform.catalogue, entry.platform.working_hours, (*path, "platform"))


def _check_selector(label: str, wanted: str | tuple[str, ...], path: Path) -> None:
    """Raise ConfigError for a label or a value that no cluster can have."""
    if not _LABEL_KEY.fullmatch(label):
        raise ConfigError(path, "matches no cluster, because it is not a label: write `name`, `region` or a label")
    if not wanted:
        raise ConfigError(path, "matches no cluster, because it is empty: write a value, or a pattern such as `eu-*`")
    for index, value in enumerate((wanted,) if isinstance(wanted, str) else wanted):
        if not _SELECTOR.fullmatch(value) or len(value) > _LONGEST_SELECTOR:
            at = path if isinstance(wanted, str) else (*path, index)
            raise ConfigError(
                at,
                "matches no cluster: names, regions and labels of clusters have letters, digits and inner . _ -, "
                f"at most {_LONGEST_SELECTOR}; `*` matches any text",
            )


_NAMES: Final = ("policies", "kinds", "namespaces", "names", "users", "groups")


def _check(exemption: Exemption, path: Path) -> None:
    for key in ("reason", "owner"):
        if not getattr(exemption, key).strip():
            raise ConfigError((*path, key), "must not be empty")
    for key in _NAMES:
        _refuse_empty(getattr(exemption, key), (*path, key))


def _check_directories(directories: tuple[str, ...]) -> None:
    for index, directory in enumerate(directories):
        if not directory or "\0" in directory:
            raise ConfigError(("policy_paths", index), "invalid: write a directory such as policies")


_MOST_TEMPLATES: Final = 100
_API_VERSION: Final = re.compile(
    r"([a-z0-9]([-a-z0-9]*[a-z0-9])?\.)+[a-z0-9]([-a-z0-9]*[a-z0-9])?/v[a-z0-9]+", re.ASCII
)
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]{0,62}", re.ASCII)
# Keys joined by dots, as API conventions name fields; at most 16 of them, and the first is a name.
_TEMPLATE_PATH: Final = re.compile(
    r"[A-Za-z_][A-Za-z0-9_-]{0,62}(\[\*\]|\.\*|\.[A-Za-z_][A-Za-z0-9_-]{0,62}){0,15}", re.ASCII
)


def _check_hours(entries: tuple[WorkingHours, ...], platform: Path) -> None:
    for index, hours in enumerate(entries):
        if hours.end <= hours.start:
            path = (*platform, "working_hours", index, "end")
            raise ConfigError(
                path, f"is not after the start {hours.start}: write two entries for hours that pass midnight"
            )


def _check_templates(entries: tuple[PodTemplateEntry, ...]) -> None:
    """Raise ConfigError for a type or a path that is invalid, and for too many entries."""
    if len(entries) > _MOST_TEMPLATES:
        raise ConfigError(("pod_templates",), f"has {len(entries):,} entries (limit: {_MOST_TEMPLATES})")
    for index, entry in enumerate(entries):
        path: Path = ("pod_templates", index)
        if not _API_VERSION.fullmatch(entry.api_version):
            raise ConfigError(
                (*path, "apiVersion"), "invalid: write group and version of a custom resource, such as example.com/v1"
            )
        if not _KIND.fullmatch(entry.kind):
            raise ConfigError((*path, "kind"), "invalid: write the name of one kind, such as TrainingRun")
        if not _TEMPLATE_PATH.fullmatch(entry.path):
            raise ConfigError(
                (*path, "path"), "invalid: write the path of a Pod template, such as `spec.workers[*].template`"
            )


def _refuse_empty(names: tuple[str, ...], path: Path) -> None:
    """Raise ConfigError for an empty name: it would match every object that has none."""
    if "" in names:
        raise ConfigError((*path, names.index("")), "is empty: write a name, or a pattern such as `legacy-*`")


def _members(section: Json) -> Iterable[tuple[str, Json]]:
    return section.items() if isinstance(section, dict) else ()


def stance_of(mode: Mode, path: Path) -> Stance:
    """Return a mode. `true`, which YAML 1.1 also reads from a bare `on` or `yes`, is rejected."""
    if mode is True:
        raise ConfigError(path, "must be off, audit, warn or enforce, not a boolean")
    return Stance.OFF if mode is False else Stance[mode.upper()]


_AT = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<where>[^`]*)`)?", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>.*)`")
_VALUE = re.compile(r"Invalid enum value '(?P<name>.*)'")
_MISSING = re.compile(r"Object missing required field `(?P<name>.*)`")


def parse(value: object, into: type[T], path: Path) -> T:
    """Convert a JSON value to a type of the configuration.

    Raises:
        ConfigError: the value does not fit; the error's path starts with `path`.
    """
    try:
        return msgspec.convert(value, into)
    except msgspec.ValidationError as error:
        raise _config_error(str(error), into, path) from None


def _config_error(text: str, into: type, path: Path) -> ConfigError:
    match = _AT.fullmatch(text)
    message, where = (match["what"], match["where"] or "") if match else (text, "")
    for step in re.finditer(r"\.([^.\[]+)|\[(\d+)\]", where.partition("[...]")[0]):
        path = (*path, int(step[2]) if step[2] else step[1])
    unknown, missing, value = _UNKNOWN.fullmatch(message), _MISSING.fullmatch(message), _VALUE.fullmatch(message)
    if unknown:
        name, words = unknown["name"], _words(into)
        # A key that is known elsewhere is misplaced, not misspelt.
        meant = _placed(into if not where else None) if name in words else _did_you_mean(name, words)
        return ConfigError((*path, name), f"unknown key{meant}")
    if missing:
        return ConfigError(path, f"missing `{missing['name']}`, which is required")
    meant = _did_you_mean(value["name"].lower(), _words(into)) if value else ""
    return ConfigError(path, message[:1].lower() + message[1:] + meant)


def _placed(into: type | None) -> str:
    if into is None or not issubclass(into, msgspec.Struct):
        return " here"
    return f" here; allowed: {', '.join(f'`{field.encode_name}`' for field in msgspec.structs.fields(into))}"


def _words(into: type) -> list[str]:
    """Return every key and every fixed value of the type and its sections."""
    names: list[str] = []
    visited: set[object] = set()
    pending: list[object] = [into]
    while pending:
        part = pending.pop()
        if part in visited:
            continue
        visited.add(part)
        if isinstance(part, type) and issubclass(part, msgspec.Struct):
            fields = msgspec.structs.fields(part)
            names += [field.encode_name for field in fields]
            pending += [field.type for field in fields]
        arguments = getattr(part, "__args__", ())
        names += [argument for argument in arguments if isinstance(argument, str)]
        pending += [argument for argument in arguments if not isinstance(argument, str)]
    return names


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    return f"; did you mean `{near[0]}`?" if (near := near_misses(name, known)) else ""


def near_misses(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that look most like `name`, best first."""
    import difflib  # noqa: PLC0415 -- only errors need it, and it costs start-up time

    return difflib.get_close_matches(name, list(known), n=3, cutoff=0.6)
