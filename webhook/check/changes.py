"""What one change makes of the text of a document."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from gpugate.policies.engine import patching
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Patch, Patches, Replacement
from gpugate.webhook.manifests.documents import Document, read_text
from gpugate.webhook.manifests.edit import edited
from gpugate.webhook.manifests.edit_tree import EditError, Style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.request import Request
    from gpugate.webhook.manifests.objects import Manifest
    from gpugate.webhook.report.located import Located


def changed(document: Document, manifest: Manifest, group: Sequence[Located]) -> str:
    """Return the text of a document in which a fix, or all patches of mutations to an object, are made.

    Raises:
        EditError: the text cannot be changed safely.
        PatchError: a patch does not fit the object.
    """
    # Read again, because the items of a typed list were given their type.
    (fresh,) = (part for part in read_text(document.source, document.text) if isinstance(part, Document))
    root: dict[str, Json] = {"": fresh.value}
    at: Path = ("", *manifest.prefix)
    fix = group[0].fix
    if isinstance(fix, Replacement):
        if len(fix.objects) == 1:
            root, _ = patching.apply(root, Patch("set", at, fix.objects[0], ""))
            with suppress(EditError):
                return edited(document.text, root[""])
        return _replaced(document, manifest, fix)
    patches = fix.patches if isinstance(fix, Patches) else [patch for finding in group for patch in finding.patches]
    text, judged = document.text, with_defaults(manifest.request).object or {}
    for patch in patches:
        written = Field(root)[at].value
        fitting = _fitting(patch, written if isinstance(written, dict) else {}, judged, manifest.request)
        root, _ = patching.apply(root, replace(fitting, path=(*at, *fitting.path)))
        judged, _ = patching.apply(judged, patch)
        text = edited(text, root[""])
    return text


def _fitting(patch: Patch, written: dict[str, Json], judged: dict[str, Json], request: Request) -> Patch:
    """Return the patch for the object as it is written, which lacks the defaults of the object that was judged.

    A list that is there by default only is written out, because another list takes its place as a whole. Of an object
    that is, what no default brings back into one that is written is: a NodePool's `disruption` needs `consolidateAfter`.
    """
    for depth in range(1, len(patch.path) + 1):
        way = patch.path[:depth]
        inside = depth < len(patch.path) or patch.op == "append"
        if inside and isinstance(Field(judged)[way].value, list) and not Field(written)[way]:
            after, _ = patching.apply(judged, patch)
            return Patch("set", way, Field(after)[way].value, patch.reason)
        if inside and isinstance(Field(judged)[way].value, dict) and not Field(written)[way]:
            made, _ = patching.apply(written, patch)
            filled = Field(with_defaults(replace(request, object=made)).object)[way].mapping
            whole = Field(patching.apply(judged, patch)[0])[way].mapping
            if whole.keys() - filled.keys():
                own = Field(made)[way].mapping
                kept: Json = {key: whole[key] for key in whole if key in own or key not in filled}
                return Patch("set", way, kept, patch.reason)
    return patch


def _replaced(document: Document, manifest: Manifest, fix: Replacement) -> str:
    if manifest.prefix:
        raise EditError("the object is an item of a list")
    if document.text.lstrip()[:1] in {"{", "["}:
        raise EditError("the object is written in brackets")
    style = Style(newline="\r\n" if "\r\n" in document.text else "\n")
    lines = document.text.splitlines()
    # What stands above the first key is kept: the marker of the document, and comments.
    kept = next((number for number, line in enumerate(lines) if line.strip() and not line.startswith(("---", "#"))), 0)
    written = [line for obj in fix.objects for line in ("---", *style.block(obj, 0))]
    return "".join(line + style.newline for line in [*lines[:kept], *written[1:]])
