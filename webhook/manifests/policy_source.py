"""Finds the policy configuration among the documents of a file: a PolicyConfig, or a ConfigMap that holds one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from gpugate.webhook.manifests.documents import Document, read_bytes, read_text
from gpugate.webhook.manifests.embedded import Embedded, embedded
from gpugate.webhook.manifests.policy_file import PolicyFileError
from gpugate.webhook.manifests.positions import Positions
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpugate.policies.sdk import field as fields

# Where the chart puts the policy file in its ConfigMap, and the webhook mounts it from.
KEY: Final = "policy.yaml"
_IN_CONFIG_MAP: Final = ("data", KEY)


@dataclass(slots=True)
class PolicySource:
    """The document with the configuration; `embedded` says where its text stands in a ConfigMap, None in a file of its own."""

    document: Document
    embedded: Embedded | None = None
    _positions: Positions | None = field(default=None, init=False)

    def place(self, path: fields.Path) -> tuple[int, int]:
        """Return line and column in the file, from 1, of a path in the configuration, or of its nearest ancestor."""
        if self._positions is None:
            self._positions = Positions(self.document)
        span = self._positions.find(path)
        return self.embedded.place(span.line, span.column) if self.embedded else (span.line, span.column)


def policy_source(path: Path, data: bytes) -> PolicySource:
    """Find the configuration in the bytes of a file.

    Beside a ConfigMap with the key `policy.yaml` there may be other documents, as in what `helm template` writes.

    Raises:
        PolicyFileError: the file cannot be read; holds none, or several.
    """
    documents: list[Document] = []
    doubts: list[Problem] = []
    for found in read_bytes(str(path), data):
        if isinstance(found, Document):
            documents.append(found)
        elif not found.warning:
            raise _refused(path, found)
        else:
            doubts.append(found)
    carriers = [document for document in documents if _text(document) is not None]
    if len(carriers) > 1:
        lines = " and ".join(str(document.first_line) for document in carriers[:2])
        raise PolicyFileError(f"{path}: holds {len(carriers)} ConfigMaps with {KEY}, on lines {lines}: leave one")
    if carriers:
        _refuse_doubts(path, doubts, carriers[0])
        return _in_config_map(path, carriers[0])
    if len(documents) != 1:
        maps = sum(_is_config_map(document) for document in documents)
        other = f", or a ConfigMap with the key {KEY}" if maps else ""
        raise PolicyFileError(f"{path}: holds {len(documents)} documents: write one PolicyConfig{other}")
    _refuse_doubts(path, doubts, documents[0])
    if _is_config_map(documents[0]):
        raise PolicyFileError(f"{path}:{documents[0].first_line}:1: this ConfigMap has no text under data: {KEY}")
    return PolicySource(documents[0])


def _in_config_map(path: Path, carrier: Document) -> PolicySource:
    within = embedded(carrier, _IN_CONFIG_MAP, _text(carrier) or "")
    documents: list[Document] = []
    for found in read_text(carrier.source, within.text):
        if isinstance(found, Problem):
            raise _refused(path, found, within)
        documents.append(found)
    if len(documents) != 1:
        line, column = within.place(1, 1)
        raise PolicyFileError(f"{path}:{line}:{column}: {KEY} holds {len(documents)} documents: write one PolicyConfig")
    return PolicySource(documents[0], within)


def _refuse_doubts(path: Path, doubts: Sequence[Problem], document: Document) -> None:
    last = document.first_line + len(document.text.splitlines())
    for doubt in doubts:
        if document.first_line <= doubt.line <= last:
            raise _refused(path, doubt)


def _refused(path: Path, problem: Problem, within: Embedded | None = None) -> PolicyFileError:
    line, column = within.place(problem.line, problem.column) if within else (problem.line, problem.column)
    return PolicyFileError(f"{path}:{line}:{column}: {problem.message}: {problem.remedy}")


def _is_config_map(document: Document) -> bool:
    value = document.value
    return isinstance(value, dict) and (value.get("apiVersion"), value.get("kind")) == ("v1", "ConfigMap")


def _text(document: Document) -> str | None:
    """Return the policy file that a document carries, where it is a ConfigMap with one."""
    value = document.value
    data = value.get("data") if _is_config_map(document) and isinstance(value, dict) else None
    text = data.get(KEY) if isinstance(data, dict) else None
    return text if isinstance(text, str) else None
