"""Strategic merge patches that remember where each value is written.

Source: `k8s.io/apimachinery` v0.36 pkg/util/strategicpatch; the keys of lists are those of `k8s.io/api` core/v1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.sdk.field import Field, is_unknown

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.field import Json, Path

# The key by which a strategic merge patch finds an element of a list; other lists are replaced.
_MERGE_KEYS: Final = {
    **dict.fromkeys(("containers", "env", "imagePullSecrets", "initContainers", "schedulingGates", "volumes"), "name"),
    "volumeMounts": "mountPath",
}


class Merge:
    """Merges values of an object into those of its base.

    Attributes:
        origins: where the object has the values that it adds, by their paths in the merged value.
    """

    def __init__(self) -> None:
        self.origins: dict[Path, Path] = {}

    def patched(self, base: Json, patch: Json, at: Path, origin: Path) -> Json:
        """Return the base with a strategic merge patch; null removes, and lists merge by the key of their elements."""
        if is_unknown(base) and (isinstance(patch, dict) or str(at[-1]) in _MERGE_KEYS):
            return base
        if isinstance(patch, dict):
            merged = dict(base) if isinstance(base, dict) else {}
            for name, value in patch.items():
                if value is None:
                    merged.pop(name, None)
                else:
                    merged[name] = self.patched(merged.get(name), value, (*at, name), (*origin, name))
            if not isinstance(base, dict):
                self.origins[at] = origin
            return merged
        key = _MERGE_KEYS.get(str(at[-1]), "")
        if not key or not isinstance(patch, list) or not isinstance(base, list):
            self.origins[at] = origin
            return patch
        elements = list(base)
        places = {text_of(element, key): index for index, element in enumerate(elements)}
        for index, element in enumerate(patch):
            position = places.setdefault(text_of(element, key) or f" {index}", len(elements))
            elements += [None] if position == len(elements) else []
            elements[position] = self.patched(elements[position], element, (*at, position), (*origin, index))
        return elements


def text_of(value: Json, key: str) -> str:
    """Return the text of a member; empty if there is none."""
    return Field(value)[key].text


def change_at(value: Json, path: tuple[str, ...], change: Callable[[Json], Json]) -> Json:
    """Return a value with a change at a path; one that is not known, or of another shape, stays as it is."""
    if not path:
        return change(value)
    if value is not None and not isinstance(value, dict):
        return value
    own = value or {}
    return {**own, path[0]: change_at(own.get(path[0]), path[1:], change)}
