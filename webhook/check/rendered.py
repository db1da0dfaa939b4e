"""Reports findings in rendered objects at the lines of the files that they are rendered from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpugate.policies.sdk.structs import replace
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
    from gpugate.webhook.check.session import Results
    from gpugate.webhook.rendering.options import RenderOptions
    from gpugate.webhook.rendering.render import Text


@dataclass(frozen=True, slots=True)
class RenderedTexts:
    """The renderings of a run by their labels, and how they were rendered."""

    texts: Mapping[str, Text]
    options: RenderOptions

    def relocate(self, results: Results, how: Options) -> dict[str, str]:
        """Move findings from renderings to source files; return the label of a rendering for each such file.

        Comments of templates are rendered with them, and were applied to the rendering. kustomize drops comments, so
        those in the source files are applied here.
        """
        before = [*results.findings, *(passing.finding for passing in results.suppressed)]
        after = mapped(before, self.texts, self.options)
        files = {
            new.location.file: old.location.file
            for old, new in zip(before, after, strict=True)
            if old.location.file in self.texts
        }
        count = len(results.findings)
        results.suppressed = [
            replace(passing, finding=finding)
            for passing, finding in zip(results.suppressed, after[count:], strict=True)
        ]
        comments: dict[str, list[Ignore]] = {}
        remaining = []
        for old, new in zip(results.findings, after, strict=False):
            text = self.texts.get(old.location.file)
            if text and isinstance(text.job, KustomizationJob) and how.ignores and not new.location.rendered:
                if new.location.file not in comments:
                    comments[new.location.file] = _comments(new.location.file)
                stays, passing = sift([new], comments[new.location.file], how.known, (), how.today)
                results.suppressed += passing
                # An invalid comment is reported when its file is evaluated.
                remaining += [finding for finding in stays if finding is new]
            else:
                remaining.append(new)
        results.findings = joined(remaining, self.texts, files)
        return files


def _comments(file: str) -> list[Ignore]:
    data = Input(file, explicit=True).read()
    if isinstance(data, Problem):
        return []
    return [comment for part in read_bytes(file, data) if isinstance(part, Document) for comment in ignores(part)]
