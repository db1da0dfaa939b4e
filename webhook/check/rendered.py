"""Reports findings in rendered objects at the lines of the files that they are rendered from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gpugate.webhook.check.ignores import ignores, sift
from gpugate.webhook.manifests.documents import Document, read_bytes
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.rendering.kustomizations import KustomizationJob
from gpugate.webhook.rendering.mapping import joined, mapped

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpugate.webhook.check.ignores import Ignore
    from gpugate.webhook.check.options import Options
    from gpugate.webhook.check.session import Judged
    from gpugate.webhook.rendering.options import RenderOptions
    from gpugate.webhook.rendering.render import Text


@dataclass(frozen=True, slots=True)
class RenderedTexts:
    """What was rendered in a run, by its label, and how."""

    texts: Mapping[str, Text]
    options: RenderOptions

    def place(self, judged: Judged, how: Options) -> dict[str, str]:
        """Give findings their places in files; return for each such file the label of a text that it went into.

        Comments of templates are in what they render to and were honoured there. kustomize keeps no comments, so that
        those in the files that objects are from are honoured here.
        """
        before = [*judged.findings, *(passing.finding for passing in judged.suppressed)]
        after = mapped(before, self.texts, self.options)
        files = {
            new.place.file: old.place.file
            for old, new in zip(before, after, strict=True)
            if old.place.file in self.texts
        }
        count = len(judged.findings)
        judged.suppressed = [
            replace(passing, finding=finding) for passing, finding in zip(judged.suppressed, after[count:], strict=True)
        ]
        comments: dict[str, list[Ignore]] = {}
        kept = []
        for old, new in zip(judged.findings, after, strict=False):
            text = self.texts.get(old.place.file)
            if text and isinstance(text.job, KustomizationJob) and how.ignores and not new.place.rendered:
                if new.place.file not in comments:
                    comments[new.place.file] = _comments(new.place.file)
                stays, passing = sift([new], comments[new.place.file], how.known, (), how.today)
                judged.suppressed += passing
                # What is wrong with a comment is said where its file is judged by itself.
                kept += [finding for finding in stays if finding is new]
            else:
                kept.append(new)
        judged.findings = joined(kept, self.texts, files)
        return files


def _comments(file: str) -> list[Ignore]:
    data = Input(file, explicit=True).read()
    if isinstance(data, Problem):
        return []
    return [each for part in read_bytes(file, data) if isinstance(part, Document) for each in ignores(part)]
