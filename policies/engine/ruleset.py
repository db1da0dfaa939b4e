"""Policies bound to a configuration, and the cluster data that they need."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from gpugate.policies.engine.clusters import Layer, layers_of, source_of
from gpugate.policies.engine.config import (
    WITHOUT_POLICY,
    ConfigError,
    PolicyConfig,
    near_misses,
    parse,
    stance_of,
)
from gpugate.policies.sdk import formats
from gpugate.policies.sdk.concerns import EVERY_OBJECT, any_of, reader
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.objects import DEVICE_CLASS
from gpugate.policies.sdk.platform import CLASSES_KEY
from gpugate.policies.sdk.policy import PARAMETERS_KEY
from gpugate.policies.sdk.structs import Struct, replace

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gpugate.policies.engine.config import Exemption
    from gpugate.policies.sdk.concerns import Concern, Reader
    from gpugate.policies.sdk.facts import Need
    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.objects import GroupVersionKind, Kind, Operation, Request
    from gpugate.policies.sdk.platform import Platform
    from gpugate.policies.sdk.pod_templates import TemplatePath
    from gpugate.policies.sdk.policy import Handler, Params, Policy

# The maximum length of a name in Kubernetes (`k8s.io/apimachinery` util/validation, DNS1123SubdomainMaxLength, v0.36).
_LONGEST_PATTERN: Final = 253
# The most combinations of concerns that are cached for a type. Real objects have some dozens; their sender chooses them.
_MOST_COMBINATIONS: Final = 1024


class Standing(Struct, frozen=True):
    """A stance, and the exemption that lowered it, if any."""

    stance: Stance
    exemption: Exemption | None = None


class Rule(Struct, frozen=True):
    """A policy with its parameters and its mode; `namespace_modes` is namespace or pattern -> mode there.

    `is_configured` says whether the platform has set the names on which the policy depends (`Handler.convention`); True
    if there are none. `table_needs` are the needs of cluster data that extends its tables.
    """

    policy: Policy
    params: Params
    mode: Stance
    namespace_modes: Mapping[str, Stance]
    is_configured: bool = True
    table_needs: tuple[Need, ...] = ()


Bound = tuple[Rule, "Handler[Any]"]  # Any: policies of one ruleset have different parameters
_Index: TypeAlias = "Mapping[tuple[str, str, str, str], tuple[Bound, ...]]"


class Due:
    """The handlers for an operation on objects of a type, in the order of the catalogue.

    Args:
        bound: the handlers with their rules.
        readers: those of `Ruleset.readers`.
        standings: those of `Ruleset.standings`.
    """

    def __init__(
        self, bound: tuple[Bound, ...], readers: Mapping[int, Reader], standings: Mapping[str, Standing]
    ) -> None:
        self.bound = bound
        # The stance of each policy without exemptions; empty where the namespace decides it.
        self.stances = {rule.policy.id: standings[rule.policy.id].stance for rule, _ in bound} if standings else {}
        self._readers = tuple(dict.fromkeys(readers[id(handler)] for _, handler in bound if id(handler) in readers))
        indices = {reader: index for index, reader in enumerate(self._readers)}
        # For each handler, the index of its reader and whether the cluster may name further accelerators for it.
        self._filters = tuple(
            (indices[readers[id(handler)]], reads_device_classes(handler)) if id(handler) in readers else None
            for _, handler in bound
        )
        self.reads_classes = any(by is not None and by[1] for by in self._filters)
        self._by_answers: dict[tuple[tuple[bool, ...], bool], tuple[Bound, ...]] = {}

    def concerned(
        self, value: Json, user: str, memo: dict[object, object], *, classes_named: bool
    ) -> tuple[Bound, ...]:
        """Return the handlers that may find or change something in an object.

        Args:
            value: the object.
            user: who sends it.
            memo: keeps what each reader answers about the object.
            classes_named: whether the cluster names accelerators that the readers do not know.
        """
        answers = tuple([_answer(reader, value, user, memo) for reader in self._readers])
        key = (answers, classes_named)
        concerned = self._by_answers.get(key)
        if concerned is None:
            concerned = tuple(
                bound
                for bound, by in zip(self.bound, self._filters, strict=True)
                if by is None or answers[by[0]] or (classes_named and by[1])
            )
            if len(self._by_answers) < _MOST_COMBINATIONS:
                self._by_answers[key] = concerned
        return concerned


def reads_device_classes(handler: Handler[Any]) -> bool:
    """Tell whether DeviceClasses of the cluster may name further accelerators for a handler."""
    return any(need.kind is DEVICE_CLASS for need in handler.needs)


def _answer(reader: Reader, value: Json, user: str, memo: dict[object, object]) -> bool:
    answer = memo.get(reader)
    if answer is None:
        answer = memo[reader] = reader(value, user)
    return bool(answer)


@dataclass(frozen=True, slots=True)
class Ruleset:
    """Every rule in force, in the order of the catalogue.

    `validators` and `mutators` are keyed by group, version, kind and subresource; `order` is policy id -> position in
    the catalogue; `tables` are those that the rules read; `pod_templates` is type -> paths of Pod templates that the
    policy file adds. `standings` are the stances of findings of each rule without an exemption; empty if they depend on
    the namespace. `readers` is id of a handler -> a function that tells whether it may have findings in an object; none
    if that is every object. `catalog` contains every policy, including those that are off.
    """

    config: PolicyConfig
    rules: tuple[Rule, ...]
    validators: _Index
    mutators: _Index
    order: Mapping[str, int]
    tables: Mapping[str, object] = field(default_factory=dict)
    pod_templates: Mapping[GroupVersionKind, tuple[TemplatePath, ...]] = field(default_factory=dict)
    standings: Mapping[str, Standing] = field(default_factory=dict)
    readers: Mapping[int, Reader] = field(default_factory=dict)
    catalog: tuple[Policy, ...] = ()
    _due: dict[object, Due] = field(default_factory=dict, compare=False, repr=False)
    _concerned: dict[tuple[Concern, ...], Reader] = field(default_factory=dict, compare=False, repr=False)

    def handlers(self, kind: GroupVersionKind, subresource: str = "", *, mutating: bool) -> tuple[Bound, ...]:
        """Return the handlers that evaluate objects of a type, or requests to a subresource of such objects."""
        index = self.mutators if mutating else self.validators
        return index.get((kind.group, kind.version, kind.kind, subresource), ())

    def due(self, kind: GroupVersionKind, subresource: str, operation: Operation, *, mutating: bool) -> Due:
        """Return the handlers for an operation, without mutations that depend on names that are not configured."""
        key = (kind.group, kind.version, kind.kind, subresource, operation, mutating)
        due = self._due.get(key)
        if due is None:
            due = self.due_of(
                (rule, handler)
                for rule, handler in self.handlers(kind, subresource, mutating=mutating)
                if operation in handler.operations
                and (rule.is_configured or not (handler.mutates and handler.convention))
            )
            if due.bound:
                # Only kinds of policies are cached, because a sender chooses the others.
                self._due[key] = due
        return due

    def due_of(self, bound: Iterable[Bound]) -> Due:
        """Return some handlers as those for an operation."""
        return Due(tuple(bound), self.readers, self.standings)

    def concerned(self, concerns: Iterable[Concern]) -> Reader:
        """Return a function that tells whether any of some concerns holds for an object; compiled once for each set."""
        key = tuple(concerns)
        concern_reader = self._concerned.get(key)
        if concern_reader is None:
            # Only sets of policies' concerns, so their number is that of kinds and operations.
            concern_reader = self._concerned[key] = reader(any_of(*key), self.config.platform)
        return concern_reader


def bind(
    catalog: Iterable[Policy],
    config: PolicyConfig,
    only: Collection[str] | None = None,
    *,
    closed_families: Collection[str] | None = None,
) -> Ruleset:
    """Bind policies to a configuration; loads the tables that they read.

    With `only`, just the rules of these ids are in force, but the whole configuration is checked. Unknown ids are
    errors in `closed_families`, of which the catalog has every policy; None stands for all families.

    Raises:
        ConfigError: the configuration names an unknown policy, two patterns name the same policy or overlap on
            namespaces, or parameters do not fit their policy.
    """
    policies = tuple(catalog)
    ids = [policy.id for policy in policies]
    _refuse_unknown(ids, config, closed_families)
    try:
        _refuse_overlapping(config.namespaces, ("namespaces",))
    except ConfigError as error:
        raise ConfigError(source_of(config, error.path), error.message) from None
    _check_clusters(policies, config)
    bound = tuple(_rule(policy, config) for policy in policies)
    rules = tuple(rule for rule in bound if rule.mode or any(rule.namespace_modes.values()))
    if only is not None:
        rules = tuple(rule for rule in rules if rule.policy.id in only)
    tables = {t.name: t for rule in rules for handler in rule.policy.handlers for t in handler.tables}
    return Ruleset(
        config=config,
        rules=rules,
        validators=_index(rules, mutating=False),
        mutators=_index(rules, mutating=True),
        order={rule.policy.id: index for index, rule in enumerate(rules)},
        tables={name: table.load() for name, table in tables.items()},
        pod_templates=config.added_templates,
        standings=(
            {} if any(r.namespace_modes for r in rules) else {rule.policy.id: Standing(rule.mode) for rule in rules}
        ),
        readers=_readers(rules, config.platform),
        catalog=policies,
    )


def _readers(rules: Sequence[Rule], platform: Platform) -> dict[int, Reader]:
    """Return a reader for each handler with concerns; handlers with equal concerns share one."""
    by_concern: dict[Concern, Reader] = {}
    readers: dict[int, Reader] = {}
    for rule in rules:
        for handler in rule.policy.handlers:
            concern = handler.concerns
            if concern != EVERY_OBJECT:
                if concern not in by_concern:
                    by_concern[concern] = reader(concern, platform)
                readers[id(handler)] = by_concern[concern]
    return readers


def _index(rules: Sequence[Rule], *, mutating: bool) -> _Index:
    index: dict[tuple[str, str, str, str], tuple[Bound, ...]] = {}
    for rule in rules:
        for handler in rule.policy.handlers:
            for kind in handler.kinds if handler.mutates is mutating else ():
                for version in kind.versions:
                    key = (kind.group, version, kind.name, kind.subresource)
                    index[key] = (*index.get(key, ()), (rule, handler))
    return index


def _rule(policy: Policy, config: PolicyConfig) -> Rule:
    settings = settings_of(policy, layers_of(config))
    ceiling = Stance.ENFORCE if config.mode is None else stance_of(config.mode, ("mode",))
    mode = min(policy.mode, ceiling) if settings.mode is None else settings.mode
    params = _params(policy, settings)
    is_configured = _is_configured(policy, config, settings)
    tables = {table.name: table for handler in policy.handlers for table in handler.tables}
    table_needs = tuple(need for table in tables.values() if table.extended(config.platform) for need in table.needs)
    mode = mode if is_configured else min(mode, Stance.WARN)
    return Rule(policy, params, mode, settings.namespace_modes, is_configured, table_needs)


class Settings(Struct, frozen=True):
    """What a configuration says of one policy.

    Attributes:
        mode: the mode that it sets for the policy; None if it sets none.
        mode_path: the value that decided `mode`.
        params: the parameters that it sets.
        params_paths: parameter -> its value in the configuration.
        entry: the entry of the last section that names the policy; None if none does.
        namespace_modes: namespace or pattern -> the mode there.
    """

    mode: Stance | None
    mode_path: Path
    params: dict[str, Any]
    params_paths: Mapping[str, Path]
    entry: Path | None
    namespace_modes: Mapping[str, Stance]


def settings_of(policy: Policy, layers: Iterable[Layer]) -> Settings:
    """Return what the sections of a configuration say of a policy; a later section takes precedence.

    Raises:
        ConfigError: two patterns of a section name the policy, or a mode is invalid.
    """
    mode: Stance | None = None
    mode_path: Path = ()
    params: dict[str, Any] = {}
    params_paths: dict[str, Path] = {}
    entry_path: Path | None = None
    namespace_modes: dict[str, Stance] = {}
    for layer in layers:
        section = layer.section
        if layer.path and section.mode is not None:
            # What the whole file sets for a policy is at most the maximum of the cluster.
            ceiling = stance_of(section.mode, (*layer.path, "mode"))
            if mode is not None and ceiling < mode:
                mode, mode_path = ceiling, (*layer.path, "mode")
            namespace_modes = {name: min(own, ceiling) for name, own in namespace_modes.items()}
        path = (*layer.path, "policies")
        key = _named(policy, section.policies, path, is_enabled=bool(mode))
        if key is not None:
            entry, entry_path = section.policies[key], (*path, key)
            if entry.mode is not None:
                mode, mode_path = stance_of(entry.mode, (*entry_path, "mode")), (*entry_path, "mode")
            for name, value in (entry.params or {}).items():
                params[name], params_paths[name] = value, (*entry_path, "params", name)
        for namespace, differing in section.namespaces.items():
            path = (*layer.path, "namespaces", namespace, "policies")
            key = _named(policy, differing.policies, path)
            if key is not None:
                namespace_modes[namespace] = stance_of(differing.policies[key].mode, (*path, key, "mode"))
    return Settings(mode, mode_path, params, params_paths, entry_path, namespace_modes)


def _params(policy: Policy, settings: Settings) -> Params:
    """Return the parameters of a policy.

    Raises:
        ConfigError: they do not fit; at the value that the last section sets.
    """
    if not settings.params:
        # A conversion would compile the type first, which takes longer than all else that is done for a policy.
        with suppress(TypeError, ValueError):  # a parameter is required, which the conversion reports
            return policy.params()
    within: Path = (*(settings.entry or ("policies", policy.id)), "params")
    try:
        return parse(settings.params, policy.params, within)
    except ConfigError as error:
        below = error.path[len(within) :]
        written = settings.params_paths.get(str(below[0])) if below else None
        raise ConfigError((*written, *below[1:]) if written else error.path, error.message) from None


def _check_clusters(policies: Sequence[Policy], config: PolicyConfig) -> None:
    """Raise ConfigError for an entry of `clusters` that is invalid in the clusters that it matches."""
    for index, cluster in enumerate(config.clusters):
        path: Path = ("clusters", index)
        _refuse_overlapping({**config.namespaces, **cluster.namespaces}, (*path, "namespaces"))
        if cluster.mode is not None:
            stance_of(cluster.mode, (*path, "mode"))
        for policy in policies:
            keys = (*cluster.policies, *(key for entry in cluster.namespaces.values() for key in entry.policies))
            if any(formats.matches(key, policy.id) for key in keys):
                _params(policy, settings_of(policy, (Layer((), config), Layer(path, cluster))))


def _is_configured(policy: Policy, config: PolicyConfig, settings: Settings) -> bool:
    """Tell whether the platform has set the names on which a policy depends, or a mode for the policy itself."""
    if not policy.conventions or settings.mode is not None:
        return True
    configured = {
        PARAMETERS_KEY: bool(settings.params),
        CLASSES_KEY: config.platform.workload_classes is not None,
    }
    return all(configured[key] for key in policy.conventions)


def _named(policy: Policy, entries: Mapping[str, object], path: Path, *, is_enabled: bool = False) -> str | None:
    """Return the key that names a policy: its id, or else the one matching pattern.

    Only its id enables a policy that is off by default: a pattern such as `pods/*` is not a decision to enable it.
    `is_enabled` tells whether its id did so elsewhere.
    """
    if policy.id in entries:
        return policy.id
    fitting = [key for key in entries if "*" in key and formats.matches(key, policy.id)]
    if len(fitting) > 1:
        raise ConfigError((*path, fitting[1]), f"`{fitting[0]}` names {policy.id} too: write its id, or one pattern")
    return fitting[0] if fitting and (is_enabled or policy.mode is not Stance.OFF) else None


def _refuse_unknown(ids: Sequence[str], config: PolicyConfig, closed: Collection[str] | None) -> None:
    sections = (Layer((), config), *(Layer(("clusters", i), entry) for i, entry in enumerate(config.clusters)))
    named: list[tuple[str, Path]] = []
    for path, section in ((layer.path, layer.section) for layer in sections):
        named += [(key, (*path, "policies", key)) for key in section.policies]
        named += [
            (key, (*path, "namespaces", n, "policies", key))
            for n, e in section.namespaces.items()
            for key in e.policies
        ]
        named += [
            (key, (*path, "exemptions", index, "policies"))
            for index, exemption in enumerate(section.exemptions)
            for key in exemption.policies
            if key not in WITHOUT_POLICY
        ]
    for key, path in named:
        if closed is not None and key.partition("/")[0] not in closed:
            continue
        if not any(formats.matches(key, policy_id) for policy_id in ids):
            near = near_misses(key, ids)
            meant = f"did you mean `{near[0]}`?" if near else "`gpugate policies` lists them"
            raise ConfigError(path, f"unknown policy `{key}`; {meant}")


def _refuse_overlapping(entries: Iterable[str], path: Path) -> None:
    patterns = [key for key in entries if "*" in key]
    for pattern in patterns:
        if len(pattern) > _LONGEST_PATTERN:
            raise ConfigError((*path, pattern), f"is longer than {_LONGEST_PATTERN} characters, the maximum of a name")
    for left, other in combinations(patterns, 2):
        if formats.overlap(left, other):
            raise ConfigError(
                (*path, other), f"some names match both `{left}` and this pattern: write patterns that do not overlap"
            )


# A field and the fields that are read below it; all of them if empty.
_Fields: TypeAlias = "dict[str, _Fields]"
_ALWAYS = ("metadata.name", "metadata.namespace")


class Needs:
    """The fields of other objects that the rules read, so that only these are stored."""

    def __init__(self, rules: Iterable[Rule], also: Iterable[Need] = ()) -> None:
        """Merge the needs of rules; `also` are those of the caller."""
        self._fields: dict[Kind, _Fields] = {}
        of_rules = (
            need
            for rule in rules
            for needs in (rule.table_needs, *(handler.needs for handler in rule.policy.handlers))
            for need in needs
        )
        for need in (*of_rules, *also):
            _add(self._fields.setdefault(need.kind, {}), (*_ALWAYS, *need.fields))
        self._by_type: dict[GroupVersionKind, _Fields | None] = {}

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """All kinds that a rule looks up."""
        return tuple(self._fields)

    def of(self, kind: GroupVersionKind) -> Mapping[str, object] | None:
        """Return the fields that are read of objects of a type; None if none are."""
        if kind not in self._by_type:
            fitting = [fields for known, fields in self._fields.items() if known.covers(kind)]
            self._by_type[kind] = fitting[0] if fitting else None
        return self._by_type[kind]

    def project(self, request: Request) -> Request | None:
        """Return a request whose object contains only the fields that are read; None if none are."""
        self.of(request.kind)
        fields = self._by_type[request.kind]
        if fields is None or request.object is None:
            return None
        remaining = _cut(request.object, fields)
        return replace(request, object=remaining if isinstance(remaining, dict) else None, old_object=None)


def _add(fields: _Fields, paths: Iterable[str]) -> None:
    for path in paths:
        below = fields
        *above, last = path.split(".")
        for part in above:
            if part in below and not below[part]:
                break  # everything below it is read anyway
            below = below.setdefault(part, {})
        else:
            below[last] = {}


def _cut(value: Json, fields: _Fields) -> Json:
    if not fields:
        return value
    if isinstance(value, list):
        return [_cut(element, fields) for element in value]
    if not isinstance(value, dict):
        return value
    return {key: _cut(value[key], below) for key, below in fields.items() if key in value}
