"""Apply the fixes that policies compute to the text of files.

Each edit parses the text several times. To avoid quadratic time for thousands of objects in one list, each object is edited
in a text without the other items.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from msgspec import field

from gpugate.policies.engine import patching
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.ruleset import Needs
from gpugate.policies.sdk.field import Field
from gpugate.policies.sdk.findings import Patch, Patches, Replacement
from gpugate.policies.sdk.structs import MutableStruct, replace
from gpugate.webhook.check.ignores import ignores, sift
from gpugate.webhook.check.locate import Locator
from gpugate.webhook.check.session import Evaluation
from gpugate.webhook.check.templates import marked
from gpugate.webhook.manifests.documents import Document, encoding, read_text
from gpugate.webhook.manifests.edit import edited, newline_of, same
from gpugate.webhook.manifests.edit_tree import EditError, Style, has_comment, parse, walk
from gpugate.webhook.manifests.expansion import BASES
from gpugate.webhook.manifests.load import RunFacts
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.field import Json, Path
    from gpugate.policies.sdk.objects import Request
    from gpugate.webhook.check.options import Options
    from gpugate.webhook.manifests.edit_tree import Node
    from gpugate.webhook.manifests.inputs import Input
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
    text, evaluated = document.text, with_defaults(manifest.request).object or {}
    for patch in patches:
        written = Field(root)[at].value
        fitting = _fitting(patch, written if isinstance(written, dict) else {}, evaluated, manifest.request)
        root, _ = patching.apply(root, replace(fitting, path=(*at, *fitting.path)))
        evaluated, _ = patching.apply(evaluated, patch)
        text = edited(text, root[""])
    return text


def _fitting(patch: Patch, written: dict[str, Json], evaluated: dict[str, Json], request: Request) -> Patch:
    """Return the patch for the object as it is written, without the defaults of the evaluated object.

    A list that exists by default only is written out, because the list in the file replaces it as a whole. Of an object
    that exists by default only, the members without a default are written: a NodePool's `disruption` needs
    `consolidateAfter`.
    """
    for depth in range(1, len(patch.path) + 1):
        way = patch.path[:depth]
        inside = depth < len(patch.path) or patch.op == "append"
        if inside and isinstance(Field(evaluated)[way].value, list) and not Field(written)[way]:
            after, _ = patching.apply(evaluated, patch)
            return Patch("set", way, Field(after)[way].value, patch.reason)
        if inside and isinstance(Field(evaluated)[way].value, dict) and not Field(written)[way]:
            patched, _ = patching.apply(written, patch)
            filled = Field(with_defaults(replace(request, object=patched)).object)[way].mapping
            whole = Field(patching.apply(evaluated, patch)[0])[way].mapping
            if whole.keys() - filled.keys():
                own = Field(patched)[way].mapping
                changed_members: Json = {key: whole[key] for key in whole if key in own or key not in filled}
                return Patch("set", way, changed_members, patch.reason)
    return patch


def _replaced(document: Document, manifest: Manifest, fix: Replacement) -> str:
    """Write the first object in place of the present one, and documents behind it for the others."""
    if manifest.prefix:
        raise EditError("the object is an item of a list")
    if document.text.lstrip()[:1] in {"{", "["}:
        raise EditError("the object is written in brackets")
    style = Style(newline=newline_of(document.text))
    first, *others = fix.objects
    try:
        after = edited(document.text, first)
    except EditError:
        root = parse(document.text)
        if has_comment(document.text, root) or "#" in document.text[root.end :]:
            raise
        # What stands above the first key is kept: the marker of the document, and comments.
        after = document.text[: root.start] + style.newline.join(style.block(first, 0)) + style.newline
    if others and not after.endswith("\n"):
        after += style.newline
    after += "".join(line + style.newline for obj in others for line in ("---", *style.block(obj, 0)))
    written = [part.value if isinstance(part, Document) else None for part in read_text(document.source, after)]
    if len(written) != len(fix.objects) or not all(map(same, written, fix.objects)):
        raise EditError("the edited text does not have the wanted value")
    return after


_ITEMS: Final = "items"
_DASH: Final = re.compile(r" *-[ \t]+")


class ChangingText:
    """The text of a document, in which some objects are changed, each at most once."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._text = document.text
        self._parted: _Parted | None = None
        self._read = False

    def change(self, manifest: Manifest, group: Sequence[Located]) -> bool:
        """Make a change to an object; tell whether the text is another one then.

        Raises:
            EditError: the text cannot be changed safely.
            PatchError: a patch does not fit the object.
        """
        if manifest.prefix and not self._read:
            self._parted, self._read = _parted(self._text), True
        if self._parted is None:
            before = replace(self._document, text=self._text)
            self._text = changed(before, manifest, group)
            return self._text != before.text
        _, index, *inner = manifest.prefix
        if not isinstance(index, int):
            raise EditError("the object is not an item of a list")
        before = replace(self._document, text=self._parted.alone(index))
        after = changed(before, replace(manifest, prefix=(_ITEMS, 0, *inner)), group)
        self._parted.put(index, after)
        return after != before.text

    def finished(self) -> str | None:
        """Return the text of the document; None where nothing changed.

        Raises:
            EditError: the items do not mean together what each means by itself.
        """
        text = self._text
        if self._parted and self._parted.changed:
            text = self._parted.whole()
            if not self._parted.means(text, self._parted.changed):
                raise EditError("the edited text does not have the wanted value")
        return text if text != self._document.text else None


class _Parted(MutableStruct):
    """The text of a list: what stands before, between and behind the texts of its items."""

    head: str
    items: list[str]
    between: list[str]
    tail: str
    changed: set[int] = field(default_factory=set)

    def alone(self, index: int) -> str:
        return self.head + self.items[index] + self.tail

    def put(self, index: int, text: str) -> None:
        """Take over an item out of a text that has no other.

        Raises:
            EditError: more than the item was changed.
        """
        if not (text.startswith(self.head) and text.endswith(self.tail)):
            raise EditError("the change reaches beyond the object")
        item = text[len(self.head) : len(text) - len(self.tail)]
        if item != self.items[index]:
            self.items[index] = item
            self.changed.add(index)

    def whole(self) -> str:
        pairs = zip(self.items, self.between, strict=True)
        return self.head + "".join(part for pair in pairs for part in pair) + self.tail

    def means(self, text: str, indices: Iterable[int]) -> bool:
        """Tell whether some items mean in a whole text what they mean by themselves."""
        whole = _value(text)
        items = whole.get(_ITEMS) if isinstance(whole, dict) else None
        if not isinstance(whole, dict) or not isinstance(items, list) or len(items) != len(self.items):
            return False
        return all(_value(self.alone(index)) == {**whole, _ITEMS: [items[index]]} for index in indices)


def _parted(text: str) -> _Parted | None:
    """Split the text of a list into its items; None if an item has another value outside of the list."""
    try:
        root = parse(text)
    except EditError:
        return None
    lists = [entry.value for entry in root.entries if entry.name == _ITEMS]
    if len(lists) != 1 or len(lists[0].entries) < 2 or any(node.sort == "alias" for node in walk(root)):
        return None
    split = _in_brackets(text, lists[0]) if lists[0].flow else _in_lines(text, root, lists[0])
    return split if split is not None and split.means(text, range(len(split.items))) else None


def _in_brackets(text: str, sequence: Node) -> _Parted:
    spans = [(entry.value.start, entry.value.end) for entry in sequence.entries]
    between = [text[end:start] for (_, end), (start, _) in pairwise(spans)]
    items = [text[start:end] for start, end in spans]
    return _Parted(text[: spans[0][0]], items, [*between, ""], text[spans[-1][1] :])


def _in_lines(text: str, root: Node, sequence: Node) -> _Parted | None:
    """Part a list at the lines with dashes, so that comments behind and below an item stay with it."""
    starts = [text.rfind("\n", 0, entry.start) + 1 for entry in sequence.entries]
    if not all(_DASH.fullmatch(text, start, e.start) for start, e in zip(starts, sequence.entries, strict=True)):
        return None
    behind = [entry.start for entry in root.entries if entry.start > starts[-1]]
    end = text.rfind("\n", 0, behind[0]) + 1 if behind else len(text)
    items = [text[start:stop] for start, stop in zip(starts, [*starts[1:], end], strict=True)]
    return _Parted(text[: starts[0]], items, [""] * len(items), text[end:])


def _value(text: str) -> Json:
    return next((part.value for part in read_text("", text) if isinstance(part, Document)), None)


_ROUNDS: Final = 50  # each changes every object once; few objects have so many things wrong


class FixedFile(MutableStruct):
    """A file with its text before and after; `policies` are those whose changes were made, one entry for each.

    `left` says which fixes were not applied, and `is_unfinished` that changes went on causing findings.
    """

    file: Input
    before: str
    after: str
    codec: str
    policies: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    is_unfinished: bool = False

    def followed_by(self, later: FixedFile) -> FixedFile:
        """Return the file with the changes of both."""
        return replace(self, after=later.after, policies=self.policies + later.policies)


def apply_fixes(
    files: Sequence[Input], facts: Sequence[Request], ruleset: Ruleset, options: Options, *, unsafe: bool
) -> list[FixedFile]:
    """Apply the fixes of the findings in some files to their texts; no file is written.

    A fix can cause another finding, so the files are evaluated again until no fix remains, or an object was changed
    too often, which `left` says.

    Args:
        files: the files; one that cannot be read is omitted.
        facts: the objects of the other files of the run.
        ruleset: the rules in force.
        options: how to evaluate.
        unsafe: also apply fixes that may alter scheduling or cost, or replace whole objects.
    """
    opened = (_open(file) for file in files)
    fixed = [file for file in opened if file is not None]
    needs, locator = Needs(ruleset.rules, BASES), Locator({rule.policy.id: rule.policy for rule in ruleset.rules})
    tried: set[object] = set()
    unfinished: list[FixedFile] = []
    for _ in range(_ROUNDS):
        read = [(file, list(_documents(file, options))) for file in fixed]
        manifests = [
            manifest for _, documents in read for _, document_manifests in documents for manifest in document_manifests
        ]
        projected = (needs.project(with_defaults(marked(manifest).manifest.request)) for manifest in manifests)
        known = RunFacts([*facts, *(fact for fact in projected if fact)], complete=options.complete_context)
        met: Counter[str] = Counter()
        evaluation = Evaluation(ruleset, options, known)
        unfinished = []
        for file, documents in read:
            changed = False
            for document, document_manifests in reversed(documents):
                findings = _findings(document, document_manifests, evaluation, options, locator)
                changed |= _fix_document(file, document, findings, tried, met, unsafe=unsafe)
            unfinished += [file] if changed else []
        if not unfinished:
            break
    for file in unfinished:
        why = f"fixes are incomplete after {_ROUNDS} changes of one object, each of which caused another finding; run again"
        file.left.append(f"{file.file.label}: {why}")
        file.is_unfinished = True
    return fixed


def _open(file: Input) -> FixedFile | None:
    data = file.read()
    if isinstance(data, Problem):
        return None
    codec = encoding(data)
    try:
        text = data.decode(codec)
    except UnicodeDecodeError:
        return None
    return FixedFile(file, text, text, codec)


def _documents(file: FixedFile, options: Options) -> Iterator[tuple[Document, list[Manifest]]]:
    for part in read_text(file.file.label, file.after):
        if isinstance(part, Document):
            parsed = objects(part, namespace=options.namespace, lenient=not file.file.explicit)
            yield part, [manifest for manifest in parsed if isinstance(manifest, Manifest)]


def _findings(
    document: Document,
    manifests: Iterable[Manifest],
    evaluation: Evaluation,
    options: Options,
    locator: Locator,
) -> Iterator[tuple[Manifest, list[Located]]]:
    comments = list(ignores(document)) if options.ignores else []
    for manifest in manifests:
        open_values = marked(manifest).manifest
        if evaluation.made_of(open_values) is not None:
            continue  # what is evaluated is not the object of the file
        located = locator.findings(manifest, evaluation.of(open_values))
        yield manifest, sift(located, comments, options.known, (), options.today)[0]


def _fix_document(
    file: FixedFile,
    document: Document,
    findings: Iterable[tuple[Manifest, list[Located]]],
    tried: set[object],
    met: Counter[str],
    *,
    unsafe: bool,
) -> bool:
    """Apply the first fix of each object of a document; tell whether one was applied.

    `met` counts the fixes of a round, to distinguish objects with the same name and the same findings.
    """
    text, policies = ChangingText(document), list[str]()
    for manifest, located in findings:
        for group in _due(located, unsafe=unsafe):
            first = group[0]
            key = repr((file.file.name, first.object, [(f.policy, f.path, f.message) for f in group]))
            met[key] += 1
            if (key, met[key]) in tried:
                continue
            tried.add((key, met[key]))
            try:
                changed = text.change(manifest, group)
            except (EditError, patching.PatchError) as error:
                where = f"{file.file.label}:{first.location.line}"
                file.left.append(f"{where}: {', '.join(_policies(group))} was not fixed: {error}")
                continue
            if changed:
                policies += _policies(group)
                break
    try:
        after = text.finished()
    except EditError as error:
        where = f"{file.file.label}:{document.first_line}"
        file.left.append(f"{where}: {', '.join(dict.fromkeys(policies))} was not fixed: {error}")
        return False
    if after is None:
        return False
    end = document.start + len(document.text)
    file.after = file.after[: document.start] + after + file.after[end:]
    file.policies += policies
    return True


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
