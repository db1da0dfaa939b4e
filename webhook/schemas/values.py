"""Validate values against their schema, CEL rules excepted.

Sources: kube-openapi `pkg/validation/validate` (schema, type, object_validator, slice_validator, validator, values) at
the version of Kubernetes v1.36; apiextensions-apiserver v0.36 `pkg/apiserver/validation`.

Source: kube-openapi `pkg/validation/strfmt` at the version of Kubernetes v1.36; which formats count:
apiextensions-apiserver v0.36 `pkg/apiserver/validation/formats.go`.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.cel.patterns import refuses
from gpugate.policies.sdk import quantity
from gpugate.webhook.schemas import wording
from gpugate.webhook.schemas.wording import Fault, SchemaProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gpugate.policies.sdk.field import Path
    from gpugate.webhook.schemas.table import Node

_TIME: Final = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
    r"(?:T(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})(?:[.,][0-9]+)?"
    r"(?:Z|[+-](?P<hours>[0-9]{2}):?(?P<minutes>[0-9]{2})))",
    re.ASCII | re.IGNORECASE,
)
_DATE: Final = re.compile(r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})", re.ASCII)
_UUID: Final = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


def has_format(name: str, text: str) -> bool:
    """Tell whether a text has the format of a name."""
    match name.replace("-", ""):
        case "datetime":
            return _is_date(_TIME.fullmatch(text))
        case "date":
            return _is_date(_DATE.fullmatch(text))
        case "uuid":
            return _UUID.fullmatch(text) is not None
        case "ipv4" | "ipv6" | "cidr":
            return _is_address(name, text)
    return True


def _is_date(match: re.Match[str] | None) -> bool:
    if match is None:
        return False
    import datetime as dt  # noqa: PLC0415 -- few objects hold a time, and it costs start-up time

    parts = {name: int(part) for name, part in match.groupdict().items() if part}
    try:
        dt.date(parts["year"] or 1, parts["month"], parts["day"])
    except ValueError:
        return False
    return parts.get("hour", 0) < 24 and parts.get("minute", 0) < 60 and parts.get("second", 0) < 60


def _is_address(name: str, text: str) -> bool:
    import ipaddress  # noqa: PLC0415 -- none of the bundled definitions needs it

    try:
        if name == "cidr":
            return bool(ipaddress.ip_network(text, strict=False)) and "/" in text
        return ipaddress.ip_address(text).version == int(name[-1])
    except ValueError:
        return False


_RANGES: Final = {"int32": 2**31, "int64": 2**63, "": 2**63}
_EXACT: Final = 2**53 - 1  # the API server takes no greater number with a decimal point or an exponent for a whole one


class Values:
    """Yields the faults of values."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes

    def faults(self, value: Any, schema: int, path: Path = ()) -> Iterator[Fault]:
        """Yield what is wrong with a value and what is in it."""
        node = self._nodes[schema]
        if not _fits(value, node):
            yield Fault(wording.of_type(path, value, node), path, blocking=True)
            return
        if isinstance(value, dict):
            yield from self._object(value, node, path)
        elif isinstance(value, list):
            yield from self._list(value, node, path)
        elif isinstance(value, str):
            yield from self._text(value, node, path)
        elif _is_number(value):
            yield from _number(value, node, path)
        if node.enum and not any(_is_same(value, allowed) for allowed in node.enum):
            yield Fault(wording.of_enum(path, value, node), path, blocking=True)
        if node.all_of or node.any_of or node.one_of or node.none_of is not None:
            yield from self._nested(value, node, path)

    def _object(self, value: dict[str, Any], node: Node, path: Path) -> Iterator[Fault]:
        yield from _sized(len(value), (node.min_properties, node.max_properties), "members", path)
        for key, member in value.items():
            child = node.properties.get(key, node.values)
            if child is not None:
                yield from self.faults(member, child, (*path, key))
        for key in node.required:
            if key not in value:
                wanted = self._nodes[node.properties[key]] if key in node.properties else None
                yield Fault(wording.missing((*path, key), wanted), path, blocking=True)

    def _list(self, value: list[Any], node: Node, path: Path) -> Iterator[Fault]:
        if node.items is not None:
            for index, element in enumerate(value):
                yield from self.faults(element, node.items, (*path, index))
        yield from _sized(len(value), (node.min_items, node.max_items), "elements", path)

    def _text(self, value: str, node: Node, path: Path) -> Iterator[Fault]:
        if node.max_length is not None and len(value) > node.max_length:
            yield Fault(wording.too_long(path, len(value), node.max_length), path, blocking=True)
        elif node.min_length is not None and len(value) < node.min_length:
            yield Fault(wording.too_short(path, len(value), node.min_length), path)
        elif node.pattern and refuses(node.pattern, value):
            yield Fault(wording.of_pattern(path, value, node.pattern), path)
        if node.format and not has_format(node.format, value):
            yield Fault(wording.of_format(path, value, node.format), path)

    def _nested(self, value: Any, node: Node, path: Path) -> Iterator[Fault]:
        for nested in node.all_of:
            yield from self.faults(value, nested, path)
        if node.any_of and not any(self._valid(value, nested, path) for nested in node.any_of):
            yield Fault(SchemaProblem(path, "fits none of the forms that the schema allows (anyOf)"), path)
        fitting = sum(self._valid(value, nested, path) for nested in node.one_of)
        if node.one_of and fitting != 1:
            yield Fault(
                SchemaProblem(path, f"fits {fitting or 'none'} of the forms of which one must fit (oneOf)"), path
            )
        if node.none_of is not None and self._valid(value, node.none_of, path):
            yield Fault(SchemaProblem(path, "has a form that the schema forbids (not)"), path)

    def _valid(self, value: Any, schema: int, path: Path) -> bool:
        return next(self.faults(value, schema, path), None) is None


def _fits(value: Any, node: Node) -> bool:
    """Tell whether a value has the type of its schema."""
    if value is None:
        return node.nullable or not (node.type or node.int_or_string)
    if node.quantity:
        return quantity.parse_or_none(value) is not None
    if node.int_or_string:
        return isinstance(value, str) or _is_whole(value)
    fits = _TYPES.get(node.type)
    return fits is None or fits(value)


def _is_same(value: Any, allowed: Any) -> bool:
    alike = type(value) is type(allowed) or (_is_number(value) and _is_number(allowed))
    return bool(alike and value == allowed)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_whole(value: Any) -> bool:
    if isinstance(value, float):
        return value.is_integer() and abs(value) <= _EXACT
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_whole,
    "number": _is_number,
}


def _number(value: float, node: Node, path: Path) -> Iterator[Fault]:
    most = _RANGES.get(node.format if node.type == "integer" else "", 2**63)
    if node.type == "integer" and not -most <= value < most:
        yield Fault(wording.out_of_range(path, value, node.format or "int64"), path)
    if node.maximum is not None and (value > node.maximum or (node.exclusive_maximum and value == node.maximum)):
        yield Fault(wording.too_great(path, value, node.maximum, exclusive=node.exclusive_maximum), path)
    if node.minimum is not None and (value < node.minimum or (node.exclusive_minimum and value == node.minimum)):
        yield Fault(wording.too_small(path, value, node.minimum, exclusive=node.exclusive_minimum), path)
    if node.multiple_of and not _is_multiple(value, node.multiple_of):
        yield Fault(SchemaProblem(path, f"{value} is not a multiple of {node.multiple_of}"), path)


def _is_multiple(value: float, of: float) -> bool:
    try:
        return math.isclose(value / of, round(value / of), abs_tol=1e-9)
    except (OverflowError, ValueError):
        return True  # too great to tell


def _sized(size: int, limits: tuple[int | None, int | None], units: str, path: Path) -> Iterator[Fault]:
    least, most = limits
    if least is not None and size < least:
        yield Fault(wording.too_few(path, size, least, units), path)
    if most is not None and size > most:
        yield Fault(wording.too_many(path, size, most, units), path, blocking=True)
