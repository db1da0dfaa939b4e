"""Gives findings in rendered texts their places in the files that these were made of."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from gpugate.webhook.rendering.chart_places import ChartPlaces
from gpugate.webhook.rendering.charts import ChartJob
from gpugate.webhook.rendering.kustomization_places import KustomizationPlaces
from gpugate.webhook.rendering.render import at_once

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterable, Mapping, Sequence

    from gpugate.webhook.rendering.options import RenderOptions
    from gpugate.webhook.rendering.render import Text
    from gpugate.webhook.report.located import Located, Location


class _Places(Protocol):
    def of(self, finding: Located) -> Location:
        """Return the place of a finding in a file."""
        ...


def mapped(findings: Sequence[Located], texts: Mapping[str, Text], options: RenderOptions) -> list[Located]:
    """Return the findings in their order, with places in files.

    Args:
        findings: what was found, in rendered texts and elsewhere.
        texts: what was rendered, by its label, which is the file of findings in it.
        options: how it was rendered.
    """
    labels = sorted(
        {finding.location.file for finding in findings if finding.location.file in texts and finding.location.line}
    )
    places = dict(zip(labels, at_once(_places, [texts[label] for label in labels], options), strict=True))
    return [
        replace(finding, location=replace(places[finding.location.file].of(finding), is_template=True))
        if finding.location.file in places
        else finding
        for finding in findings
    ]


def joined(findings: Iterable[Located], texts: Mapping[str, Text], files: Mapping[str, str]) -> list[Located]:
    """Return findings of which those that several values of one chart have are one.

    Args:
        findings: with places in files.
        texts: what was rendered, by its label.
        files: for each file, the label of a text that it went into.
    """
    together: dict[object, list[Located]] = {}
    for number, finding in enumerate(findings):
        location, label = finding.location, files.get(finding.location.file, "")
        line = 0 if location.rendered else location.line
        subject = (finding.sort, finding.policy, finding.object, finding.path, finding.message, location.file, line)
        key = (*subject, texts[label].job.unit) if label and location.variants else number
        together.setdefault(key, []).append(finding)
    return [_merged(group) for group in together.values()]


def _places(text: Text, options: RenderOptions, stop: threading.Event) -> _Places:
    return ChartPlaces(text, options, stop) if isinstance(text.job, ChartJob) else KustomizationPlaces(text)


def _merged(findings: list[Located]) -> Located:
    """Join findings that differ in the values of the chart only."""
    variants = dict.fromkeys(variant for finding in findings for variant in finding.location.variants)
    first = findings[0]
    return replace(first, location=replace(first.location, variants=tuple(variants)))
