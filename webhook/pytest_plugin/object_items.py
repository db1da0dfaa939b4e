"""Each object of the files that `gpugate_manifests` names as a test: it fails where admission would deny it.

All of them are judged at once, as one run of `gpugate check`, so that they are facts for each other.
"""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.engine.config import GpugateError
from gpugate.webhook.manifests.documents import Positions
from gpugate.webhook.manifests.inputs import Input
from gpugate.webhook.manifests.load import parts
from gpugate.webhook.manifests.objects import Manifest
from gpugate.webhook.pytest_plugin.checking import checked
from gpugate.webhook.pytest_plugin.surroundings import shown
from gpugate.webhook.report import text
from gpugate.webhook.report.located import ObjectName, Report, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpugate.webhook.manifests.documents import Document
    from gpugate.webhook.pytest_plugin.patterns import Patterns
    from gpugate.webhook.report.located import Located


class ObjectDeniedError(Exception):
    """Admission would deny an object; `findings` say why."""

    def __init__(self, findings: list[Located]) -> None:
        super().__init__(f"{len(findings)} findings")
        self.findings = findings


class Objects:
    """The files that the setting names, and what is found in all of them, judged when the first is run."""

    def __init__(self, config: pytest.Config, patterns: Patterns) -> None:
        self._config = config
        self._patterns = patterns

    @cached_property
    def denials(self) -> tuple[Located, ...]:
        """Everything that would be denied, and everything that could not be read or judged.

        Raises:
            GpugateError: the project file or the policy file is refused.
        """
        found = checked(["--no-render", "--", *map(shown, sorted(self._patterns.files))], self._config).findings
        return tuple(finding for finding in found if finding.severity is Severity.ERROR)

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Collect a file that the setting names."""
        if file_path not in self._patterns.files:
            return None
        self._patterns.collected.add(file_path)
        return ObjectFile.of(parent, file_path, self)


class ObjectFile(pytest.File):
    """A file of manifests."""

    def __init__(self, *, objects: Objects, **kwargs: Any) -> None:  # Any: pytest's own arguments, passed on
        super().__init__(**kwargs)
        self._objects = objects

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path, objects: Objects) -> ObjectFile:
        """Make the node of a file."""
        made: ObjectFile = cls.from_parent(parent, path=path, objects=objects)
        return made

    def collect(self) -> Iterator[pytest.Item]:
        """Return a test for each object, and one for the file as a whole."""
        file = shown(self.path)
        yield ObjectItem.from_parent(self, name="can be read", file=file, objects=self._objects)
        seen: Counter[str] = Counter()
        for part in parts(Input(file, explicit=True), "default"):
            if isinstance(part, Manifest):
                request = part.request
                name = ObjectName(request.kind.api_version, request.kind.kind, request.namespace, request.shown_name)
                seen[str(name)] += 1
                number = f" ({seen[str(name)]})" if seen[str(name)] > 1 else ""
                yield ObjectItem.from_parent(
                    self, name=f"{name}{number}", file=file, objects=self._objects, of=name, manifest=part
                )


class ObjectItem(pytest.Item):
    """An object, or what a file holds beside objects."""

    def __init__(
        self,
        *,
        file: str,
        objects: Objects,
        of: ObjectName | None = None,
        manifest: Manifest | None = None,
        **kwargs: Any,  # Any: pytest's own arguments, passed on
    ) -> None:
        super().__init__(**kwargs)
        self._file = file
        self._objects = objects
        self._of = of
        self._document: Document | None = manifest.document if manifest else None
        self._line = Positions(manifest.document).find(manifest.prefix).line if manifest else 1

    def runtest(self) -> None:
        """Fail where admission would deny the object."""
        found = [each for each in self._objects.denials if self._concerns(each)]
        if found:
            raise ObjectDeniedError(found)

    def _concerns(self, finding: Located) -> bool:
        if finding.place.file != self._file or finding.object != self._of:
            return False
        if self._document is None:
            return True
        first = self._document.first_line
        return first <= finding.place.line < first + max(1, len(self._document.text.splitlines()))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:  # Any: as pytest has it
        """Show the findings with frames of the file, as `gpugate check` does."""
        if isinstance(excinfo.value, ObjectDeniedError):
            return text.write(Report(tuple(excinfo.value.findings)), quiet=True).rstrip("\n")
        if isinstance(excinfo.value, GpugateError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Say where the object stands; pytest counts lines from 0."""
        return self.path, self._line - 1, self.name
