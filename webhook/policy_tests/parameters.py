"""Makes several tests out of one that has parameters."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.engine.config import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.policies.sdk.field import Json

MOST_COMBINATIONS: Final = 1_000
_NAMED: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def combinations(parametrize: Json) -> list[dict[str, Json]]:
    """Return the values that the parameters have together, one entry for each test.

    Args:
        parametrize: lists of values by name, which are combined in every way, or a list of combinations.

    Raises:
        ConfigError: it is neither, a list is empty, or there are too many; the path is within `parametrize`.
    """
    if isinstance(parametrize, dict):
        _refuse_names((), parametrize)
        lists: list[list[Json]] = []
        count = 1
        for name, values in parametrize.items():
            if not isinstance(values, list) or not values:
                raise ConfigError((name,), "must be a list of values with one at least")
            lists.append(values)
            count *= len(values)
        _refuse_many((), count)
        return [dict(zip(parametrize, values, strict=True)) for values in product(*lists)]
    if isinstance(parametrize, list) and parametrize:
        _refuse_many((), len(parametrize))
        found = [each for each in parametrize if isinstance(each, dict)]
        if len(found) == len(parametrize):
            for index, values in enumerate(found):
                _refuse_names((index,), values)
            return found
    raise ConfigError((), "must be lists of values by name, or a list of such objects as `{name: value}`")


def _refuse_names(path: tuple[str | int, ...], values: Mapping[str, Json]) -> None:
    for name in values:
        if name in {"true", "false"}:
            message = "is what YAML makes of a bare n, y, no, yes, off or on: choose another name for the parameter"
            raise ConfigError((*path, name), message)
        if not _NAMED.fullmatch(f"{{{name}}}"):
            raise ConfigError(
                (*path, name), "is no name: write letters, digits and _ only, so that `{NAME}` can stand for it"
            )


def _refuse_many(path: tuple[str | int, ...], count: int) -> None:
    if count > MOST_COMBINATIONS:
        raise ConfigError(path, f"makes {count:,} tests of one, and the most is {MOST_COMBINATIONS:,}: split it")


def substituted(value: Json, values: Mapping[str, Json]) -> Json:
    """Return a value with each `{NAME}` in its texts and keys replaced.

    A text that is nothing else becomes the parameter's value, whatever its type. Braces that name no parameter stay.
    """
    if isinstance(value, dict):
        return {_text(key, values): substituted(member, values) for key, member in value.items()}
    if isinstance(value, list):
        return [substituted(element, values) for element in value]
    if not isinstance(value, str):
        return value
    whole = _NAMED.fullmatch(value)
    if whole and whole[1] in values:
        return values[whole[1]]
    return _text(value, values)


def _text(text: str, values: Mapping[str, Json]) -> str:
    return _NAMED.sub(lambda found: shown(values[found[1]]) if found[1] in values else found[0], text)


def named(name: str, values: Mapping[str, Json]) -> str:
    """Name one of the tests: the values take their place in the name, or follow it where it has none for them."""
    if not values:
        return name
    made = _text(name, values)
    return made if made != name else f"{name} [{', '.join(map(shown, values.values()))}]"


def shown(value: Any) -> str:  # Any: a JSON value
    """Write a value as it reads in a text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
