"""Compare fixed examples with the denied ones beside them: `fixed-x.yaml` and `bad-x.yaml`.

The denied example is mutated as in admission, and fixed by the policy for which the folder is named
(`pods/examples/some_policy`), or by every policy that the example expects. The fixed file contains the result.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.patching import PatchError, apply_all
from gpugate.policies.sdk.findings import Patches, Replacement
from gpugate.policies.sdk.objects import GroupVersionKind, Operation, Request
from gpugate.webhook.manifests.bounded_file import read_regular
from gpugate.webhook.manifests.documents import encoding
from gpugate.webhook.manifests.edit import same
from gpugate.webhook.report import yaml_text
from gpugate.webhook.report.located import DocumentLocations, Location
from gpugate.webhook.testing.cases import MOST_BYTES, CaseFileError, OutOfReachError, beside
from gpugate.webhook.testing.comparing import differing
from gpugate.webhook.testing.expect_comments import read_annotated
from gpugate.webhook.testing.results import Failure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from gpugate.policies.engine.verdict import Verdict
    from gpugate.policies.sdk.field import Json
    from gpugate.webhook.testing.expect_comments import Annotated
    from gpugate.webhook.testing.setup import Prepared

BAD: Final = "bad-"
FIXED: Final = "fixed-"


def bad_file(fixed: str) -> str:
    """Name the file that becomes a fixed one."""
    path = Path(fixed)
    return str(path.with_name(BAD + path.name.removeprefix(FIXED)))


def is_pair(fixed: str) -> bool:
    """Tell whether a file is a fixed example: by its name, and because there are denied examples beside it."""
    path = Path(fixed)
    return path.name.startswith(FIXED) and any(path.parent.glob(f"{BAD}*"))


def read_bad(fixed: str) -> Annotated:
    """Read the bad example that becomes a fixed one.

    Raises:
        CaseFileError: it is missing or cannot be read.
    """
    try:
        name = beside(fixed, Path(bad_file(fixed)).name)
    except OutOfReachError as error:
        raise CaseFileError(Location(fixed), str(error)) from None
    try:
        data = read_regular(Path(name), MOST_BYTES)
        return read_annotated(name, data.decode(encoding(data)))
    except OSError as error:
        reason = (error.strerror or "cannot be read").lower()
        raise CaseFileError(Location(fixed), f"{name}, which becomes this one, cannot be read: {reason}") from None
    except UnicodeDecodeError:
        raise CaseFileError(Location(name), "not UTF-8 text: save it as UTF-8") from None


def named_policies(fixed: str, bad: Annotated, known: Collection[str]) -> set[str]:
    """Return the policies whose fixes are made; `known` are the ids of all."""
    parts = Path(fixed).resolve().parts
    own = f"{parts[-4]}/{parts[-2]}".replace("_", "-") if len(parts) >= 4 else ""
    return {own} if own in known else {expectation.policy for expectation in bad.expected}


def becomes(bad: Prepared, policies: Collection[str], fixed: Annotated) -> Iterator[Failure]:
    """Yield the differences between the fixed example and the result of fixing the denied one."""
    location = DocumentLocations(fixed.manifests[0].document).find(())
    try:
        results = fixed_objects(bad.evaluate(), policies)
    except PatchError as error:
        yield Failure(f"the fixes of the bad example exclude each other: {error}", location)
        return
    got = [_defaulted(obj) for obj in results]
    wanted = [_defaulted(manifest.request.object) for manifest in fixed.manifests]
    if not same(list(wanted), list(got)):
        details = differing(_lines(wanted), _lines(got))
        yield Failure("the bad example becomes something else", location, tuple(details))


def fixed_objects(verdict: Verdict, policies: Collection[str]) -> list[dict[str, Json]]:
    """Return an object after its mutations and the fixes of some policies.

    Raises:
        PatchError: the fixes do not fit together.
    """
    obj = verdict.object or {}
    for _, mutation in verdict.template_patches:
        obj = apply_all(obj, (mutation.patch,))
    for finding in verdict.findings:
        if finding.policy not in policies:
            continue
        if isinstance(finding.fix, Replacement):
            return list(finding.fix.objects)
        if isinstance(finding.fix, Patches):
            obj = apply_all(obj, finding.fix.patches)
    return [obj]


def _defaulted(obj: dict[str, Json] | None) -> Json:
    if not obj:
        return {}
    kind = GroupVersionKind.of(str(obj.get("apiVersion", "")), str(obj.get("kind", "")))
    return with_defaults(Request(kind, Operation.CREATE, obj)).object


def _lines(objects: Sequence[Json]) -> list[str]:
    return [line for obj in objects for line in ("---", *yaml_text.block(obj).splitlines())]
