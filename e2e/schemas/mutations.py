"""Changes valid objects at random, as people do by mistake and as nobody would."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator

Json = Any  # Any: the JSON edge
Where = tuple[Any, Any]  # an object or a list, and a key or an index of it

STRANGERS: tuple[Json, ...] = (
    None, "", "x", "0", "1", "-1", "30d", "10%", "Never", "1.5", "a/b/c", "ä", " ", "x" * 400, "true", "True", "64",
    0, 1, -1, 2, 101, 65_536, 2**31, 2**31 - 1, -(2**31) - 1, 2**53, 2**63 - 1, 0.5, 1e30, True, False,
    [], {}, [""], [None], {"": ""}, {"x": None}, {"a": {"b": []}}, ["a", "a"], [{}], [{}, {}],
)  # fmt: skip
TEXTS: tuple[Callable[[str], str], ...] = (
    str.upper, str.lower, str.title, lambda t: t + " ", lambda t: " " + t, lambda t: t + "x", lambda t: t[:-1],
    lambda t: t + "\n", lambda t: t.replace("/", "."), lambda t: t * 30, lambda t: t + "/", lambda t: "-" + t, lambda t: t + "-",
    lambda t: t.replace(".", "-"), lambda t: "karpenter.sh/" + t, lambda t: "karpenter.k8s.aws/" + t, lambda t: t + "@v1", lambda _: "",
)  # fmt: skip
KEYS: tuple[str, ...] = (
    "karpenter.sh/nodepool", "karpenter.sh/x", "kubernetes.io/hostname", "node.kubernetes.io/x", "sub.karpenter.k8s.aws/x",
    "eks:eks-cluster-name", "kubernetes.io/cluster/x", "a b", "-a", "a" * 64, "", "UPPER", "x/y/z", "description", "type", "name",
)  # fmt: skip


def mutated(obj: dict[str, Any], words: dict[str, list[Json]], chance: random.Random) -> dict[str, Any]:
    """Return a copy with one to three changes.

    Args:
        obj: the object; its head and its place stay as they are.
        words: for each key that occurs anywhere, values that stand behind it somewhere.
        chance: what decides.
    """
    changed = copy.deepcopy(obj)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        places = list(_places(changed))
        if places:
            chance.choice(_CHANGES)(*chance.choice(places), words, chance)
    return changed


def words_of(objects: list[dict[str, Any]]) -> dict[str, list[Json]]:
    """Collect the values behind each key of some objects."""
    found: dict[str, dict[str, Json]] = {}
    for obj in objects:
        for holder, key in _places(obj):
            if isinstance(key, str):
                found.setdefault(key, {})[json.dumps(holder[key], sort_keys=True)] = holder[key]
    return {key: list(values.values()) for key, values in sorted(found.items())}


def _places(obj: dict[str, Any]) -> Iterator[Where]:
    """Yield every place within the spec, and the labels, annotations and name."""
    if "spec" in obj:
        yield from _within(obj, "spec")
    for key in ("name", "labels", "annotations"):
        if key in obj["metadata"]:
            yield from _within(obj["metadata"], key)


def _within(holder: Any, key: Any) -> Iterator[Where]:
    yield holder, key
    value = holder[key]
    for inner in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from _within(value, inner)


def _remove(holder: Any, key: Any, _: Any, __: random.Random) -> None:
    del holder[key]


def _replace(holder: Any, key: Any, _: Any, chance: random.Random) -> None:
    holder[key] = copy.deepcopy(chance.choice(STRANGERS))


def _reword(holder: Any, key: Any, _: Any, chance: random.Random) -> None:
    value = holder[key]
    if isinstance(value, str):
        holder[key] = chance.choice(TEXTS)(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        holder[key] = value + chance.choice((-1, 1, 10, 1000, -1000))


def _misspell(holder: Any, key: Any, _: Any, chance: random.Random) -> None:
    if isinstance(key, str) and len(key) > 2:
        cut = chance.randrange(1, len(key))
        name = chance.choice(
            (key.lower(), key + "s", key[:cut] + key[cut + 1 :], key[:cut] + key[cut - 1] + key[cut:], key.capitalize())
        )
        holder[name] = holder.pop(key)


def _repeat(holder: Any, key: Any, _: Any, chance: random.Random) -> None:
    value = holder[key]
    if isinstance(value, list) and value:
        value.extend(copy.deepcopy(value[:1]) * chance.choice((1, 1, 1, 50, 120)))


def _insert(holder: Any, key: Any, words: dict[str, list[Json]], chance: random.Random) -> None:
    """Write a member that stands elsewhere, or one that stands nowhere."""
    value = holder[key]
    if isinstance(value, dict):
        name = chance.choice((chance.choice(list(words)), chance.choice(KEYS)))
        value[name] = copy.deepcopy(chance.choice((*words.get(name, ()), *STRANGERS)))


def _exchange(holder: Any, key: Any, words: dict[str, list[Json]], chance: random.Random) -> None:
    """Take another value that stands behind the same key somewhere."""
    if isinstance(key, str) and key in words:
        holder[key] = copy.deepcopy(chance.choice(words[key]))


_CHANGES = (_remove, _replace, _replace, _reword, _reword, _misspell, _repeat, _insert, _insert, _exchange)
