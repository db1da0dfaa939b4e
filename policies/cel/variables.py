"""The variables of a policy's expressions: the object, the request, its namespace, parameters and what gpugate knows of GPUs.

| variable | value |
|---|---|
| `object` | the object; for a Pod template the Pod that it makes; null when an object is deleted |
| `oldObject` | the object before an UPDATE or DELETE, else null |
| `request` | `operation`, `name`, `namespace`, `subResource`, `dryRun`, `kind`, `userInfo` |
| `namespaceObject` | the Namespace of the object, of which only `metadata` is known; null for an object without one |
| `params` | the parameters of the policy |
| `gpu` | `gpu.pod` for Pods and Pod templates, `gpu.pool` for NodePools, `gpu.scaler` for scalers |

A value that depends on missing data is unknown: the policy is then not evaluated, unless the result is the same for every
value. Quantities of a Pod's containers are written as the API server stores them.

Source: k8s.io/apiserver v0.36.3 `pkg/admission/plugin/cel/compile.go` (variables of a ValidatingAdmissionPolicy).
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gpugate.policies.cel.expressions import Environment, parts, path_of
from gpugate.policies.cel.values import BOOL, DOUBLE, DYN, INT, STRING, STRINGS, NotKnownError, Type, map_of
from gpugate.policies.nodepools._accelerators import devices, makes, most_allowed, node_limits
from gpugate.policies.scaling._scaled_objects import KEDA_MAXIMUM
from gpugate.policies.sdk import node_pools, objects, quantity
from gpugate.policies.sdk.facts import Need, named
from gpugate.policies.sdk.findings import Skip
from gpugate.policies.sdk.gpu_demand import CLAIM_NEEDS, gpu_demand
from gpugate.policies.sdk.scale_targets import (
    TARGET_NEEDS,
    scale_target,
    target_workload,
    whole_gpus,
    workload_demand,
)
from gpugate.policies.sdk.workload_class import CLASS_NEEDS, namespace_doubt, workload_class

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gpugate.policies.cel.expressions import Expression
    from gpugate.policies.cel.syntax import Node
    from gpugate.policies.nodepools._accelerators import Make
    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.gpu_demand import GpuDemand
    from gpugate.policies.sdk.node_pools import MatchingTypes
    from gpugate.policies.sdk.objects import Kind
    from gpugate.policies.sdk.policy import AnyContext, Table

Value = Any  # Any: a value of CEL


class Word(NamedTuple):
    """A value that gpugate knows of an object: its type, what is looked up for it, and how it is computed.

    `read` gives None where the object has no such value, and raises NotKnownError where that is not known.
    """

    type: Type
    needs: tuple[Need, ...]
    read: Callable[[AnyContext], Value]


def _demand(ctx: AnyContext) -> GpuDemand:
    demand = ctx.derived(gpu_demand)
    if demand.doubt:
        raise NotKnownError(demand.doubt)
    return demand


def _pod_gpus(_pod: Field, ctx: AnyContext) -> float:
    return float(whole_gpus(_demand(ctx)))


def _pod_resources(_pod: Field, ctx: AnyContext) -> dict[str, int]:
    demand = _demand(ctx)
    return {**demand.resources, **demand.device_classes}


def _pod_class(ctx: AnyContext) -> str | None:
    classified = ctx.derived(workload_class)
    if classified.doubt:
        raise NotKnownError(classified.doubt)
    return classified.name


def _types(ctx: AnyContext) -> MatchingTypes:
    types = ctx.derived(node_pools.matching_types)
    if types is None:
        raise NotKnownError(node_pools.types_doubt(ctx.subject, ctx))
    return types


def _type_names(_pool: Field, ctx: AnyContext) -> list[str]:
    types = _types(ctx)
    families = sorted({*node_pools.unknown_accelerated(types)} - {*types.unknown})
    if families:
        raise NotKnownError(Skip(f"the instance types of family {families[0]} are unknown"))
    return [*types.catalogue.decode(types.known), *types.unknown]


def _gpu_makes(ctx: AnyContext) -> tuple[Make, ...]:
    types = _types(ctx)
    unknown = node_pools.unknown_accelerated(types)
    if unknown:
        raise NotKnownError(Skip(f"instance type or family {unknown[0]} is unknown"))
    return tuple(make for make in makes(types) if make.offering)


def _pool_gpus(_pool: Field, ctx: AnyContext) -> float:
    limits, catalogue = node_limits(ctx.subject), ctx.table(node_pools.INSTANCE_TYPES)
    bounds = [most_allowed(make, limits, catalogue) for make in _gpu_makes(ctx)]
    return max((math.inf if bound is None else float(bound) for bound in bounds), default=0.0)


def _pool_usd(_pool: Field, ctx: AnyContext) -> float:
    limits, catalogue = node_limits(ctx.subject), ctx.table(node_pools.INSTANCE_TYPES)
    usd = 0.0
    for make in _gpu_makes(ctx):
        for position in catalogue.positions_in(make.offering):
            price = catalogue.prices[position]
            if price is None:
                raise NotKnownError(Skip(f"instance type {catalogue.names[position]} has no price"))
            alone = make.of_type(position)
            gpus = most_allowed(alone, limits, catalogue)
            if gpus is None:
                return math.inf
            usd = max(usd, float(gpus * Fraction(str(price)) / devices(alone, position, catalogue)))
    return usd


def _scaler_gpus(_scaler: Field, ctx: AnyContext) -> float | None:
    target = scale_target(ctx.subject)
    if target is None:
        return None
    known = target_workload(target, ctx)
    if known is None:
        raise NotKnownError(Skip(f"the Pod template of {target} is unknown"))
    demand = workload_demand(*known, ctx)
    if demand.doubt:
        raise NotKnownError(demand.doubt)
    scales_by_keda = ctx.request.kind.kind == objects.SCALED_OBJECT.name
    maximum = ctx.subject["spec", "maxReplicaCount" if scales_by_keda else "maxReplicas"]
    replicas = maximum.integer if maximum else KEDA_MAXIMUM if scales_by_keda else None
    return None if replicas is None else float(whole_gpus(demand) * replicas)


class Subject(NamedTuple):
    """What of `gpu` describes objects of some kinds: its fields, and the tables that they read."""

    kinds: tuple[Kind, ...]
    words: Mapping[str, Word]
    tables: tuple[Table[Any], ...] = ()


GPU: Final[Mapping[str, Subject]] = {
    "pod": Subject(
        (objects.POD,),
        {
            "gpus": Word(DOUBLE, CLAIM_NEEDS, lambda ctx: ctx.derived(_pod_gpus)),
            "resources": Word(map_of(STRING, INT), CLAIM_NEEDS, lambda ctx: ctx.derived(_pod_resources)),
            "workloadClass": Word(STRING, CLASS_NEEDS, _pod_class),
        },
    ),
    "pool": Subject(
        (objects.NODE_POOL,),
        {
            "instanceTypes": Word(STRINGS, (), lambda ctx: ctx.derived(_type_names)),
            "maxGpus": Word(DOUBLE, (), lambda ctx: ctx.derived(_pool_gpus)),
            "usdPerHour": Word(DOUBLE, (), lambda ctx: ctx.derived(_pool_usd)),
        },
        (node_pools.INSTANCE_TYPES,),
    ),
    "scaler": Subject(
        (objects.SCALED_OBJECT, objects.HORIZONTAL_POD_AUTOSCALER),
        {"maxGpus": Word(DOUBLE, TARGET_NEEDS, lambda ctx: ctx.derived(_scaler_gpus))},
    ),
}
_NAMESPACE_NEED: Final = Need(objects.NAMESPACE, ("metadata.labels", "metadata.annotations"))


def environment(params: Mapping[str, Type]) -> Environment:
    """Return the variables with their types; `params` are those of the policy's parameters."""
    return Environment(
        {"object": DYN, "oldObject": DYN, "namespaceObject": DYN},
        {
            "request.namespace": STRING,
            **{f"request.{name}": type_ for name, (type_, _) in _REQUEST.items()},
            **{f"params.{name}": type_ for name, type_ in params.items()},
            **{
                f"gpu.{group}.{name}": word.type
                for group, subject in GPU.items()
                for name, word in subject.words.items()
            },
        },
    )


def namespace_of(kinds: tuple[Kind, ...], ctx: AnyContext) -> str:
    """Return the namespace of the object, or of the Pods of a template; empty for a kind without one.

    Args:
        kinds: the kinds that the policy matches.
        ctx: the context of the object.

    Raises:
        NotKnownError: a file does not say it.
    """
    namespace = ctx.request.namespace
    if not namespace and (ctx.wrapper or any(kind.namespaced and kind.covers(ctx.request.kind) for kind in kinds)):
        raise NotKnownError(Skip("the namespace of the object is unknown"))
    return namespace


def _username(ctx: AnyContext) -> str:
    # A file has no sender, and that of a workload does not create its Pods.
    if not ctx.request.user or ctx.wrapper:
        raise NotKnownError(Skip("the user that creates the object is unknown"))
    return ctx.request.user


def _groups(ctx: AnyContext) -> list[str]:
    _username(ctx)
    return list(ctx.request.groups)


_REQUEST: Final[Mapping[str, tuple[Type, Callable[[AnyContext], Value]]]] = {
    "operation": (
        STRING,
        lambda ctx: objects.Operation.CREATE.value if ctx.wrapper else ctx.request.operation.value,
    ),
    "name": (STRING, lambda ctx: "" if ctx.wrapper else ctx.request.name),
    "subResource": (STRING, lambda ctx: ctx.request.subresource),
    "dryRun": (BOOL, lambda ctx: ctx.request.dry_run),
    "kind.group": (STRING, lambda ctx: "" if ctx.wrapper else ctx.request.kind.group),
    "kind.version": (STRING, lambda ctx: "v1" if ctx.wrapper else ctx.request.kind.version),
    "kind.kind": (STRING, lambda ctx: objects.POD.name if ctx.wrapper else ctx.request.kind.kind),
    "userInfo.username": (STRING, _username),
    "userInfo.groups": (STRINGS, _groups),
}


def _object(ctx: AnyContext, *, stores_quantities: bool) -> Value:
    if ctx.request.operation is objects.Operation.DELETE:
        return None
    if ctx.wrapper is None:
        return ctx.derived(_as_stored) if stores_quantities else ctx.subject.value
    pod = ctx.derived(_as_stored) if stores_quantities else ctx.subject.value
    if not isinstance(pod, dict):
        return pod
    metadata = pod.get("metadata")
    if ctx.request.namespace:
        metadata = {**(metadata if isinstance(metadata, dict) else {}), "namespace": ctx.request.namespace}
    whole = {"apiVersion": "v1", "kind": "Pod", **pod}
    return {**whole, "metadata": metadata} if metadata is not None else whole


def _old_object(ctx: AnyContext) -> Value:
    if ctx.wrapper is not None:
        return None
    return ctx.request.old_object


def _namespace_object(kinds: tuple[Kind, ...], ctx: AnyContext) -> Value:
    if not namespace_of(kinds, ctx):
        return None
    doubt = namespace_doubt(ctx)
    if doubt:
        raise NotKnownError(doubt)
    namespace = named(ctx.facts.list(objects.NAMESPACE), ctx.request.namespace)
    return namespace.value if namespace else None


def readers(
    kinds: tuple[Kind, ...], params: Iterable[str], *, stores_quantities: bool
) -> Mapping[str, Callable[[AnyContext], Value]]:
    """Return how variables and their fields are read by a policy for some kinds, with some parameters."""
    return {
        "object": lambda ctx: _object(ctx, stores_quantities=stores_quantities),
        "oldObject": _old_object,
        "namespaceObject": partial(_namespace_object, kinds),
        "request.namespace": partial(namespace_of, kinds),
        **{f"request.{name}": read for name, (_, read) in _REQUEST.items()},
        **{f"params.{name}": partial(_parameter, name) for name in params},
        **{f"gpu.{group}.{name}": word.read for group, subject in GPU.items() for name, word in subject.words.items()},
    }


def _parameter(name: str, ctx: AnyContext) -> Value:
    value = getattr(ctx.params, name)
    return list(value) if isinstance(value, tuple) else value


class Use(NamedTuple):
    """What expressions use: paths of variables and fields, and whether they read quantities of containers."""

    paths: frozenset[str]
    stores_quantities: bool

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """The fields of `gpu`, as group and name."""
        split = (path.split(".") for path in sorted(self.paths) if path.startswith("gpu."))
        return tuple((group, name) for _, group, name in split)

    @property
    def needs(self) -> tuple[Need, ...]:
        """The kinds that are looked up, with the fields that are read."""
        needs = [need for group, name in self.words for need in GPU[group].words[name].needs]
        if "namespaceObject" in self.paths:
            needs.append(_NAMESPACE_NEED)
        return tuple(dict.fromkeys(needs))

    @property
    def tables(self) -> tuple[Table[Any], ...]:
        """The tables that are read."""
        return tuple(dict.fromkeys(table for group, _ in self.words for table in GPU[group].tables))


_QUANTITIES: Final = frozenset({"resources", "limits", "requests"})


def used_by(expressions: Iterable[Expression], known: Environment) -> Use:
    """Return what some expressions use; a variable of a loop with the name of another variable counts as that one."""
    nodes = [node for expression in expressions for node in parts(expression.node)]
    names = {node.value for node in nodes if isinstance(node.value, str)}
    paths = {path_of(node) for node in nodes}
    return Use(frozenset(paths & {*known.variables, *known.fields}), stores_quantities=bool(names & _QUANTITIES))


# What of an object an UPDATE must change to be sent to the webhook (`changes-evaluated-fields`), and what cannot change.
_SENT: Final = frozenset({"spec", "apiVersion", "kind"})
_SENT_METADATA: Final = frozenset(
    {"labels", "annotations", "ownerReferences", "name", "generateName", "namespace", "uid", "creationTimestamp"}
)
_OBJECTS: Final = ("object", "oldObject")
_FIELD_KINDS: Final = frozenset({"select", "select?", "has"})


def unsent_field(node: Node, above: tuple[Node, ...] = ()) -> tuple[Node, str] | None:
    """Return the first part that reads a field whose change alone is not sent to the webhook, and its path.

    A comparison with null reads no field.
    """
    if node.kind == "name" and node.value in _OBJECTS:
        return _unsent(node, above)
    results = (unsent_field(part, (node, *above[:1])) for part in node.parts)
    return next((result for result in results if result is not None), None)


def _unsent(node: Node, above: tuple[Node, ...]) -> tuple[Node, str] | None:
    parent = above[0] if above else None
    if parent is None or parent.kind not in _FIELD_KINDS:
        null = parent is not None and parent.kind in {"==", "!="} and any(_is_null(part) for part in parent.parts)
        return None if null else (node, node.value)
    if parent.value in _SENT or (parent.value == "metadata" and parent.kind == "has"):
        return None
    if parent.value != "metadata":
        return parent, f"{node.value}.{parent.value}"
    field = above[1] if len(above) > 1 else None
    if field is not None and field.kind in _FIELD_KINDS and field.parts[0] is parent:
        return None if field.value in _SENT_METADATA else (field, f"{node.value}.metadata.{field.value}")
    return parent, f"{node.value}.metadata"


def _is_null(node: Node) -> bool:
    return node.kind == "const" and node.value is None


def never_concerns_without_gpus(conditions: Iterable[Expression], validations: Iterable[Expression]) -> bool:
    """Tell whether a policy has no finding on a Pod without accelerators, whatever else the Pod is."""
    return any(_without_gpus(condition.node) is False for condition in conditions) or all(
        _without_gpus(validation.node) is True for validation in validations
    )


_UNKNOWN: Final = object()
_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "==": lambda left, right: left == right,
    "!=": lambda left, right: left != right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def _without_gpus(node: Node) -> object:  # noqa: PLR0911 -- one return for each form
    """Return the value of an expression where `gpu.pod.gpus` is 0 and nothing else is known."""
    if node.kind == "const":
        return node.value
    if node.kind == "select" and path_of(node) == "gpu.pod.gpus":
        return 0.0
    inner = [_without_gpus(part) for part in node.parts]
    if node.kind in {"&&", "||"}:
        deciding = node.kind == "||"
        if any(value is deciding for value in inner):
            return deciding
        return (not deciding) if all(value is (not deciding) for value in inner) else _UNKNOWN
    if node.kind == "!" and isinstance(inner[0], bool):
        return not inner[0]
    if node.kind == "if" and isinstance(inner[0], bool):
        return inner[1] if inner[0] else inner[2]
    if node.kind in _COMPARISONS and all(isinstance(value, int | float) for value in inner):
        left, right = inner
        return _COMPARISONS[node.kind](left, right)  # type: ignore[arg-type] # numbers, by the line above
    return _UNKNOWN


def _as_stored(subject: Field, _ctx: AnyContext) -> Value:
    """Return a Pod whose containers have quantities as the API server writes them, such as "1" for 1 and 1000m."""
    pod: Value = subject.value
    spec = pod.get("spec") if isinstance(pod, dict) else None
    if not isinstance(spec, dict):
        return pod
    changed = {
        key: [_container(container) for container in spec[key]]
        for key in ("containers", "initContainers")
        if isinstance(spec.get(key), list)
    }
    return {**pod, "spec": {**spec, **changed}}


def _container(container: Value) -> Value:
    resources = container.get("resources") if isinstance(container, dict) else None
    if not isinstance(resources, dict):
        return container
    changed = {
        key: {name: _stored(amount) for name, amount in dict.items(resources[key])}
        for key in ("limits", "requests")
        if isinstance(resources.get(key), dict)
    }
    return {**container, "resources": {**resources, **changed}}


_BINARY: Final = ("Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = {18: "E", 15: "P", 12: "T", 9: "G", 6: "M", 3: "k", 0: "", -3: "m", -6: "u", -9: "n"}
_POWERS: Final = {suffix: power for power, suffix in _DECIMAL.items()}
_STEP: Final = 1024
_WRITTEN: Final = re.compile(r"[+-]?0*([0-9]*)(?:\.([0-9]*))?(.*)", re.DOTALL)
# The API server keeps the text of a quantity with at most so many digits, if the text is nearly canonical.
_MOST_DIGITS, _MOST_BINARY_DIGITS = 18, 14


_LONGEST_CACHED: Final = 24  # characters, so that the cache is small whatever objects contain


def _stored(written: Value) -> Value:
    """Write a quantity as the API server stores it; a value that is not a quantity stays as it is."""
    if type(written) is str and len(written) <= _LONGEST_CACHED:
        return _stored_text(written)
    if isinstance(written, bool) or not isinstance(written, str | int | float):
        return written
    return _written(written)


@lru_cache(maxsize=2_048)
def _stored_text(written: str) -> str:
    return str(_written(written))


def _written(written: str | float) -> str | float:
    """Write a quantity as the API server stores it; a text that is not a quantity stays as it is.

    Source: `k8s.io/apimachinery/pkg/api/resource/quantity.go`, v0.36 (ParseQuantity, CanonicalizeBytes).
    """
    try:
        amount = Fraction(quantity.parse(written))
    except quantity.QuantityError:
        return written
    text = written.strip() if isinstance(written, str) else str(written)
    whole, decimals, suffix = _WRITTEN.fullmatch(text).groups("")  # type: ignore[union-attr] # matches any text
    if not amount:
        return "0"
    return text if _is_kept(whole or "0", decimals, suffix) else _canonical(amount, suffix)


def _is_kept(whole: str, decimals: str, suffix: str) -> bool:
    """Tell whether the API server keeps the text of a quantity."""
    digits = whole + decimals
    if suffix in _BINARY:
        exponent = 10 * (_BINARY.index(suffix) + 1)
        return not decimals and len(whole) + exponent * 3 // 10 <= _MOST_BINARY_DIGITS and int(whole) % 8 != 0
    power = _POWERS[suffix] if suffix in _POWERS else int(suffix[1:])
    scale = power - len(decimals)
    is_kept = len(digits) <= _MOST_DIGITS and scale >= min(_DECIMAL) and scale % 3 == 0
    return is_kept and not digits.endswith("000") and digits[0] != "0"


def _canonical(amount: Fraction, suffix: str) -> str:
    if suffix in _BINARY and abs(amount) >= _STEP and amount.denominator == 1:
        whole, power = int(amount), -1
        while whole % _STEP == 0 and power < len(_BINARY) - 1:
            whole, power = whole // _STEP, power + 1
        return f"{whole}{_BINARY[power] if power >= 0 else ''}"
    by_exponent = suffix not in _POWERS and suffix not in _BINARY
    power = next(power for power in _DECIMAL if (amount / Fraction(10) ** power).denominator == 1)
    number = int(amount / Fraction(10) ** power)
    return f"{number}{(f'e{power}' if power else '') if by_exponent else _DECIMAL[power]}"
