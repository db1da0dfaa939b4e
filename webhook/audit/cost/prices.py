"""Prices of node hours by instance type and capacity: list prices with a discount, or those of a user's table."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, NamedTuple

from gpugate.policies.engine.config import GpugateError, near_misses
from gpugate.policies.sdk.quantity import type_name
from gpugate.webhook.manifests.bounded_file import MAX_BYTES
from gpugate.webhook.manifests.documents import Document, Positions, encoding, read_bytes
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from gpugate.policies.data.instance_types import InstanceTypes
    from gpugate.policies.sdk.catalogue import InstanceType
    from gpugate.policies.sdk.field import Json

PLACE: Final = "us-east-1"
ON_DEMAND: Final = "on-demand"
CAPACITIES: Final = (ON_DEMAND, "spot", "reserved")
"""The values of the label `karpenter.sh/capacity-type` (Karpenter v1.14)."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of nodes by instance type, in USD an hour.

    Attributes:
        catalogue: EC2's types, with what they cost on demand in `PLACE`.
        own: the user's prices, which win; a type may be one that the catalogue does not know.
        source: the name of the user's table; empty where there is none.
        types: the platform's own types by name, with the price of some.
        by_capacity: the user's prices of (type, capacity), which win over `own`.
        discounts: capacity -> the fraction of the list price that is not paid.
    """

    catalogue: InstanceTypes
    own: Mapping[str, Fraction] = field(default_factory=dict)
    source: str = ""
    by_capacity: Mapping[tuple[str, str], Fraction] = field(default_factory=dict)
    discounts: Mapping[str, Fraction] = field(default_factory=dict)
    types: Mapping[str, InstanceType] = field(default_factory=dict)

    def extended(self, types: Iterable[InstanceType]) -> Prices:
        """Return the prices with the platform's own types."""
        return replace(self, types={entry.name: entry for entry in types})

    def of(self, instance_type: str, capacity: str = ON_DEMAND) -> Fraction | None:
        """Return the price of a type; None if it is unknown."""
        own = self.by_capacity.get((instance_type, capacity), self.own.get(instance_type))
        if own is not None:
            return own
        described = self.types.get(instance_type)
        if described is not None and described.usd_per_hour is not None:
            return Fraction(str(described.usd_per_hour))
        position = self.catalogue.positions.get(instance_type)
        price = None if position is None else self.catalogue.prices[position]
        # By way of its text, so that 21.957642 is exactly that and sums do not depend on their order.
        return None if price is None else Fraction(str(price)) * (1 - self.discounts.get(capacity, Fraction(0)))

    def is_listed(self, instance_type: str, capacity: str = ON_DEMAND) -> bool:
        """Tell whether the price of a type is the catalogue's, which is that of one place."""
        described = self.types.get(instance_type)
        has_own = instance_type in self.own or (instance_type, capacity) in self.by_capacity
        return not has_own and (described is None or described.usd_per_hour is None)

    def is_for(self, instance_type: str, capacity: str) -> bool:
        """Tell whether the price is one of this capacity, and not the list price of on-demand nodes."""
        return capacity == ON_DEMAND or capacity in self.discounts or not self.is_listed(instance_type, capacity)

    def __str__(self) -> str:
        listed = f"on-demand list prices, {PLACE}, {self.catalogue.date}"
        if self.discounts:
            parts = ", ".join(f"{name} {float(part * 100):g}%" for name, part in sorted(self.discounts.items()))
            listed += f", with a discount of {parts}"
        own = {*self.own, *(name for name, _ in self.by_capacity)}
        priced = sum(entry.usd_per_hour is not None and name not in own for name, entry in self.types.items())
        sources = [f"{self.source} for {_counted(len(own))}"] if self.source else []
        sources += [f"the catalogue of the platform for {_counted(priced)}"] if priced else []
        return f"{', '.join(sources)}; for the others {listed}" if sources else listed


def _counted(count: int) -> str:
    return f"{count} instance type{'' if count == 1 else 's'}"


_COLUMNS: Final = ("type", "usd_per_hour")
_CAPACITY: Final = "capacity"
_EXAMPLE: Final = "write a list of `- {type: p5.48xlarge, usd_per_hour: 40.5}`"
_DECIMAL: Final = re.compile(r"\d{1,9}(?:\.\d{1,12})?")
_MOST_ERRORS: Final = 20


class PriceTableError(GpugateError):
    """A table of prices is refused; the text has a line for each mistake, which begins with file and line."""


class _Row(NamedTuple):
    line: int
    type: str
    price: str
    """As it is written; what is no number is refused later."""
    capacity: str = ""


@dataclass(frozen=True, slots=True)
class PriceTable:
    """A user's prices in USD an hour by instance type, and sentences about types that are not in the catalog.

    `by_capacity` are the prices that are for one capacity only, by type and capacity.
    """

    source: str
    prices: Mapping[str, Fraction]
    remarks: tuple[str, ...] = ()
    by_capacity: Mapping[tuple[str, str], Fraction] = field(default_factory=dict)


def read_price_table(path: Path, known: Iterable[str]) -> PriceTable:
    """Read a table; a name that ends in `.csv` is CSV, others are YAML or JSON.

    Args:
        path: the file.
        known: the types that the catalogue or the cluster has. Others are kept, because a platform may have machines of
            its own, and remarked upon, because they may be misspelt.

    Raises:
        PriceTableError: the file cannot be read; a key, a column or a price is wrong; a type stands twice.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise PriceTableError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    if len(data) > MAX_BYTES:
        raise PriceTableError(f"{path}: larger than {MAX_BYTES >> 20} MiB")
    mistakes: list[str] = []
    rows = tuple((_csv if path.suffix.lower() == ".csv" else _yaml)(str(path), data, mistakes))
    prices = _prices(str(path), rows, mistakes)
    if not mistakes and not prices:
        mistakes.append(f"{path}: contains no price: {_EXAMPLE}, or CSV with the columns {','.join(_COLUMNS)}")
    if mistakes:
        reported = mistakes[:_MOST_ERRORS]
        more = [f"{path}: and {len(mistakes) - len(reported)} more"] if len(mistakes) > len(reported) else []
        raise PriceTableError("\n".join(reported + more))
    return PriceTable(
        str(path),
        {kind: price for (kind, capacity), price in prices.items() if not capacity},
        tuple(_unknown(str(path), rows, frozenset(known))),
        {key: price for key, price in prices.items() if key[1]},
    )


def _prices(source: str, rows: Iterable[_Row], mistakes: list[str]) -> dict[tuple[str, str], Fraction]:
    prices: dict[tuple[str, str], Fraction] = {}
    lines: dict[tuple[str, str], int] = {}
    for row in rows:
        if not row.type:
            mistakes.append(f"{source}:{row.line}: missing key `type`")
        elif row.capacity and row.capacity not in CAPACITIES:
            allowed = ", ".join(CAPACITIES)
            mistakes.append(
                f"{source}:{row.line}: unknown capacity {row.capacity[:40]}: write one of {allowed}, or leave it out"
            )
        elif (key := (row.type, row.capacity)) in lines:
            mistakes.append(f"{source}:{row.line}: {row.type} already has a price on line {lines[key]}")
        elif not _DECIMAL.fullmatch(row.price) or not Fraction(row.price):
            written = row.price[:40] or "nothing"
            mistakes.append(
                f"{source}:{row.line}: invalid price of {row.type}: {written}: write USD per hour as a number above 0, "
                "such as 40.5"
            )
        else:
            prices[row.type, row.capacity] = Fraction(row.price)
        lines.setdefault((row.type, row.capacity), row.line)
    return prices


def _unknown(source: str, rows: Iterable[_Row], known: frozenset[str]) -> Iterator[str]:
    for row in rows:
        if row.type not in known:
            near = near_misses(row.type, known)
            meant = f"did you mean {near[0]}?" if near else "it is used for nodes with this label"
            yield f"{source}:{row.line}: unknown instance type {row.type}; {meant}"


def _csv(source: str, data: bytes, mistakes: list[str]) -> Iterator[_Row]:
    try:
        text = data.decode(encoding(data))
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        header = [name.strip() for name in next(reader, [])]
        if sorted(header) not in (sorted(_COLUMNS), sorted((*_COLUMNS, _CAPACITY))):
            mistakes.append(f"{source}:1: the columns are {','.join(header)[:80]}: write {','.join(_COLUMNS)}")
            return
        for cells in reader:
            row = [cell.strip() for cell in cells]
            if not any(row) or row[0].startswith("#"):
                continue
            if len(row) != len(header):
                mistakes.append(f"{source}:{reader.line_num}: has {len(row)} cells: write {','.join(header)}")
                continue
            named = dict(zip(header, row, strict=True))
            yield _Row(reader.line_num, named["type"], named["usd_per_hour"], named.get(_CAPACITY, ""))
    except UnicodeDecodeError as error:
        mistakes.append(f"{source}: not UTF-8 text at byte {error.start}: save it as UTF-8")
    except csv.Error as error:
        mistakes.append(f"{source}: not CSV: {error}")


def _yaml(source: str, data: bytes, mistakes: list[str]) -> Iterator[_Row]:
    for document in read_bytes(source, data):
        if isinstance(document, Problem):
            mistakes.append(f"{source}:{document.line}: {document.message}: {document.remedy}")
        elif isinstance(document.value, list):
            places = Positions(document)
            for index, entry in enumerate(document.value):
                yield from _entry(source, places.find((index,)).line, entry, mistakes)
        else:
            mistakes.append(f"{source}:{_first_line(document)}: is {type_name(document.value)}: {_EXAMPLE}")


def _first_line(document: Document) -> int:
    return Positions(document).find(()).line


def _entry(source: str, line: int, entry: Json, mistakes: list[str]) -> Iterator[_Row]:
    if not isinstance(entry, dict):
        mistakes.append(f"{source}:{line}: is {type_name(entry)}: {_EXAMPLE}")
        return
    for key in entry.keys() - {*_COLUMNS, _CAPACITY}:
        near = near_misses(key, (*_COLUMNS, _CAPACITY))
        meant = f"; did you mean `{near[0]}`?" if near else ""
        mistakes.append(f"{source}:{line}: unknown key `{key[:40]}`{meant}")
    missing = [key for key in _COLUMNS if key not in entry]
    if missing:
        mistakes.append(f"{source}:{line}: missing key `{'` and `'.join(missing)}`")
    if not isinstance(entry.get("type", ""), str):
        mistakes.append(f"{source}:{line}: the type is {type_name(entry['type'])}: put it in quotes")
    elif entry.keys() - {_CAPACITY} == set(_COLUMNS):
        capacity = entry.get(_CAPACITY, "")
        written = capacity.strip() if isinstance(capacity, str) else type_name(capacity)
        yield _Row(line, str(entry["type"]).strip(), _written(entry["usd_per_hour"]), written)


def _written(value: Json) -> str:
    """Write a number without an exponent; what is none, as what it is, which no price looks like."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return type_name(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return f"{value:.12f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
