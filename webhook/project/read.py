"""Read the project file, and locate mistakes in it by line."""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from gpugate.policies.engine.config import ConfigError, parse
from gpugate.policies.sdk.field import render
from gpugate.webhook.manifests.bounded_file import read_named
from gpugate.webhook.manifests.within import refuse_link
from gpugate.webhook.project.find import ProjectFileError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpugate.policies.sdk import field
    from gpugate.policies.sdk.field import Json


class Chart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How one Helm chart is rendered, once for each entry of `values`.

    Attributes:
        path: the chart's directory or archive.
        values: one rendering for each entry. An entry is a values file, or a list of them, of which a later one takes precedence.
        set: `KEY=VALUE` as for `helm --set`, for every rendering.
        release: the name of the release (default: the name of the chart's directory).
        namespace: the namespace of the release (default: that of the run).
        api_versions: API versions in `.Capabilities.APIVersions`, in addition to those of Helm.
    """

    path: str
    values: tuple[str | tuple[str, ...], ...] = ()
    set: tuple[str, ...] = ()
    release: str = ""
    namespace: str = ""
    api_versions: tuple[str, ...] = ()


class Objects(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Values from which a chart outside the repository creates objects.

    Attributes:
        files: patterns of the values files, in the syntax of `exclude`.
        path: the keys that lead to the objects, separated by dots. `*` stands for each member of an object or item of a list.
        api_version: the apiVersion of the objects.
        kind: the kind of the objects.
        spec: the keys that lead to the spec of each object, separated by dots (default: the whole value is the spec).
    """

    files: tuple[str, ...]
    path: str
    api_version: str
    kind: str
    spec: str = ""


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Files that a tool renders before they are applied.

    Attributes:
        paths: patterns of files. A pattern with a slash is relative to the project file. Others match a name at any depth.
        tool: the program that renders them: envsubst, terraform, go-template or jinja; sed for any other program.
    """

    paths: tuple[str, ...]
    tool: Literal["envsubst", "terraform", "go-template", "jinja", "sed"]


class Docs(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where the documentation is published.

    Attributes:
        base_url: the address of the site that `make docs` builds, with `http://` or `https://`.
    """

    base_url: str


class ProjectConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The settings of a project file; all keys are optional."""

    paths: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    tests: tuple[str, ...] | None = None
    policy_file: str | None = None
    policy_paths: tuple[str, ...] | None = None
    catalogue: str | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] | None = None
    fail_on: Literal["deny", "mutate", "warn", "never"] | None = None
    as_mode: Literal["enforce", "as-is"] | None = None
    baseline: str | None = None
    namespace: str | None = None
    complete_context: bool | None = None
    context_from: tuple[str, ...] | None = None
    charts: tuple[Chart, ...] | None = None
    objects_in_values: tuple[Objects, ...] | None = None
    templates: tuple[Template, ...] | None = None
    schemas: str | None = None
    output: tuple[str, ...] | None = None
    docs: Docs | None = None


MOST_BYTES: Final = 2**20
# Reports contain the address, so that it has only what an address can have (RFC 3986), and neither query nor fragment,
# because the name of a page is appended.
URL: Final = re.compile(r"https?://[A-Za-z0-9.\-\[\]:]+(?:/[A-Za-z0-9._~%!$'()*+,;=:@/-]*)?")


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """What a file says.

    Attributes:
        file: its name as messages have it; what it says is relative to its directory.
        config: what it says.
        locate: returns line and column, from 1, of a path in it.
        remarks: sentences on what beside it is not read.
    """

    file: Path
    config: ProjectConfig
    locate: Callable[[field.Path], tuple[int, int]]
    remarks: tuple[str, ...] = ()


def read_project(file: Path, directory: Path, remarks: tuple[str, ...] = (), data: bytes | None = None) -> ProjectFile:
    """Read a file: TOML with `[tool.gpugate]` where its name ends so, else YAML.

    Args:
        file: its name as messages have it, which may be relative to `directory`.
        directory: the working directory.
        remarks: sentences on what beside it is not read.
        data: its content where that is not the file on disk.

    Raises:
        LinkError: it is a link of the tree that leads out of it.
        ProjectFileError: it cannot be read, is too large, has unknown keys, or values that its keys do not take.
    """
    data = _data(file, directory) if data is None else data
    value, locate = _toml(file, data) if file.suffix == ".toml" else _yaml(file, data)
    try:
        return ProjectFile(file, parse_project(value), locate, remarks)
    except ConfigError as error:
        line, column = locate(error.path)
        where = f"{render(error.path)}: " if error.path else ""
        # That an absent key is null is nothing that people write.
        message = error.message.replace(" | null", "")
        raise ProjectFileError(f"{file}:{line}:{column}: {where}{message}") from None


def _data(file: Path, directory: Path) -> bytes:
    refuse_link(directory / file, "the project file")
    try:
        return read_named(directory / file, MOST_BYTES)
    except OSError as error:
        if error.errno == errno.EFBIG:
            too_large = (error.strerror or "").removeprefix("is ")
            raise ProjectFileError(f"{file}: {too_large}: this is not a project file") from None
        raise ProjectFileError(f"{file}: {(error.strerror or 'cannot be read').lower()}") from None


def parse_project(value: Json) -> ProjectConfig:
    """Read what a file says.

    Raises:
        ConfigError: an unknown key, a value of the wrong type, or a text that none of the settings can hold.
    """
    if value is None:
        return ProjectConfig()
    if not isinstance(value, dict):
        raise ConfigError((), "not an object: write `key: value` lines, such as `policy_file: policy.yaml`")
    # One by one first, because the parser's messages do not say which of a list is wrong.
    for key, entry in (("charts", Chart), ("objects_in_values", Objects), ("templates", Template)):
        entries = value.get(key)
        for index, element in enumerate(entries if isinstance(entries, list) else ()):
            parse(element, entry, (key, index))
    config = parse(value, ProjectConfig, ())
    # Outputs are checked where the work tree that they must be in is known.
    if config.docs is not None and not URL.fullmatch(config.docs.base_url):
        raise ConfigError(("docs", "base_url"), "not an address: write one such as https://docs.example.com/gpugate/")
    _refuse_nul({key: setting for key, setting in value.items() if key != "output"}, ())
    return config


def _refuse_nul(value: Json, path: field.Path) -> None:
    """Refuse a character that neither files nor arguments of programs can have in their names, and YAML can write."""
    if isinstance(value, str) and "\0" in value:
        raise ConfigError(path, "is not a valid file name: it contains a character that no file name can have")
    if isinstance(value, dict | list):
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            _refuse_nul(member, (*path, key))


def _yaml(file: Path, data: bytes) -> tuple[Json, Callable[[field.Path], tuple[int, int]]]:
    from gpugate.webhook.manifests.documents import Document, Positions, read_bytes  # noqa: PLC0415 -- TOML needs none

    documents: list[Document] = []
    for document in read_bytes(str(file), data):
        if not isinstance(document, Document):
            raise ProjectFileError(f"{file}:{document.line}:{document.column}: {document.message}: {document.remedy}")
        documents.append(document)
    if len(documents) > 1:
        raise ProjectFileError(f"{file}:{documents[1].first_line}:1: a second document: write one")

    positions: list[Positions] = []

    def locate(path: field.Path) -> tuple[int, int]:
        if not documents:
            return 1, 1
        positions[:] = positions or [Positions(documents[0])]
        span = positions[0].find(path)
        return span.line, span.column

    return (documents[0].value if documents else None), locate


def _toml(file: Path, data: bytes) -> tuple[Json, Callable[[field.Path], tuple[int, int]]]:
    from gpugate.webhook.project import find  # noqa: PLC0415 -- few projects need it

    table = find.table(file, data)
    if table is None:
        raise ProjectFileError(f"{file}: has no [tool.gpugate]")
    return table, lambda path: find.location_of(data.decode(), path)
