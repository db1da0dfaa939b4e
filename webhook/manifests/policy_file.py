"""Load the policy file, and locate mistakes in it by line.

The file is a PolicyConfig, or the manifest of the ConfigMap that carries one to the webhook, so that one file rules both.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import yaml

from gpugate.policies.engine.clusters import settle
from gpugate.policies.engine.config import ConfigError, GpugateError, PolicyConfig, parse_config
from gpugate.policies.sdk.field import render
from gpugate.policies.sdk.structs import Struct
from gpugate.webhook.manifests.bounded_file import read_named
from gpugate.webhook.manifests.documents import Document, Positions, read_bytes, read_text
from gpugate.webhook.manifests.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from gpugate.policies.sdk import field as fields
    from gpugate.policies.sdk.field import Path as FieldPath
    from gpugate.policies.sdk.platform import ClusterIdentity

_Loader: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
# How many characters an escape has after the backslash, where that is not one (YAML 1.1, 5.6).
_ESCAPES: Final = {"x": 3, "u": 5, "U": 9}


class Embedded(Struct, frozen=True):
    """A text and its place in the file around it.

    Attributes:
        text: the text, as a reader of the value gets it.
        line: the line of the file on which it begins, from 1.
        indent: how many characters stand before each of its lines.
        columns: of a text in quotes, the column of the file (from 1) of each of its characters; all are on `line`.
        exact: whether places in the text are known; if not, all that is known is where it begins.
    """

    text: str
    line: int
    indent: int = 0
    columns: Sequence[int] = ()
    exact: bool = True

    def locate(self, line: int, column: int) -> tuple[int, int]:
        """Return line and column in the file of a line and column in the text; all count from 1."""
        if not self.exact:
            return self.line, self.indent + 1
        if not self.columns:
            return self.line + line - 1, self.indent + column
        begins = 0
        for _ in range(line - 1):
            begins = self.text.find("\n", begins) + 1
        offset = min(begins + column - 1, len(self.columns) - 1)
        return self.line, self.columns[offset]


def embedded(document: Document, path: FieldPath, text: str) -> Embedded:
    """Find the text that is the value at a path of members."""
    key, node = _node(document.text, path)
    if node is None:
        return Embedded(text, document.first_line, exact=False)
    start = node.start_mark
    if node.style == "|":
        indent = _indent(document.text.splitlines()[start.line + 1 : node.end_mark.line + 1], text)
        return Embedded(text, document.first_line + start.line + 1, indent)
    line = document.first_line + start.line
    if node.style in {"'", '"'} and start.line == node.end_mark.line:
        written = document.text.splitlines()[start.line][start.column + 1 : node.end_mark.column - 1]
        columns = [start.column + 2 + offset for offset in _offsets(written, node.style)]
        return Embedded(text, line, columns=columns, exact=len(columns) > 1)
    return Embedded(text, document.first_line + key.start_mark.line, key.start_mark.column, exact=False)


def _node(text: str, path: FieldPath) -> tuple[Any, Any]:
    """Return the key and the value at a path; the last of members with the same name, as kubectl reads it."""
    try:
        # The document was read within limits before, so that composing it is safe.
        node: Any = yaml.compose(text, _Loader)
    except yaml.YAMLError:
        return None, None  # JSON with escapes that YAML does not know
    key = None
    for part in path:
        members = node.value if isinstance(node, yaml.MappingNode) else ()
        key, node = next(((k, v) for k, v in reversed(members) if k.value == part), (None, None))
    return key, node if isinstance(node, yaml.ScalarNode) else None


def _indent(written: Sequence[str], text: str) -> int:
    """Return how far the lines of a block are indented: what stands before its first line that is not blank."""
    for line, wanted in zip(written, text.splitlines(), strict=False):
        if wanted.strip():
            return len(line) - len(wanted)
    return 0


def _offsets(written: str, style: str) -> list[int]:
    """Return for each character of a text in quotes, and for its end, where it is written, from 0."""
    lines: list[int] = []
    at = 0
    while at < len(written):
        lines.append(at)
        if style == '"' and written[at] == "\\":
            at += 1 + _ESCAPES.get(written[at + 1 : at + 2], 1)
        else:
            at += 2 if style == "'" and written[at] == "'" else 1
    return [*lines, at]


T = TypeVar("T")

# `k8s.io/api` core/v1 types.go, ConfigMap and MaxSecretSize (v0.36).
MAX_POLICY_FILE: Final = 2**20
# The generation of the rules without a policy file: every policy has its shipped mode.
SHIPPED: Final = "shipped"
_DIGITS: Final = 12


class PolicyFileError(GpugateError):
    """The policy file cannot be read, or what it says is refused; the text begins with file, line and column."""


def load_policy_file(
    path: Path | None,
    use: Callable[[PolicyConfig], T],
    data: bytes | None = None,
    cluster: ClusterIdentity | None = None,
) -> T:
    """Read the configuration and return what is made of it; without a file, every policy has its shipped mode.

    Args:
        path: the file.
        data: its content where that is not the file on disk.
        use: what makes something of it, such as `bind` with the catalogue in hand; it may refuse the configuration too.
        cluster: the cluster for which the file is read; None is the one that the file names. `EVERYWHERE` is what holds in all
            clusters.

    Raises:
        PolicyFileError: the file cannot be read, is not YAML, or is refused; says where and what to write.
    """
    if path is None:
        return use(settle(PolicyConfig(), cluster))
    return parse_policy_file(path, read_policy_file(path) if data is None else data, use, cluster)


def read_policy_file(path: Path) -> bytes:
    """Read the bytes of the configuration.

    Raises:
        PolicyFileError: the file cannot be read, or is larger than a ConfigMap.
    """
    try:
        return read_named(path, MAX_POLICY_FILE)
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise PolicyFileError(
                f"{path}: {(error.strerror or '').removeprefix('is ')}, the most that a ConfigMap holds"
            ) from None
        raise PolicyFileError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None


def generation(data: bytes) -> str:
    """Name the bytes of a configuration, for logs and metrics: the first 12 hexadecimal digits of their SHA-256."""
    import hashlib  # noqa: PLC0415 -- loads OpenSSL, which `check` does without

    return hashlib.sha256(data).hexdigest()[:_DIGITS]


def parse_policy_file(
    path: Path, data: bytes, use: Callable[[PolicyConfig], T], cluster: ClusterIdentity | None = None
) -> T:
    """Return what is made of the configuration in the bytes of a file; as `load_policy_file`, without reading it."""
    source = policy_source(path, data)
    try:
        return use(settle(parse_config(source.document.value), cluster))
    except ConfigError as error:
        line, column = source.locate(error.path)
        where = f"{render(error.path)}: " if error.path else ""
        raise PolicyFileError(f"{path}:{line}:{column}: {where}{error.message}") from None


# Where the chart puts the policy file in its ConfigMap, and the webhook mounts it from.
KEY: Final = "policy.yaml"
_IN_CONFIG_MAP: Final = ("data", KEY)


@dataclass(slots=True)
class PolicySource:
    """The document with the configuration; `embedded` says where its text stands in a ConfigMap, None in a file of its own."""

    document: Document
    embedded: Embedded | None = None
    _positions: Positions | None = field(default=None, init=False)

    def locate(self, path: fields.Path) -> tuple[int, int]:
        """Return line and column in the file, from 1, of a path in the configuration, or of its nearest ancestor."""
        if self._positions is None:
            self._positions = Positions(self.document)
        span = self._positions.find(path)
        return self.embedded.locate(span.line, span.column) if self.embedded else (span.line, span.column)


def policy_source(path: Path, data: bytes) -> PolicySource:
    """Find the configuration in the bytes of a file.

    Beside a ConfigMap with the key `policy.yaml` there may be other documents, as in what `helm template` writes.

    Raises:
        PolicyFileError: the file cannot be read; holds none, or several.
    """
    documents: list[Document] = []
    doubts: list[Problem] = []
    for part in read_bytes(str(path), data):
        if isinstance(part, Document):
            documents.append(part)
        elif not part.warning:
            raise _refused(path, part)
        else:
            doubts.append(part)
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
    for part in read_text(carrier.source, within.text):
        if isinstance(part, Problem):
            raise _refused(path, part, within)
        documents.append(part)
    if len(documents) != 1:
        line, column = within.locate(1, 1)
        raise PolicyFileError(f"{path}:{line}:{column}: {KEY} holds {len(documents)} documents: write one PolicyConfig")
    return PolicySource(documents[0], within)


def _refuse_doubts(path: Path, doubts: Sequence[Problem], document: Document) -> None:
    last = document.first_line + len(document.text.splitlines())
    for doubt in doubts:
        if document.first_line <= doubt.line <= last:
            raise _refused(path, doubt)


def _refused(path: Path, problem: Problem, within: Embedded | None = None) -> PolicyFileError:
    line, column = within.locate(problem.line, problem.column) if within else (problem.line, problem.column)
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
