"""Load policies from the files of directories and from installed packages, and check what they define.

A Python policy is code. Loading a file runs it with the rights of the process.
"""

from __future__ import annotations

import sys
import traceback
from dataclasses import replace
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.catalog import CATALOG
from gpugate.policies.sdk import SDK
from gpugate.policies.sdk.concerns import Concern
from gpugate.policies.sdk.facts import Need
from gpugate.policies.sdk.findings import Patch, Patches, Replacement, Skip, Stance, Violation
from gpugate.policies.sdk.objects import Kind
from gpugate.policies.sdk.policy import Handler, Policy
from gpugate.webhook.manifests.policy_documents import PolicyDocumentError, read_policies
from gpugate.webhook.own_policies.sources import GROUP, OwnPolicy, OwnPolicyError, PolicySource, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from types import ModuleType

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.policy import AnyContext
_LONGEST_MESSAGE: Final = 200
# Errors whose text names code. The text of others may contain a value that the code read.
_TELLING: Final = (ImportError, NameError, AttributeError, TypeError, SyntaxError)


def load_sources(sources: Sequence[PolicySource]) -> list[OwnPolicy]:
    """Load the policies of directories: those of Python files, and those of YAML files with documents of the kind Policy.

    Python files of one folder import shared code from each other with `from ._shared import name`.

    Raises:
        OwnPolicyError: a file is invalid.
    """
    python = [source for source in sources if source.is_python]
    own = [policy for source in sources if not source.is_python for policy in _documented(source)]
    files = {source.family.replace("_", "-"): source.file for source in python}
    for policy in own:
        files.setdefault(policy.policy.id.partition("/")[0], policy.origin)
    _refuse_families(list(files), files)
    finder = _Finder(python)
    sys.meta_path.insert(0, finder)
    try:
        own += [
            _own(_imported(name, source, finder), source.family, source.name, source.file, Path(source.examples))
            for name, source in finder.by_module.items()
            if not source.name.startswith("_")
        ]
    except BaseException:
        finder.forget()
        raise
    finally:
        sys.meta_path.remove(finder)
    return own


def _documented(source: PolicySource) -> list[OwnPolicy]:
    """Load the policies in CEL of a file; runs no code of the file."""
    folder = Path(source.examples).parent
    try:
        policies = read_policies(source.file, source.data, source.family.replace("_", "-"))
    except PolicyDocumentError as error:
        raise OwnPolicyError(str(error)) from None
    return [
        OwnPolicy(policy, source.file, folder / policy.id.partition("/")[2].replace("-", "_")) for policy in policies
    ]


class _Finder(MetaPathFinder, Loader):
    """Imports the files of one set. Their package is named after their content, so that sets do not share modules."""

    def __init__(self, sources: Sequence[PolicySource]) -> None:
        self.package = f"gpugate_own_{digest(sources).hex()[:16]}"
        self.by_module: dict[str, PolicySource] = {}
        for source in sources:
            name = f"{self.package}.{_identifier(source.family)}.{_identifier(source.name)}"
            other = self.by_module.setdefault(name, source)
            if other is not source:
                raise OwnPolicyError(f"{source.file}: {other.file} has the same name: rename one")
        self._packages = {self.package, *(name.rpartition(".")[0] for name in self.by_module)}
        # A set with the same content may be loaded already, whose modules were changed since.
        self.forget()

    def forget(self) -> None:
        """Remove the modules of this set."""
        for name in [name for name in sys.modules if name == self.package or name.startswith(f"{self.package}.")]:
            del sys.modules[name]

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002 -- the protocol
        """Return how a module of this set is loaded; None for other modules."""
        if fullname in self._packages:
            return ModuleSpec(fullname, self, is_package=True)
        source = self.by_module.get(fullname)
        return ModuleSpec(fullname, self, origin=source.file) if source else None

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run a file."""
        source = self.by_module.get(module.__name__)
        if source is not None:
            module.__file__ = source.file
            code = compile(source.data, source.file, "exec", dont_inherit=True)
            exec(code, module.__dict__)  # noqa: S102 -- the purpose of this module


def _imported(name: str, source: PolicySource, finder: _Finder) -> ModuleType:
    try:
        return import_module(name)
    except SyntaxError as error:
        where = f"{error.filename}:{error.lineno}:{error.offset}" if error.lineno else source.file
        raise OwnPolicyError(f"{where}: invalid Python: {error.msg}: correct this line") from None
    except (Exception, SystemExit) as error:  # noqa: BLE001 -- what a file raises is an error in the file
        files = {loaded.file for loaded in finder.by_module.values()}
        raise OwnPolicyError(_failed(error, source.file, files)) from None


def _failed(error: BaseException, file: str, files: Collection[str]) -> str:
    """Say where the code of a policy failed while it was loaded, and what to do."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    where = f"{own[-1].filename}:{own[-1].lineno}" if own else f"{file}:1"
    if isinstance(error, ModuleNotFoundError) and error.name and not error.name.startswith("gpugate"):
        return f"{where}: imports {error.name}, which is not installed: install it in the environment of gpugate"
    text = f": {error}" if isinstance(error, _TELLING) else ""
    return f"{where}: raises {type(error).__name__}{text}"[:_LONGEST_MESSAGE] + ": correct it; no policy was loaded"


def _own(module: ModuleType, family: str, name: str, file: str, examples: Path) -> OwnPolicy:
    handlers = tuple(value for value in vars(module).values() if isinstance(value, Handler))
    wrong = _wrong(module, handlers)
    if wrong:
        raise OwnPolicyError(f"{file}:{wrong}")
    policy_id = f"{family}/{name}".replace("_", "-")
    doc = (module.__doc__ or "").strip()
    checked = tuple(replace(handler, run=_checked(handler)) for handler in handlers)
    return OwnPolicy(Policy(policy_id, doc, checked), file, examples)


def _wrong(module: ModuleType, handlers: Sequence[Handler[Any]]) -> str:
    """Return line and description of what makes a module no policy; empty where it is one."""
    wanted = getattr(module, "SDK", SDK)
    if wanted != SDK:
        return f"1: written for SDK {wanted!r}: this gpugate has SDK {SDK}; install another version of gpugate"
    if not (module.__doc__ or "").strip():
        return "1: missing documentation: begin the file with a docstring that says what the policy finds"
    if not handlers:
        return "1: contains no policy: decorate a function with @validates(KIND) or @mutates(KIND)"
    if len({(handler.mode, handler.params) for handler in handlers}) != 1:
        return "1: its functions have different modes or parameters: write the same `mode` and `params` for all"
    return next((wrong for handler in handlers if (wrong := _wrong_decorator(handler))), "")


def _wrong_decorator(handler: Any) -> str:  # Any: mypy has not checked the arguments of the decorator
    code = getattr(handler.run, "__code__", None)
    line = code.co_firstlineno if code else 1
    if not handler.kinds or not all(isinstance(kind, Kind) for kind in handler.kinds):
        return f"{line}: the decorator names no kind: write a kind such as POD of gpugate.policies.sdk.objects"
    if not isinstance(handler.needs, tuple) or not all(isinstance(need, Need) for need in handler.needs):
        return f"{line}: invalid `needs`: write a tuple of Need(KIND, FIELDS)"
    if not isinstance(handler.concerns, Concern):
        return f"{line}: invalid `concerns`: write a Concern such as MAY_DEMAND"
    if not isinstance(handler.mode, Stance):
        return f"{line}: invalid `mode`: write a Stance such as Stance.WARN"
    return ""


class UnexpectedYieldError(TypeError):
    """A policy yielded something that is no finding of its kind of function."""


def _checked(handler: Handler[Any]) -> Callable[[Field, AnyContext], Iterator[Patch | Violation | Skip]]:
    """Return the function of a policy with its results checked: what the engine gets from the library is checked by mypy."""
    allowed = (Patch, Violation, Skip) if handler.mutates else (Violation, Skip)
    # Nothing has checked the types of what the function returns.
    run: Callable[[Field, AnyContext], Any] = handler.run

    def call(subject: Field, ctx: AnyContext) -> Iterator[Patch | Violation | Skip]:
        for item in run(subject, ctx) or ():
            if not isinstance(item, allowed) or not _is_valid(item):
                raise UnexpectedYieldError(type(item).__name__)
            yield item

    return call


# Fields of what a policy yields, with their types; a struct takes a value of any type.
_TYPES: Final[dict[type, dict[str, type | tuple[type, ...]]]] = {
    Skip: {"reason": str},
    Patch: {"path": tuple, "reason": str},
    Violation: {
        "path": tuple,
        "message": str,
        "at_most": Stance,
        "hint": str,
        "fix": (Patches, Replacement, NoneType),
        "why": str,
        "same_as": tuple,
        "others": tuple,
    },
}
_OPERATIONS: Final = frozenset({"set", "append", "remove"})


def _is_valid(item: Any) -> bool:  # Any: nothing has checked the types of its fields
    if not all(isinstance(getattr(item, name), kind) for name, kind in _TYPES[type(item)].items()):
        return False
    if isinstance(item, Patch):
        return item.op in _OPERATIONS
    fix: Any = item.fix if isinstance(item, Violation) else None
    return not isinstance(fix, Patches) or all(map(_is_patch, fix.patches))


def _is_patch(item: Any) -> bool:  # Any: as above
    return isinstance(item, Patch) and _is_valid(item)


def _refuse_families(names: Sequence[str], places: Mapping[str, str]) -> None:
    library = {policy.id.partition("/")[0] for policy in CATALOG}
    for name in names:
        if name in library:
            raise OwnPolicyError(
                f"{places[name]}: `{name}` is a family of the library, whose policies cannot be replaced: name the folder "
                "after your organisation"
            )


def _identifier(name: str) -> str:
    return name.replace("-", "_")


def load_packages(metadata: Iterable[str]) -> list[OwnPolicy]:
    """Load the policies of installed packages.

    Args:
        metadata: the folders `*.dist-info` of the packages. An entry point of the group names an organisation and the
            package of its policies, such as `acme = "acme_policies"`.

    Raises:
        OwnPolicyError: a policy is invalid.
    """
    from importlib.metadata import Distribution  # noqa: PLC0415 -- few environments have such a package

    policies: list[OwnPolicy] = []
    distributions = [Distribution.at(folder) for folder in metadata]
    entries = [(entry, package) for package in distributions for entry in package.entry_points.select(group=GROUP)]
    for entry, distribution in entries:
        origin = f"package {distribution.metadata['Name']} {distribution.version}"
        _refuse_families([entry.name], {entry.name: origin})
        try:
            package = import_module(entry.value)
            folders = [Path(folder) for folder in getattr(package, "__path__", ())]
            files = sorted(file for folder in folders for file in folder.glob("*.py") if not file.name.startswith("_"))
            modules = [(file, import_module(f"{entry.value}.{file.stem}")) for file in files]
        except (Exception, SystemExit) as error:  # noqa: BLE001 -- what a package raises is an error in the package
            raise OwnPolicyError(f"{origin}: {_failed(error, entry.value, ())}") from None
        for file, module in modules:
            own = _own(module, entry.name, file.stem, str(file), file.parent / "examples" / file.stem)
            policies.append(OwnPolicy(own.policy, origin, own.examples))
    return policies
