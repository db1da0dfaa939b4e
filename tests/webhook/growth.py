"""Measures how the cost of policies grows with the size of an object, for the library and for anybody's own policies.

`superlinear(catalog, cases, ...)` replicates every list, map and string of the objects in turn, and all lists of an
object at once, because a product of two lists is quadratic only when both grow. It returns what grew too fast. Cost is
CPU time, so that work inside C functions (`in` on a list, set operations, regular expressions) counts too. Sizes differ
by a factor of four rather than two, and what looks too fast is measured again, at last with objects twice as large, where
the share of a quadratic part is larger still: all three make the result robust on a busy machine, whose caches are shared.
"""

from __future__ import annotations

import datetime as dt
import gc
import time
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from gpugate.policies.engine.config import PolicyConfig
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.evaluate import evaluate
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.objects import Request
    from gpugate.policies.sdk.policy import Policy

TODAY: Final = dt.date(2026, 11, 21)
# The highest accepted growth of the cost when the size doubles.
MOST_PER_DOUBLING: Final = 2.5
_FACTOR: Final = 4
_MOST: Final = MOST_PER_DOUBLING**2
_REPEATS: Final = 12
# Strings grow by this many times as much as lists: their elements are characters.
_CHARACTERS: Final = 50
_IDENTIFYING: Final = ("name", "key", "id", "Name")


@dataclass(frozen=True, slots=True)
class Case:
    """An object to grow, and what else policies know when they evaluate it."""

    name: str
    request: Request
    context: tuple[Request, ...] = ()
    complete: bool = False
    config: PolicyConfig | None = None


class Growth(NamedTuple):
    """What was replicated, and the CPU seconds at the smaller and the larger size."""

    case: str
    grown: str
    smaller: float
    larger: float

    def __str__(self) -> str:
        times = self.larger / self.smaller
        return f"{self.case}: {self.grown}: {self.smaller * 1000:.1f} -> {self.larger * 1000:.1f} ms (x{times:.1f})"


def superlinear(
    catalog: tuple[Policy, ...],
    cases: Iterable[Case],
    *,
    count: int,
    floor: float,
    pairs: bool = False,
) -> Iterator[Growth]:
    """Yield what costs more than 2.5 times as much when its size doubles.

    The templates of an Argo workflow and the services of a Dynamo graph do not grow together with another list, because
    each is evaluated with what the object shares: templates times tolerations are its size, and `bounds.too_large`
    counts them so.

    Args:
        catalog: the policies to run.
        cases: objects that these policies read; each part of a kind is grown once, in the first case that has it.
        count: elements of the smaller size; the larger has four times as many.
        floor: CPU seconds below which a cost is not looked at.
        pairs: grow every pair of lists, rather than each value alone and all lists together.
    """
    rulesets: dict[bytes, Ruleset] = {}
    seen: set[tuple[str, ...]] = set()
    for case in cases:
        config = case.config or PolicyConfig()
        written = msgspec.json.encode(config)
        if written not in rulesets:
            rulesets[written] = bind(catalog, config)
        ruleset, obj = rulesets[written], _object(case)
        for paths in _selections(obj, pairs=pairs):
            for naming in _namings(paths, obj):
                key = (case.request.kind.kind, naming, *(erased(path, obj) for path in paths))
                if key in seen:
                    continue
                seen.add(key)
                if len(paths) > 1 and any(path[-2:] in {("spec", "templates"), ("spec", "services")} for path in paths):
                    continue
                found = _measured(ruleset, case, paths, naming, count, floor)
                if found:
                    yield found


def products(catalog: tuple[Policy, ...], pairs: Iterable[tuple[Case, Case]], *, floor: float) -> Iterator[Growth]:
    """Yield which of two objects costs too much, where the second is four times as large as the first in two lists.

    Each list of the second is four times as long. Its size is four times that of the first too, so that only a product
    of both lists costs more than that.
    """
    ruleset = bind(catalog, PolicyConfig())
    for smaller, larger in pairs:
        costs = _costs(ruleset, smaller, partial(_object, smaller), _object(larger), floor)
        if costs is not None:
            yield Growth(smaller.name, larger.name, *costs)


def parts(value: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    """Yield every value in an object with its path."""
    yield path, value
    members = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, member in members:
        yield from parts(member, (*path, key))


def erased(path: Path, obj: Json) -> str:
    """Write a path without list indices, and with the type of what is there."""
    return f"{'.'.join('*' if isinstance(part, int) else part for part in path)}:{type(_get(obj, path)).__name__}"


def replicated(obj: dict[str, Json], paths: Iterable[Path], count: int, *, distinct: bool) -> dict[str, Json]:
    """Return an object with so many more elements at each path, copied from those that are there.

    Args:
        obj: the object.
        paths: where lists, maps or strings are.
        count: how many elements to add.
        distinct: whether copies get names of their own; the n-th copies of two lists have names that fit together.
    """
    whole: Json = obj
    # Deeper ones first, so that what is inside an element is replicated with it.
    for path in sorted(paths, key=len, reverse=True):
        whole = _put(whole, path, _grown(_get(whole, path), count, distinct=distinct))
    return whole if isinstance(whole, dict) else {}


def _object(case: Case) -> dict[str, Json]:
    return case.request.object or {}


def _selections(obj: dict[str, Json], *, pairs: bool) -> Iterator[tuple[Path, ...]]:
    places = [(path, value) for path, value in parts(obj) if path and isinstance(value, str | list | dict) and value]
    lists = [path for path, value in places if isinstance(value, list | dict) and len(path) > 1]
    if pairs:
        yield from ((one, other) for n, one in enumerate(lists) for other in lists[n + 1 :] if _apart(one, other))
        return
    for path, _ in places:
        yield (path,)
    outermost = [path for path in lists if isinstance(_get(obj, path), list)]
    yield tuple(p for p in outermost if not any(p != q and p[: len(q)] == q for q in outermost))
    innermost = tuple(p for p in outermost if not any(p != q and q[: len(p)] == p for q in outermost))
    yield innermost


def _namings(paths: tuple[Path, ...], obj: dict[str, Json]) -> tuple[str, ...]:
    # Only elements of lists get names, so that without a list both would be the same object.
    lists = any(isinstance(_get(obj, path), list) for path in paths)
    return ("distinct", "same") if lists else ("same",)


def _apart(one: Path, other: Path) -> bool:
    shorter = min(len(one), len(other))
    return one[:shorter] != other[:shorter]


def _measured(
    ruleset: Ruleset, case: Case, paths: tuple[Path, ...], naming: str, count: int, floor: float
) -> Growth | None:
    obj = _object(case)
    if len(paths) == 1 and isinstance(_get(obj, paths[0]), str):
        count *= _CHARACTERS
    what = ", ".join(erased(path, obj).partition(":")[0] for path in paths)
    growth = None
    for size in (count, 2 * count):
        grown = partial(replicated, obj, paths, distinct=naming == "distinct")
        costs = _costs(ruleset, case, partial(grown, size), grown(_FACTOR * size), floor)
        if costs is None:
            return None
        growth = Growth(case.name, f"{what} ({naming} names)", *costs)
    return growth


def _costs(
    ruleset: Ruleset,
    case: Case,
    smaller_object: Callable[[], dict[str, Json]],
    larger_object: dict[str, Json],
    floor: float,
) -> tuple[float, float] | None:
    """Return the CPU seconds of two sizes where the larger costs too much, however often it is measured.

    The smaller object is made only when the larger costs more than the floor, which few do.
    """
    smaller = larger = float("inf")
    made: dict[str, Json] | None = None
    for _ in range(_REPEATS):
        larger = min(larger, _seconds(ruleset, case, larger_object))
        if larger < floor:
            return None
        made = smaller_object() if made is None else made
        smaller = min(smaller, _seconds(ruleset, case, made))
        if larger / smaller <= _MOST:
            return None
    return smaller, larger


def _seconds(ruleset: Ruleset, case: Case, obj: dict[str, Json]) -> float:
    request = with_defaults(replace(case.request, object=obj))
    facts = RunFacts((*case.context, request), complete=case.complete)
    enabled = gc.isenabled()
    # The collector's share depends on what else the process holds.
    gc.disable()
    started = time.process_time()
    try:
        evaluate(ruleset, request, facts, today=TODAY)
        return time.process_time() - started
    finally:
        if enabled:
            gc.enable()


def _grown(value: Json, count: int, *, distinct: bool) -> Json:
    if isinstance(value, list):
        return [*value, *(_named(value[n % len(value)], n, "values") if distinct else value[0] for n in range(count))]
    if isinstance(value, dict):
        items = list(value.items())
        return value | {f"{items[n % len(items)][0]}-{n}": items[n % len(items)][1] for n in range(count)}
    return value * count if isinstance(value, str) else value


def _named(value: Json, number: int, key: str) -> Json:
    """Copy an element of a list, and give it a name of its own."""
    if isinstance(value, dict):
        return {k: _named(member, number, k) for k, member in value.items()}
    if isinstance(value, list):
        return [_named(member, number, key) for member in value]
    own = key.endswith(_IDENTIFYING) or key in {"values", "requests", "reasons", "args", "command"}
    return f"{value}-{number}" if isinstance(value, str) and own else value


def _get(value: Json, path: Path) -> Json:
    for part in path:
        value = value[part]  # type: ignore[index, call-overload] # the path is one of this object
    return value


def _put(value: Json, path: Path, new: Json) -> Json:
    if not path:
        return new
    if isinstance(value, dict):
        return {**value, str(path[0]): _put(value[str(path[0])], path[1:], new)}
    if isinstance(value, list):
        return [_put(member, path[1:], new) if n == path[0] else member for n, member in enumerate(value)]
    return value
