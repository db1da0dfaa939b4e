"""Mends files: makes the changes that policies compute, in the text of the files."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpugate.policies.engine import patching
from gpugate.policies.engine.defaults import with_defaults
from gpugate.policies.engine.needs import Needs
from gpugate.webhook.check.changing import ChangingText
from gpugate.webhook.check.ignores import ignores, sift
from gpugate.webhook.check.locate import Locator
from gpugate.webhook.check.session import judge
from gpugate.webhook.manifests.documents import Document, encoding, read_text
from gpugate.webhook.manifests.edit_tree import EditError
from gpugate.webhook.manifests.load import RunFacts
from gpugate.webhook.manifests.objects import Manifest, objects
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.request import Request
    from gpugate.webhook.check.options import Options
    from gpugate.webhook.manifests.inputs import Input
    from gpugate.webhook.report.located import Located

_ROUNDS: Final = 50  # each changes every object once; few objects have so many things wrong


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

    One change can make another one necessary, so that the files are judged anew until none is left, or each object was
    changed so often that no end is to be expected, which `left` says.

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
    unfinished: list[MendedFile] = []
    for _ in range(_ROUNDS):
        read = [(file, list(_documents(file, options))) for file in mended]
        manifests = [manifest for _, documents in read for _, held in documents for manifest in held]
        projected = (needs.project(with_defaults(manifest.request)) for manifest in manifests)
        known = RunFacts([*facts, *(fact for fact in projected if fact)], complete=options.complete_context)
        met: Counter[str] = Counter()
        unfinished = []
        for file, documents in read:
            changed = False
            for document, held in reversed(documents):
                findings = _findings(document, held, ruleset, known, options, locator)
                changed |= _mend_document(file, document, findings, tried, met, unsafe=unsafe)
            unfinished += [file] if changed else []
        if not unfinished:
            break
    for file in unfinished:
        why = f"not all is mended after {_ROUNDS} changes of one object, each of which asked for another one; run again"
        file.left.append(f"{file.file.label}: {why}")
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
    met: Counter[str],
    *,
    unsafe: bool,
) -> bool:
    """Make the first change that is due in each object of a document; tell whether one was made.

    `met` counts what is due in a round, so that objects of one name and with the same wrong in them are told apart.
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
                where = f"{file.file.label}:{first.place.line}"
                file.left.append(f"{where}: {', '.join(_policies(group))} is left to you: {error}")
                continue
            if changed:
                policies += _policies(group)
                break
    try:
        after = text.finished()
    except EditError as error:
        where = f"{file.file.label}:{document.first_line}"
        file.left.append(f"{where}: {', '.join(dict.fromkeys(policies))} is left to you: {error}")
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
