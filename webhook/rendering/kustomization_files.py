"""The files that a kustomization uses, and the references that gpugate does not let kustomize read.

kustomize itself reads only files below the directory of each kustomization (RootOnly), follows directories anywhere,
fetches what looks remote, and runs Helm with fields of the kustomization. Here all names are held to the rule of
`manifests.within` before it starts. Source of the fields and of what is remote: sigs.k8s.io/kustomize/api v0.21.1
(types.Kustomization, internal/builtins, internal/loader, internal/git/repospec.go). It decodes with encoding/json, so that
keys count in any case.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.sdk.field import render
from gpugate.webhook.manifests.bounded_file import MAX_BYTES, read_regular
from gpugate.webhook.manifests.documents import Document, Positions, read_bytes, read_text
from gpugate.webhook.manifests.inputs import KUSTOMIZATION_FILES, Found, Kustomization, Passed
from gpugate.webhook.manifests.problems import Problem
from gpugate.webhook.manifests.within import Wanted, is_git, link_out, refusal, tree_of
from gpugate.webhook.rendering.failures import Failure
from gpugate.webhook.rendering.kustomizations import KustomizationJob, obstacles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.field import Path as FieldPath
    from gpugate.webhook.manifests.inputs import Chart
    from gpugate.webhook.rendering.options import RenderOptions

_GROUP: Final = "kustomize.config.k8s.io/"
# Lists whose entries may be files, directories, or remote (KustTarget.accumulateResources and accumulateComponents).
BUILT_ON: Final = ("resources", "bases", "components")
# The same for the configuration of plugins, which may stand in the list itself.
PLUGINS: Final = ("generators", "transformers", "validators")
# Lists of files alone (Loader.Load); an entry of the last may be the patch itself.
FILES: Final = ("crds", "configurations", "patchesStrategicMerge")
WITH_PATH: Final = ("patches", "patchesJson6902", "replacements")
GENERATORS: Final = ("configMapGenerator", "secretGenerator")
FILES_OF_GENERATORS: Final = ("files", "envs", "env")
HELM: Final = ("helmCharts", "helmChartInflationGenerator")
_INFLATES: Final = "HelmChartInflationGenerator"
_OF_CHART: Final = ("name", "chartName", "version", "chartVersion", "repo", "chartRepoUrl", "chartHome")
_TWICE: Final = "is written twice, in another case"
_DEFAULT_CHARTS: Final = "charts"
# Fields with which a kustomization changes what a policy may find in its resources, unlike those that name, place or add objects.
ALTER: Final = (
    *("patches", "patchesStrategicMerge", "patchesJson6902", "transformers", "components", "replacements", "vars"),
    *("labels", "commonLabels", "commonAnnotations", "replicas"),
)
# What is a value and never a name of a file.
_NO_PATHS: Final = frozenset({"literals"})
_MOST_TEXTS: Final = 100_000
_LONGEST_NAME: Final = 4096  # PATH_MAX of Linux

_SCHEME: Final = re.compile(r"(?:git::)?(?:[a-z][a-z0-9+.-]*://|https?:|gh:|github\.com[/:])", re.IGNORECASE)
# `user@host:org/repo` and `user@host/org/repo`; a directory such as `app@v1/base` has too few parts to be one.
_USER: Final = re.compile(r"(?:git::)?[a-z][a-z0-9-]*@[^/:]+[/:](?P<rest>.+)", re.IGNORECASE | re.DOTALL)
_REMOTE_SIGNS: Final = ("git@", "github.com", "?ref=")

_ELSEWHERE: Final = "is remote, and gpugate uses no network"
_TAKE: Final = "add it to the repository, or pipe: `kustomize build {} | gpugate check -`"
_OWN: Final = "name a file that is committed"
_CREATE: Final = "create it, or correct the path, which is relative to the directory of the kustomization"
_CHECK: Final = "check the spelling; paths are relative to the directory of the kustomization"
_WRITE: Final = "write it into the kustomization, or leave it out with --exclude"


@dataclass(frozen=True, slots=True)
class Refused:
    """A name in a kustomization for which it is not built: what is wrong, what to do, and its line and column.

    `cause` is the same wherever else a kustomization names the same; empty where the place is the cause.
    """

    message: str
    remedy: str
    line: int = 0
    column: int = 0
    cause: str = ""


@dataclass(frozen=True, slots=True)
class KustomizationFile:
    """A kustomization that was read.

    Attributes:
        directory: real path of its directory.
        file: the file's name for people.
        is_component: it is a part of others and cannot be built alone.
        directories: real paths of the directories that it builds on.
        files: real paths of the files that it uses.
        resources: real paths of the files among them that hold objects.
        alters: it changes the objects of its resources, by patches and the like.
        refused: what it may not name.
        refused_inflating: what it may not name where it inflates Helm charts.
        charts: paths of the charts that it inflates.
        inflates: where it names Helm charts.
        sort_options: the order in which it wants objects written.
    """

    directory: str
    file: str
    text: str = ""
    is_component: bool = False
    directories: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    alters: bool = False
    refused: tuple[Refused, ...] = ()
    refused_inflating: tuple[Refused, ...] = ()
    charts: tuple[str, ...] = ()
    inflates: tuple[int, int] | None = None
    sort_options: Any = None


def read_kustomization(directory: str, name: str = "", *, named: bool = False) -> KustomizationFile | Problem | None:
    """Read the kustomization of a directory; None when there is none, or a file of that name is something else.

    Args:
        directory: as the user wrote it.
        name: the file's name, where it is known.
        named: another kustomization builds on the directory, so that what is something else is a problem too.
    """
    names = (
        [name]
        if name
        else [candidate for candidate in KUSTOMIZATION_FILES if os.path.lexists(Path(directory, candidate))]
    )
    if not names:
        return None
    file = os.path.join(directory, names[0])  # noqa: PTH118 -- the user's `./` stays
    documents = _documents(file)
    if isinstance(documents, Problem):
        return documents
    value = documents[0].value if documents else {}
    if not documents or not isinstance(value, dict) or not _is_kustomization(value):
        return Problem(file, 0, 0, "is not a kustomization", _CHECK) if named else None
    if len(documents) > 1:
        return Problem(file, documents[1].first_line, 1, "a second document: write one", _CHECK)
    return _read(directory, file, documents[0], value)


def _documents(file: str) -> list[Document] | Problem:
    """Return the documents of a kustomization, or why they cannot be read."""
    wrong = _refused_file(file)
    if wrong:
        return Problem(file, 0, 0, wrong, "put a file in its place, or leave it out with --exclude")
    try:
        data = read_regular(Path(file), MAX_BYTES)
    except OSError as error:
        return Problem(file, 0, 0, (error.strerror or "cannot be read").lower(), "make it readable for you")
    parts = list(read_bytes(file, data))
    broken = next((part for part in parts if isinstance(part, Problem) and not part.warning), None)
    return broken or [part for part in parts if isinstance(part, Document)]


def _refused_file(file: str) -> str:
    top = tree_of(os.path.dirname(file) or os.curdir)  # noqa: PTH120 -- a text
    if top is not None:
        return refusal(file, top, Wanted.FILE)
    return "is a link out of the repository" if link_out(file) else ""


def _is_kustomization(value: dict[str, Any]) -> bool:
    versions = [version for _, version in _fields(value, "apiVersion")]
    return not versions or any(str(version or _GROUP).startswith(_GROUP) for version in versions)


def _read(directory: str, file: str, document: Document, value: dict[str, Any]) -> KustomizationFile:
    used = _Used(os.path.realpath(directory), tree_of(directory))
    used.all(value)
    inflates = next((path for key in HELM for path, _ in _fields(value, key)), used.inflates)
    placed = used.refused or used.refused_inflating or inflates
    positions = Positions(document) if placed else None

    def location(path: FieldPath) -> tuple[int, int]:
        span = positions.find(path) if positions else None
        return (span.line, span.column) if span else (0, 0)

    def located(refusals: list[tuple[FieldPath, str, str]]) -> tuple[Refused, ...]:
        return tuple(
            Refused(f"{render(path)}: {wrong}", remedy, *location(path), wrong if remedy == _TAKE else "")
            for path, wrong, remedy in refusals
        )

    return KustomizationFile(
        directory=used.directory,
        file=file,
        text=document.text,
        is_component=any(kind == "Component" for _, kind in _fields(value, "kind")),
        directories=tuple(used.directories),
        files=tuple(used.files),
        resources=tuple(used.resources),
        alters=any(_fields(value, key) for key in ALTER),
        refused=located(used.refused),
        refused_inflating=located(used.refused_inflating),
        charts=tuple(used.charts),
        inflates=location(inflates) if inflates else None,
        sort_options=next((option for _, option in _fields(value, "sortOptions")), None),
    )


@dataclass(slots=True)
class _Used:
    """What the names in a kustomization lead to.

    Attributes:
        directory: real path of its directory.
        top: the real path of the work tree; None where the user named a directory that belongs to none.
        resources: the files that hold objects.
    """

    directory: str
    top: str | None
    directories: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    charts: list[str] = field(default_factory=list)
    refused: list[tuple[FieldPath, str, str]] = field(default_factory=list)
    refused_inflating: list[tuple[FieldPath, str, str]] = field(default_factory=list)
    inflates: FieldPath = ()

    def all(self, value: dict[str, Any]) -> None:
        """Take in all names of a kustomization."""
        for path, entry in (item for key in BUILT_ON for item in _items(value, key)):
            self._built_on(entry, path)
        for path, entry in (item for key in FILES for item in _items(value, key)):
            self._file(entry, path)
        with_path = [item for key in WITH_PATH for item in _mappings(value, key)]
        for path, mapping in [*with_path, *_fields(value, "openapi")]:
            for at, file in _texts_of(mapping, "path"):
                self._file(file, (*path, *at))
        for path, mapping in (item for key in GENERATORS for item in _mappings(value, key)):
            self._generated(mapping, path)
        for path, entry in (item for key in PLUGINS for item in _items(value, key)):
            self._plugin(entry, path)
        self._helm(value)
        self._of_git(value, ())

    def _built_on(self, entry: str, path: FieldPath) -> None:
        """Take in what is a file, a directory or remote; what is none of them kustomize would try to fetch."""
        real = self._allowed(entry, path)
        if real is None:
            return
        if os.path.isdir(real):  # noqa: PTH112 -- pathlib raises for names that are too long
            self.directories.append(real)
            return
        self.files.append(real)  # also what is missing, which was perhaps deleted
        if not os.path.exists(real):  # noqa: PTH110 -- as above
            is_remote = any(sign in entry.lower() for sign in _REMOTE_SIGNS)
            wrong = f"{entry[:_LONGEST_NAME]} {_ELSEWHERE}" if is_remote else f"{entry[:_LONGEST_NAME]} does not exist"
            self.refused.append((path, wrong, _TAKE if is_remote else _CHECK))
        elif str(path[0]).casefold() in BUILT_ON:
            self.resources.append(real)

    def _file(self, entry: str, path: FieldPath) -> None:
        # A text over several lines is YAML in the place of a file.
        # JSON of a patch may be on one line.
        is_text = "\n" in entry or "{" in entry or len(entry) > _LONGEST_NAME
        real = None if is_text else self._allowed(entry, path)
        if real is None:
            return
        self.files.append(real)
        if not os.path.exists(real):  # noqa: PTH110 -- pathlib raises for names that are too long
            self.refused.append((path, f"{entry[:_LONGEST_NAME]} does not exist", _CREATE))

    def _allowed(self, entry: str, path: FieldPath) -> str | None:
        """Return the real path of an entry that may be read; None, with the reason noted, for another one."""
        try:
            named = os.path.join(self.directory, entry)  # noqa: PTH118 -- a text for realpath
            real = os.path.realpath(named)
        except ValueError:
            return None  # a NUL, or half of a character: no name of a file, and kustomize says so
        wrong = refusal(named, self.top) if self.top is not None else ""
        if _is_remote(entry):
            self.refused.append((path, f"{entry[:_LONGEST_NAME]} {_ELSEWHERE}", _TAKE))
        elif wrong:
            self.refused.append((path, f"{entry[:_LONGEST_NAME]} {wrong}", _OWN))
        else:
            return real
        return None

    def _generated(self, entry: dict[str, Any], path: FieldPath) -> None:
        for key in FILES_OF_GENERATORS:
            for at, member in _fields(entry, key):
                listed = enumerate(member) if isinstance(member, list) else [(None, member)]
                for number, file in listed:
                    if isinstance(file, str):
                        where = (*path, *at) if number is None else (*path, *at, number)
                        self._file(file.partition("=")[2] or file, where)

    def _plugin(self, entry: str, path: FieldPath) -> None:
        """Take in the configuration of plugins, which kustomize reads from a file, from what a directory builds, or here."""
        inline = _inline(entry)
        if inline:
            for value in inline:
                self._configured(value, path)
            return
        before = len(self.directories)
        self._built_on(entry, path)
        if len(self.directories) > before:
            # What it builds is not known before kustomize runs, and may name any file below this directory.
            if _holds_git(self.directory):
                self.refused.append((path, f"{entry} is a directory, and .git is below this kustomization", _WRITE))
            self.refused_inflating.append((path, f"{entry} is a directory, which could make a Helm chart", _WRITE))
            return
        real = os.path.realpath(os.path.join(self.directory, entry))  # noqa: PTH118 -- a text for realpath
        if real in self.files[-1:] and os.path.exists(real):  # noqa: PTH110 -- as above
            self._plugin_file(entry, real, path)

    def _plugin_file(self, entry: str, real: str, path: FieldPath) -> None:
        try:
            parts = list(read_bytes(entry, read_regular(Path(real), MAX_BYTES)))
        except OSError as error:
            self.refused.append((path, f"{entry}: {(error.strerror or 'cannot be read').lower()}", _CHECK))
            return
        broken = next((part for part in parts if isinstance(part, Problem) and not part.warning), None)
        if broken is not None:
            self.refused.append((path, f"{entry}:{broken.line}: {broken.message}", broken.remedy))
        for part in parts:
            if isinstance(part, Document):
                self._configured(part.value, path)

    def _configured(self, value: Any, path: FieldPath) -> None:
        """Take in the configuration of one plugin: what is not below its directory kustomize refuses itself."""
        self._of_git(value, (), path)
        if isinstance(value, dict) and any(kind == _INFLATES for _, kind in _fields(value, "kind")):
            self.inflates = self.inflates or path
            self._inflated(value, value, (), path)

    def _helm(self, value: dict[str, Any]) -> None:
        globals_: dict[str, Any] = {}
        for number, (path, member) in enumerate(_fields(value, "helmGlobals")):
            globals_ = member if isinstance(member, dict) else {}
            self._no_home(globals_, path)
            if number:
                self.refused_inflating.append((path, _TWICE, "write it once"))
        for key in HELM:
            for path, entry in _mappings(value, key):
                self._inflated(entry, {**globals_, **entry} if key == HELM[1] else globals_, path)

    def _no_home(self, globals_: dict[str, Any], path: FieldPath, reported_at: FieldPath | None = None) -> None:
        for key in ("configHome", "helmHome"):
            for at, member in _fields(globals_, key):
                if member:
                    prefix = f"{render(at)} " if reported_at is not None else ""
                    wrong = f"{prefix}chooses the plugins of Helm, which are programs"
                    where = reported_at if reported_at is not None else (*path, *at)
                    self.refused_inflating.append((where, wrong, "leave it out"))

    def _inflated(
        self, entry: dict[str, Any], globals_: dict[str, Any], path: FieldPath, reported_at: FieldPath | None = None
    ) -> None:
        """Take in one Helm chart: it is in the tree already, and no field is a flag of Helm."""

        def refuse(at: FieldPath, wrong: str, remedy: str) -> None:
            where = reported_at if reported_at is not None else (*path, *at)
            self.refused_inflating.append(
                (where, f"{render(at)}: {wrong}" if reported_at is not None else wrong, remedy)
            )

        self._no_home(entry, path, reported_at)
        for key in _OF_CHART:
            for at, _ in _fields(entry, key)[1:]:
                refuse(at, _TWICE, "write it once")
        for at, release in _fields(entry, "releaseName"):
            if isinstance(release, str) and release.startswith("-"):
                refuse(at, f"{release} would be a flag of Helm", "write the name of a release")
        files = [(at, file) for key in ("valuesFile", "values") for at, file in _fields(entry, key)]
        for at, listed in _fields(entry, "additionalValuesFiles"):
            files += [((*at, index), file) for index, file in enumerate(listed if isinstance(listed, list) else ())]
        for at, file in files:
            if not isinstance(file, str) or not file:
                continue
            wrong = refusal(self._path(file), self.top or self.directory, Wanted.FILE)
            if wrong or _is_remote(file) or any(sign in file for sign in ',"'):
                # Helm takes several names from one text, parted by commas.
                refuse(at, f"{file} {wrong or 'is not the name of one file'}", _OWN)
            else:
                self.files.append(os.path.realpath(self._path(file)))
        self._chart(entry, globals_, refuse)

    def _chart(self, entry: dict[str, Any], globals_: dict[str, Any], refuse: Any) -> None:  # Any: a function of ours
        def text(key: str, value: dict[str, Any]) -> str:
            return next((member for _, member in _fields(value, key) if isinstance(member, str) and member), "")

        name = text("name", entry) or text("chartName", entry)
        home = text("chartHome", globals_) or _DEFAULT_CHARTS
        version, repo = text("version", entry), text("repo", entry)
        version, repo = version or text("chartVersion", entry), repo or text("chartRepoUrl", entry)
        folder = os.path.join(home, f"{name}-{version}") if version and repo else home  # noqa: PTH118 -- a text
        chart = self._path(os.path.join(folder, name))  # noqa: PTH118 -- as above
        at: FieldPath = ("name",)
        if "\0" in chart:
            return
        wrong = refusal(chart, self.top or self.directory, Wanted.DIRECTORY)
        if wrong:
            refuse(at, f"the chart {os.path.join(folder, name)} {wrong}", _OWN)  # noqa: PTH118 -- as above
        elif not os.path.isdir(chart):  # noqa: PTH112 -- as above
            missing = os.path.join(folder, name)  # noqa: PTH118 -- as above
            refuse(
                at, f"chart {missing} is missing, and gpugate uses no network", "run `helm pull --untar` there first"
            )
        else:
            self.charts.append(chart)

    def _of_git(self, value: Any, path: FieldPath, reported_at: FieldPath | None = None) -> None:
        """Refuse every text that names one of git's own files, in whatever field it stands."""
        noted = {at for at, _, _ in self.refused}
        for number, (at, text) in enumerate(_texts(value, path)):
            where = at if reported_at is None else reported_at
            name = text.partition("=")[2] or text
            if number >= _MOST_TEXTS:
                self.refused.append((where, f"more than {_MOST_TEXTS:,} texts", "split it"))
                return
            if where in noted or len(name) > _LONGEST_NAME or "\n" in name or "\0" in name:
                continue
            # lexists first, as it is one call to the system.
            if os.path.lexists(self._path(name)) and _is_of_git(os.path.realpath(self._path(name))):
                prefix = "" if reported_at is None else f"{render(at)}: "
                self.refused.append((where, f"{prefix}{name} is in .git, which can hold credentials", _OWN))

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)  # noqa: PTH118 -- a text


def _is_remote(entry: str) -> bool:
    """Tell whether kustomize would fetch an entry, also where a file or directory has that name."""
    if _SCHEME.match(entry):
        return True
    user = _USER.match(entry)
    return user is not None and any(sign in user["rest"] for sign in ("/", ".git"))


def _is_of_git(real: str) -> bool:
    return any(map(is_git, Path(real).parts)) and os.path.exists(real)  # noqa: PTH110 -- of a text


def _holds_git(directory: str) -> bool:
    return any(is_git(name) for _, folders, _ in os.walk(directory) for name in folders)


def _inline(entry: str) -> list[Any]:
    """Return the configurations of plugins that an entry holds itself; none where it is a name."""
    if ":" not in entry or not ("\n" in entry or entry.lstrip().startswith("{")):
        return []
    values = [part.value for part in read_text("", entry) if isinstance(part, Document)]
    return [value for value in values if isinstance(value, dict)]


def _fields(value: Any, key: str) -> list[tuple[FieldPath, Any]]:
    """Return the members of an object whose key is one, in any case, each with its path."""
    if not isinstance(value, dict):
        return []
    wanted = key.casefold()
    return [((name,), member) for name, member in value.items() if isinstance(name, str) and name.casefold() == wanted]


def _items(value: dict[str, Any], key: str) -> Iterator[tuple[FieldPath, str]]:
    for path, listed in _fields(value, key):
        for index, entry in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(entry, str):
                yield (*path, index), entry


def _mappings(value: dict[str, Any], key: str) -> Iterator[tuple[FieldPath, dict[str, Any]]]:
    for path, listed in _fields(value, key):
        for index, entry in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(entry, dict):
                yield (*path, index), entry


def _texts_of(value: Any, key: str) -> Iterator[tuple[FieldPath, str]]:
    yield from ((path, member) for path, member in _fields(value, key) if isinstance(member, str) and member)


def _texts(value: Any, path: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    """Yield the texts in a value, with their paths."""
    waiting: list[tuple[FieldPath, Any]] = [(path, value)]
    while waiting:
        at, node = waiting.pop()
        if isinstance(node, str):
            yield at, node
        elif isinstance(node, dict):
            waiting += [
                ((*at, str(key)), member) for key, member in node.items() if str(key).casefold() not in _NO_PATHS
            ]
        elif isinstance(node, list):
            waiting += [((*at, index), member) for index, member in enumerate(node)]


_PART: Final = "a component that no kustomization here uses"

_Read = KustomizationFile | Problem | None


@dataclass(slots=True)
class Plan:
    """The kustomizations to build, and the real paths of the files that are not evaluated separately."""

    options: RenderOptions
    read: dict[str, _Read] = field(default_factory=dict)
    builders: dict[str, set[str]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    def of(self, kustomization: Kustomization) -> Iterator[KustomizationJob | Failure | Passed]:
        """Yield the job of a kustomization, what is in its way, or nothing where others are built on it."""
        real = os.path.realpath(kustomization.name)
        file = self.read.get(real)
        if isinstance(file, Problem):
            yield Failure(kustomization.name, file, directory=real)
        if not isinstance(file, KustomizationFile):
            return
        closure, problems = self.closure(real)
        if self._is_part(file, closure):
            return
        if file.is_component:
            yield Passed(kustomization.name, _PART)
            return
        changed = self.options.changed
        if changed is not None and not any(changed & _files(part) for part in closure):
            return
        unread = [Failure(kustomization.name, problem, directory=real) for problem in problems]
        in_the_way = [*unread, *obstacles(kustomization.name, closure, inflate=self.options.inflate)]
        yield from in_the_way
        if not in_the_way:
            yield KustomizationJob(kustomization.name, file, self.options.inflate, tuple(closure))

    def _is_part(self, file: KustomizationFile, closure: Sequence[KustomizationFile]) -> bool:
        """Tell whether one that is built contains this one; of a circle none does, so that kustomize refuses it aloud."""
        visited = {part.directory for part in closure}
        waiting = [file.directory]
        while waiting:
            above = self.builders.get(waiting.pop(), set()) - visited
            if any(isinstance(user := self.read[real], KustomizationFile) and not user.is_component for real in above):
                return True
            visited |= above
            waiting += above
        return False

    def closure(self, real: str) -> tuple[list[KustomizationFile], list[Problem]]:
        """Return a kustomization and all that it builds on, and what of that cannot be read, also outside of what was named."""
        files: dict[str, KustomizationFile] = {}
        problems: list[Problem] = []
        waiting, visited = [real], {real}
        while waiting:
            real = waiting.pop()
            if self.read.get(real) is None:
                # Also what was passed over as something else: kustomize would read it.
                self.read[real] = read_kustomization(os.path.relpath(real), named=True)
            file = self.read[real]
            if isinstance(file, Problem):
                problems.append(file)
            elif file is not None:
                files[real] = file
                waiting += [directory for directory in reversed(file.directories) if directory not in visited]
                visited.update(file.directories)
        return list(files.values()), problems


def planned(inputs: Sequence[Found | Chart | Kustomization], options: RenderOptions) -> Plan:
    """Read the kustomizations among what was found, and tell what builds on what."""
    plan = Plan(options)
    for part in inputs:
        if isinstance(part, Kustomization):
            plan.read[os.path.realpath(part.name)] = read_kustomization(part.name, part.file)
    for file in plan.read.values():
        if isinstance(file, KustomizationFile):
            for directory in file.directories:
                plan.builders.setdefault(directory, set()).add(file.directory)
            plan.used |= _files(file)
    return plan


def _files(file: KustomizationFile) -> set[str]:
    return {*file.files, os.path.join(file.directory, os.path.basename(file.file))}  # noqa: PTH118, PTH119 -- real paths as texts
