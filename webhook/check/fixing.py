"""Mends files: makes the changes that policies compute, in the text of the files."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine import patching
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.needs import Needs
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Patch, Patches, Replacement
from gpugate.webhook.check.ignores import ignores, sift
from gpugate.webhook.check.locate import Locator
from gpugate.webhook.check.session import judge
from gpugate.webhook.manifests.documents import Document, encoding, read_text
from gpugate.webhook.manifests.editing.edit import edited
from gpugate.webhook.manifests.editing.errors import EditError
from gpugate.webhook.manifests.editing.writing import Style
from gpugate.webhook.manifests.facts import RunFacts
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.request import Request
    from gpugate.webhook.check.options import Options
    from gpugate.webhook.manifests.inputs import Input
    from gpugate.webhook.report.located import Located

_ROUNDS: Final = 50  # each changes an object once; no object has so many things wrong


@dataclass(slots=True)
class MendedFile:
    """A file with its text before and after; `policies` are those whose changes were made, one entry for each."""

    file: Input
    before: str
    after: str
    codec: str
    policies: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)


def mend(
    files: Sequence[Input], facts: Sequence[Request], ruleset: Ruleset, options: Options, *, unsafe: bool
) -> list[MendedFile]:
    """Make every change that the findings in some files ask for, on their texts alone; nothing is written.

    One change can make another one necessary, so that the files are judged anew until none is left.

    Args:
        files: the files; one that cannot be read is left out.
        facts: what the other files of the run hold.
        ruleset: the rules in force.
        options: how to judge.
        unsafe: make the changes too that may alter scheduling or cost, and replace whole objects.
    """
    found = [_opened(file) for file in files]
    mended = [file for file in found if file is not None]
    needs, locator = Needs(ruleset.rules), Locator({rule.policy.id: rule.policy for rule in ruleset.rules})
    tried: set[object] = set()
    for _ in range(_ROUNDS):
        read = [(file, list(_documents(file, options))) for file in mended]
        manifests = [manifest for _, documents in read for _, held in documents for manifest in held]
        projected = (needs.project(with_defaults(manifest.request)) for manifest in manifests)
        known = RunFacts([*facts, *(fact for fact in projected if fact)], complete=options.complete_context)
        changed = False
        for file, documents in read:
            for document, held in reversed(documents):
                findings = list(_findings(document, held, ruleset, known, options, locator))
                changed |= _mend_document(file, document, findings, tried, unsafe=unsafe)
        if not changed:
            break
    return mended


def _opened(file: Input) -> MendedFile | None:
    data = file.read()
    if isinstance(data, Problem):
        return None
    codec = encoding(data)
    try:
        text = data.decode(codec)
    except UnicodeDecodeError:
        return None
    return MendedFile(file, text, text, codec)


def _documents(file: MendedFile, options: Options) -> Iterator[tuple[Document, list[Manifest]]]:
    for part in read_text(file.file.label, file.after):
        if isinstance(part, Document):
            found = objects(part, namespace=options.namespace, lenient=not file.file.explicit)
            yield part, [manifest for manifest in found if isinstance(manifest, Manifest)]


def _findings(
    document: Document,
    held: Iterable[Manifest],
    ruleset: Ruleset,
    facts: RunFacts,
    options: Options,
    locator: Locator,
) -> Iterator[tuple[Manifest, list[Located]]]:
    comments = list(ignores(document)) if options.ignores else []
    for manifest in held:
        located = locator.findings(manifest, judge(manifest, ruleset, facts, options))
        yield manifest, sift(located, comments, options.known, (), options.today)[0]


def _mend_document(
    file: MendedFile,
    document: Document,
    findings: Iterable[tuple[Manifest, list[Located]]],
    tried: set[object],
    *,
    unsafe: bool,
) -> bool:
    """Make the first change that is due in a document; tell whether one was made."""
    for manifest, located in findings:
        for group in _due(located, unsafe=unsafe):
            first = group[0]
            key = (file.file.name, first.object, [(f.policy, f.path, f.message) for f in group])
            if repr(key) in tried:
                continue
            tried.add(repr(key))
            try:
                text = _changed(document, manifest, group)
            except (EditError, patching.PatchError) as error:
                where = f"{file.file.label}:{first.place.line}"
                file.left.append(f"{where}: {', '.join(_policies(group))} is left to you: {error}")
                continue
            if text == document.text:
                continue
            after = document.start + len(document.text)
            file.after = file.after[: document.start] + text + file.after[after:]
            file.policies += _policies(group)
            return True
    return False


def _policies(group: Sequence[Located]) -> list[str]:
    return list(dict.fromkeys(finding.policy for finding in group))


def _due(located: Sequence[Located], *, unsafe: bool) -> Iterator[list[Located]]:
    """Yield what can be changed at once: all patches of mutations, which know of each other, then fix by fix."""
    patched = [finding for finding in located if finding.patches and not finding.exempt]
    if patched:
        yield patched
    for finding in located:
        if finding.fix is not None and (finding.safely_fixable or (unsafe and finding.unsafely_fixable)):
            yield [finding]


def _changed(document: Document, manifest: Manifest, group: Sequence[Located]) -> str:
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
