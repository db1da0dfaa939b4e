"""Makes objects out of what a test gives: a file, an object in its place, or one of them with differences."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.config import ConfigError, parse
from gpugate.webhook.manifests.case_format import FromFile, Given, Merged
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.sdk.field import Json, Path
    from gpugate.webhook.policy_tests.cases import Case
    from gpugate.webhook.policy_tests.object_files import ObjectFiles

_MOST_BASES: Final = 8  # a base may itself have a base


class GivenObjects:
    """Reads what one test gives; objects that name no namespace are in `namespace`."""

    def __init__(self, case: Case, files: ObjectFiles, namespace: str) -> None:
        self._case = case
        self._files = files
        self._namespace = namespace

    def one(self, at: Path, given: Given) -> Manifest:
        """Return the one object that is given at a field of the test.

        Raises:
            CaseFileError: it is missing, is none, or is several.
        """
        return self._only(at, self.all(at, given))

    def _only(self, at: Path, found: Sequence[Manifest]) -> Manifest:
        if len(found) > 1:
            names = ", ".join(f"{each.request.kind.kind} {each.request.shown_name}" for each in found[:3])
            more = " ..." if len(found) > 3 else ""
            message = f"{len(found)} objects fit ({names}{more}): choose one with `{{file: ..., kind: ..., name: ...}}`"
            raise self._case.error(at, message)
        return found[0]

    def all(self, at: Path, given: Given, depth: int = 0) -> Sequence[Manifest]:
        """Return every object that is given at a field of the test; one at least.

        Raises:
            CaseFileError: it is missing or cannot be read.
        """
        if depth > _MOST_BASES:
            raise self._case.error(at, f"more than {_MOST_BASES} bases in each other: write the object out")
        if isinstance(given, str):
            return self._files.objects(self._case, at, given, self._namespace)
        if "apiVersion" in given or not given.keys() & {"file", "base", "patch"}:
            return self._inline(at, given)
        try:
            if "file" in given:
                return self._chosen(at, parse(given, FromFile, at))
            return [self._merged(at, parse(given, Merged, at), depth)]
        except ConfigError as error:
            raise self._case.error(error.path, error.message) from None

    def _inline(self, at: Path, given: dict[str, Json]) -> list[Manifest]:
        source = self._case.source.document
        found: list[Manifest] = []
        for part in objects(replace(source, value=given), namespace=self._namespace):
            if isinstance(part, Problem):
                raise self._case.error(at, f"{part.message}: {part.remedy}")
            if isinstance(part, Manifest):
                found.append(Manifest(source, ("tests", self._case.index, *at, *part.prefix), part.request))
        if not found:
            raise self._case.error(at, "not an object for the API server: write one with apiVersion and kind")
        return found

    def _chosen(self, at: Path, wanted: FromFile) -> list[Manifest]:
        held = self._files.objects(self._case, (*at, "file"), wanted.file, self._namespace)
        found = [
            each
            for each in held
            if wanted.kind in {"", each.request.kind.kind}
            and wanted.name in {"", each.request.name, each.request.generate_name}
            and wanted.namespace in {"", each.request.namespace}
        ]
        if not found:
            names = ", ".join(f"{each.request.kind.kind} {each.request.shown_name}" for each in held[:5])
            raise self._case.error(at, f"no object of {wanted.file} fits; it holds {names}")
        return found

    def _merged(self, at: Path, given: Merged, depth: int) -> Manifest:
        base = self._only((*at, "base"), self.all((*at, "base"), given.base, depth + 1))
        value = merged(base.request.object, given.patch)
        (changed,) = self._inline((*at, "patch"), value if isinstance(value, dict) else {})
        return Manifest(base.document, base.prefix, changed.request)


def merged(value: Json, patch: Json) -> Json:
    """Return a value with a JSON merge patch applied (RFC 7386, section 2); the value itself is left as it is."""
    if not isinstance(patch, dict):
        return patch
    made = dict(value) if isinstance(value, dict) else {}
    for key, member in patch.items():
        if member is None:
            made.pop(key, None)
        else:
            made[key] = merged(made.get(key), member)
    return made
