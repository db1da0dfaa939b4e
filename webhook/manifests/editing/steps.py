"""Finds what to do, one step at a time, so that one value becomes another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpugate.policies.sdk.field import Json, Path


@dataclass(frozen=True, slots=True)
class Put:
    """Write a member of an object, or an element of a list, in place of the present one if there is one."""

    path: Path
    value: Json


@dataclass(frozen=True, slots=True)
class Insert:
    """Write a new element of a list, before the one that is there now, or at the end."""

    path: Path
    value: Json


@dataclass(frozen=True, slots=True)
class Drop:
    """Remove a member or an element."""

    path: Path


def first_step(now: Json, wanted: Json, path: Path = ()) -> Put | Insert | Drop | None:
    """Return the first step from one value to another; None when they mean the same."""
    if isinstance(now, dict) and isinstance(wanted, dict):
        return _in_object(now, wanted, path)
    if isinstance(now, list) and isinstance(wanted, list):
        return _in_list(now, wanted, path)
    return None if same(now, wanted) else Put(path, wanted)


def same(one: Json, other: Json) -> bool:
    """Tell whether two values are the same in JSON, where 1 is 1.0 and is not true."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _in_object(now: dict[str, Json], wanted: dict[str, Json], path: Path) -> Put | Insert | Drop | None:
    for key, value in now.items():
        if key in wanted:
            step = first_step(value, wanted[key], (*path, key))
            if step:
                return step
    for key in now:
        if key not in wanted:
            return Drop((*path, key))
    for key, value in wanted.items():
        if key not in now:
            return Put((*path, key), value)
    return None


def _in_list(now: list[Json], wanted: list[Json], path: Path) -> Put | Insert | Drop | None:
    shorter = min(len(now), len(wanted))
    start = next((index for index in range(shorter) if not same(now[index], wanted[index])), shorter)
    alike = 0
    while alike < shorter - start and same(now[-1 - alike], wanted[-1 - alike]):
        alike += 1
    if start + alike == len(now) == len(wanted):
        return None
    if start + alike >= len(now):
        return Insert((*path, start), wanted[start])
    if start + alike >= len(wanted):
        return Drop((*path, start))
    return first_step(now[start], wanted[start], (*path, start))
