"""Runs each mutant with the tests that reach it.

One process per area imports all of it, instrumented, and collects the tests; every mutant is a fork of that process in
which its switch is set and the tests that reach it are run until one fails. Which tests reach which mutant is recorded
before, in forks as well, so that no cache of the program is warm. What is evaluated while modules are imported, such as
constants, is tried once more in a process that imports everything with the mutant active.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import importlib.util
import json
import marshal
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import mutant_points
import mutant_switch
import pytest
from hypothesis import Phase, settings

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable

ROOT: Final = Path(__file__).parents[2]
BUILT: Final = ROOT / "build" / "mutants"

KILLED: Final = "killed"
SURVIVED: Final = "survived"
TIMED_OUT: Final = "timed out"
UNREACHED: Final = "not reached"

# Beside a multiple of what its tests took when they were recorded.
_PATIENCE_SECONDS: Final = 20
_PATIENCE_FACTOR: Final = 10
_MEMORY_BYTES: Final = 4 << 30
_DEAR_SECONDS: Final = 0.3
# Plain asserts: pytest compiles the modules of its plugins itself to rewrite theirs, and this package is one.
_ARGUMENTS: Final = ("-q", "-p", "no:cacheprovider", "--capture=sys", "--assert=plain")
# What takes long to import and is none of ours; forks find it imported.
_WARM: Final = ("cryptography.x509.verification", "hypothesis.strategies", "jsonpatch", "msgspec", "pydantic")
# The most test files that a mutant of an import is tried with; each is collected anew.
_FILES: Final = 10
# How near a test is to a module that it imports itself.
_IMPORTS: Final = 1


# The number of a mutant, the recorded seconds of its tests, and what runs them in a fork: 0 when all pass.
_Run: TypeAlias = "tuple[int, float, Callable[[], int]]"
Tell: TypeAlias = "Callable[[int, str], None]"


@dataclass(frozen=True, slots=True)
class Area:
    """Modules that are tried together, the tests they are tried with, and files of those that are left out."""

    name: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    without: tuple[str, ...] = ()

    @property
    def files(self) -> list[Path]:
        """The modules, by path in the repository."""
        found = (file for pattern in self.modules for file in ROOT.glob(pattern))
        return sorted(file.relative_to(ROOT) for file in found if file.name != "__init__.py")


@dataclass(slots=True)
class Test:
    """What was recorded of a test: how long it took, whether it passed, and which mutants it reached."""

    seconds: float
    passed: bool
    reached: list[int] = field(default_factory=list)


def instrument(area: Area) -> list[mutant_points.Mutant]:
    """Write the instrumented modules of an area where Python looks for compiled ones, and return their mutants."""
    cache = BUILT / area.name / "pycache"
    shutil.rmtree(cache, ignore_errors=True)
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(cache)
    os.environ["PYTHONPATH"] = str(Path(__file__).parent)
    for name in _WARM:
        importlib.import_module(name)
    mutants: list[mutant_points.Mutant] = []
    for file in area.files:
        imported = ROOT / "src" / "gpugate" / file
        code, found = mutant_points.instrumented((ROOT / file).read_text(), str(file), str(imported), len(mutants))
        mutants += found
        compiled = Path(importlib.util.cache_from_source(str(imported)))
        compiled.parent.mkdir(parents=True, exist_ok=True)
        # Flag 1: known by a hash that is not checked (PEP 552), so that the source is not looked at.
        header = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8)
        compiled.write_bytes(header + marshal.dumps(code))
    return mutants


def outcomes(
    area: Area,
    mutants: list[mutant_points.Mutant],
    chosen: list[mutant_points.Mutant],
    *,
    tell: Tell,
    budget: float,
    jobs: int,
) -> dict[int, str]:
    """Try the chosen mutants of an area.

    Args:
        area: where they are.
        mutants: all that are compiled in.
        chosen: those to try.
        tell: called with each outcome as soon as it is known, in this process or a fork of it.
        budget: for how many recorded seconds other tests than the module's own are run, for each mutant.
        jobs: how many are tried at the same time.
    """
    scratch = Path(tempfile.mkdtemp(prefix="mutants-"))
    answer = scratch / "answer.json"
    try:
        plugin = _Collected(area, mutants, chosen, tell=tell, budget=budget, jobs=jobs, scratch=scratch)
        pid = os.fork()
        if pid == 0:
            left_out = [f"--ignore={file}" for file in area.without]
            _quietly(lambda: pytest.main([*_ARGUMENTS, *area.tests, *left_out], plugins=[plugin]))
        _, status = os.waitpid(pid, 0)
        if status or not answer.exists():
            raise SystemExit(f"error: the tests of {area.name} cannot be collected: pytest -q {' '.join(area.tests)}")
        answered = json.loads(answer.read_text())
        results = {int(number): outcome for number, outcome in answered["outcomes"].items()}
        again = [(int(number), tests, seconds) for number, (tests, seconds) in answered["again"].items()]
        runs = [(number, seconds, _importing_anew(number, tests)) for number, tests, seconds in again]
        return results | _tried(runs, tell, jobs, scratch)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class _Collected:
    """A plugin of pytest that records tests and tries mutants instead of running what was collected."""

    def __init__(
        self,
        area: Area,
        mutants: list[mutant_points.Mutant],
        chosen: list[mutant_points.Mutant],
        *,
        tell: Tell,
        budget: float,
        jobs: int,
        scratch: Path,
    ) -> None:
        self._area = area
        self._mutants = mutants
        self._chosen = chosen
        self._tell = tell
        self._budget = budget
        self._jobs = jobs
        self._scratch = scratch
        self._seconds = 0.0
        self._failed = False
        # What the setup of each fixture reached that several tests share, and of the current test what any did.
        self._of_fixtures: dict[int, set[int]] = {}
        self._of_setup: set[int] = set()
        self._reached: mutant_switch.Reached | None = None
        self._imported = self._watch("imported")
        self._firsts: dict[str, int] = {}
        for mutant in mutants:
            self._firsts.setdefault(mutant.module, mutant.number)
        self._digests = {str(file): _digest([ROOT / file]) for file in area.files}

    def _watch(self, name: str) -> mutant_switch.Reached:
        file = self._scratch / name
        file.write_bytes(bytes(len(self._mutants)))
        os.environ[mutant_switch.REACHED] = str(file)
        reached = mutant_switch.Reached(file)
        _switch(reached)
        return reached

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self) -> None:
        # A mutant has the same outcome each time, and no failure of one is remembered for the next.
        phases = (Phase.explicit, Phase.generate)
        parent = settings.get_profile("any-machine")
        settings.register_profile("mutants", parent, derandomize=True, database=None, phases=phases)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seconds += report.duration
        self._failed |= report.failed

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        if self._reached is None:
            return (yield)
        self._of_setup |= set(self._reached.take())
        try:
            return (yield)
        finally:
            found = set(self._reached.take())
            self._of_setup |= found
            if fixturedef.scope != "function":
                self._of_fixtures.setdefault(id(fixturedef), set()).update(found)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        imported = set(self._imported.take())
        gc.collect()
        gc.freeze()
        items = {item.nodeid: item for item in session.items}
        # A name that is made of something random is another one each time.
        tests = {nodeid: test for nodeid, test in self._recorded(session.items).items() if nodeid in items}
        _switch(mutant_switch.NONE)
        os.environ.pop(mutant_switch.REACHED, None)
        reaching = _Reaching(tests, self._mutants, self._chosen)
        results = dict.fromkeys(reaching.by_mutant, UNREACHED)
        runs = []
        for number in results:
            if self._mutants[number].at_import:
                continue
            nodeids = reaching.affordable(reaching.of(number), self._budget)
            if nodeids:
                run = self._forked(number, [(items[nodeid], tests[nodeid].seconds) for nodeid in nodeids])
                runs.append((number, _seconds(nodeids, tests), run))
            elif number not in imported:
                self._tell(number, UNREACHED)

        def tell(number: int, outcome: str) -> None:
            if outcome != SURVIVED or number not in imported:
                self._tell(number, outcome)

        results |= _tried(runs, tell, self._jobs, self._scratch)
        again = {}
        at_import = {mutant.number for mutant in self._chosen if mutant.at_import}
        for number in sorted(results.keys() & (imported | at_import)):
            if results[number] in {SURVIVED, UNREACHED}:
                affordable = reaching.affordable(reaching.of_module(number), self._budget)
                nodeids = _of_few_files(affordable, self._mutants[number].module)
                again[number] = (nodeids, _seconds(nodeids, tests))
        (self._scratch / "answer.json").write_text(json.dumps({"outcomes": results, "again": again}))
        return True

    def _forked(self, number: int, timed: list[tuple[pytest.Item, float]]) -> Callable[[], int]:
        items = [item for item, _ in timed]

        def run() -> int:
            _activate(number)
            self._failed = False
            try:
                for (item, seconds), following in zip(timed, [*items[1:], None], strict=True):
                    # For each test: one that waits for ever would use the time of all.
                    signal.setitimer(signal.ITIMER_REAL, _patience(seconds))
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                    if self._failed:
                        items[0].session._setupstate.teardown_exact(None)
                        break
            except BaseException:  # noqa: BLE001 -- whatever a mutant does
                return 1
            return int(self._failed)

        return run

    def _recorded(self, items: list[pytest.Item]) -> dict[str, Test]:
        """Return what each test reaches, recorded now, or before if its file and the modules that it reaches are the same."""
        by_file: dict[Path, list[pytest.Item]] = {}
        for item in items:
            by_file.setdefault(item.path, []).append(item)
        kept = BUILT / self._area.name / "recorded"
        kept.mkdir(parents=True, exist_ok=True)
        runner = _digest([Path(mutant_points.__file__), Path(__file__)])
        names = {file: kept / f"{_digest([file])}-{runner}.json" for file in by_file}
        known = {file: self._read(name) for file, name in names.items()}
        missing = sorted((file for file in by_file if known[file] is None), key=lambda f: -len(by_file[f]))
        in_processes([self._recording(index, by_file[f], names[f]) for index, f in enumerate(missing)], self._jobs)
        tests: dict[str, Test] = {}
        for file in by_file:
            tests |= known[file] or self._read(names[file]) or {}
        for old in set(kept.iterdir()) - set(names.values()):
            old.unlink()
        return tests

    def _read(self, name: Path) -> dict[str, Test] | None:
        """Read what was recorded of a test file; None if there is nothing, or a module that it reached has changed."""
        if not name.exists():
            return None
        recorded = json.loads(name.read_text())
        if any(self._digests.get(module) != digest for module, digest in recorded["modules"].items()):
            return None
        return {
            nodeid: Test(
                seconds, passed, [self._firsts[module] + each for module in reached for each in reached[module]]
            )
            for nodeid, (seconds, passed, reached) in recorded["tests"].items()
        }

    def _by_module(self, numbers: Iterable[int]) -> dict[str, list[int]]:
        """Return mutants by module, numbered from its first: what stays the same when other modules change."""
        found: dict[str, list[int]] = {}
        for number in sorted(numbers):
            module = self._mutants[number].module
            found.setdefault(module, []).append(number - self._firsts[module])
        return found

    def _recording(self, index: int, items: list[pytest.Item], name: Path) -> Callable[[], int]:
        # A process for each file: a value that an earlier file left in a cache would hide what a later one reaches.
        def run() -> int:
            self._reached = reached = self._watch(f"recorded-{index}")
            told = {}
            for item, following in zip(items, [*items[1:], None], strict=True):
                self._seconds, self._failed, self._of_setup = 0.0, False, set()
                reached.take()
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                # Only the first test of a file sets up what all of them use.
                shared = [self._of_fixtures.get(id(each), set()) for each in _fixtures(item)]
                found = self._of_setup.union(reached.take(), *shared)
                told[item.nodeid] = (self._seconds, not self._failed, self._by_module(found))
            modules = {module for _, _, reached in told.values() for module in reached}
            recorded = {"modules": {module: self._digests[module] for module in sorted(modules)}, "tests": told}
            partial = name.with_suffix(".partial")
            partial.write_text(json.dumps(recorded))
            partial.rename(name)
            return 0

        return run


def _fixtures(item: pytest.Item) -> list[pytest.FixtureDef[Any]]:
    """Return the fixtures that a test uses, also those that its fixtures use."""
    found = item._fixtureinfo.name2fixturedefs if isinstance(item, pytest.Function) else {}
    return [definition for definitions in found.values() for definition in definitions]


class _Reaching:
    """Which tests reach which mutant, the likeliest to notice it first."""

    def __init__(
        self,
        tests: dict[str, Test],
        mutants: list[mutant_points.Mutant],
        chosen: list[mutant_points.Mutant],
    ) -> None:
        self._modules = {mutant.number: mutant.module for mutant in chosen}
        self._at_import = {mutant.number for mutant in chosen if mutant.at_import}
        self.by_mutant: dict[int, list[str]] = {number: [] for number in self._modules}
        by_module: dict[str, set[str]] = {module: set() for module in self._modules.values()}
        for nodeid, test in tests.items():
            for number in test.reached if test.passed else ():
                if number in self.by_mutant:
                    self.by_mutant[number].append(nodeid)
                if mutants[number].module in by_module:
                    by_module[mutants[number].module].add(nodeid)
            # A test of constants, which are evaluated by the import, reaches no mutant of its module.
            for module, found in by_module.items():
                if test.passed and _distance(nodeid, module) <= _IMPORTS:
                    found.add(nodeid)
        self._tests = tests
        self._order = {module: _ordered(found, tests, module) for module, found in by_module.items()}
        self._own = {n for module, found in by_module.items() for n in found if _distance(n, module) == 0}

    def of(self, number: int) -> list[str]:
        """Return the tests that reach a mutant."""
        return sorted(self.by_mutant[number], key=self._order[self._modules[number]].__getitem__)

    def of_module(self, number: int) -> list[str]:
        """Return the tests that reach any mutant of the module, those that reach this one first.

        What an import evaluates is reached by tests that start a process, and noticed by any.
        """
        first = () if number in self._at_import else self.of(number)
        return list(dict.fromkeys([*first, *self._order[self._modules[number]]]))

    def affordable(self, nodeids: list[str], budget: float) -> list[str]:
        """Return the module's own tests, and of the others as many as there is time for, also where they only wait."""
        selected: list[str] = []
        for nodeid in nodeids:
            seconds = 0 if nodeid in self._own else self._tests[nodeid].seconds
            if seconds <= budget or not selected:
                budget -= seconds
                selected.append(nodeid)
        return selected


def _ordered(nodeids: set[str], tests: dict[str, Test], module: str) -> dict[str, int]:
    """Order tests: cheap before dear ones, those of the module first, one of each function before the second."""
    seen: dict[str, int] = {}
    ranked: list[tuple[bool, int, int, int, str]] = []
    for nodeid in sorted(nodeids, key=lambda n: (tests[n].seconds, n)):
        function = nodeid.partition("[")[0]
        seen[function] = seen.get(function, 0) + 1
        dear = tests[nodeid].seconds > _DEAR_SECONDS
        ranked.append((dear, _distance(nodeid, module), seen[function], len(ranked), nodeid))
    return {nodeid: place for place, (*_, nodeid) in enumerate(sorted(ranked))}


def _distance(nodeid: str, module: str) -> int:
    """Return 0 for a test of the module, 1 for one that imports it, 2 for one of its folder, 3 for any other."""
    file = Path(nodeid.partition("::")[0])
    if file.name.startswith(f"test_{Path(module).stem}"):
        return 0
    if _imports(file, module):
        return _IMPORTS
    return 2 if file.parent == "tests" / Path(module).parent else 3


@cache
def _imports(file: Path, module: str) -> bool:
    name = f"gpugate.{module.removesuffix('.py').replace('/', '.')}"
    return f"from {name} import" in (ROOT / file).read_text()


def _of_few_files(nodeids: list[str], module: str) -> list[str]:
    """Return the tests of a few files: those of the module first, also if they take longer than others."""
    files = list(dict.fromkeys(nodeid.partition("::")[0] for nodeid in nodeids))
    few = set(sorted(files, key=lambda file: _distance(file, module) > 0)[:_FILES])
    return [nodeid for nodeid in nodeids if nodeid.partition("::")[0] in few]


def _seconds(nodeids: list[str], tests: dict[str, Test]) -> float:
    return sum(tests[nodeid].seconds for nodeid in nodeids)


def _importing_anew(number: int, nodeids: list[str]) -> Callable[[], int]:
    wanted = set(nodeids)

    class Only:
        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            items[:] = [item for item in items if item.nodeid in wanted]

    def run() -> int:
        _activate(number)
        # One after the other: to collect them all takes longer than to fail in the first.
        files = list(dict.fromkeys(nodeid.partition("::")[0] for nodeid in nodeids))
        return int(any(pytest.main([*_ARGUMENTS, "-x", file], plugins=[Only()]) for file in files))

    return run


def _tried(runs: Iterable[_Run], tell: Tell, jobs: int, scratch: Path) -> dict[int, str]:
    """Run each mutant in a process of its own with a limit of time and memory."""
    results: dict[int, str] = {}
    running: dict[int, tuple[int, Path]] = {}

    def reap() -> None:
        pid, status = os.wait()
        number, room = running.pop(pid)
        _end_below(room)
        shutil.rmtree(room, ignore_errors=True)
        timed_out = os.WIFSIGNALED(status) and os.WTERMSIG(status) in {signal.SIGALRM, signal.SIGXCPU}
        results[number] = TIMED_OUT if timed_out else KILLED if status else SURVIVED
        tell(number, results[number])

    for number, seconds, run in runs:
        while len(running) >= jobs:
            reap()
        room = scratch / f"run-{number}"
        room.mkdir()
        pid = os.fork()
        if pid == 0:
            os.setsid()
            limit = _patience(seconds)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_REAL, limit)
            resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
            os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.tempdir = str(room)
            _quietly(run)
        running[pid] = (number, room)
    while running:
        reap()
    return results


def _patience(seconds: float) -> float:
    """Return how long may last what took so many seconds when it was recorded."""
    return _PATIENCE_SECONDS + _PATIENCE_FACTOR * seconds


def _end_below(room: Path) -> None:
    """End what the tests of a mutant started and left: each process whose temporary files are in this folder."""
    wanted = f"TMPDIR={room}".encode()
    for process in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in process.read_bytes().split(b"\0"):
                os.kill(int(process.parent.name), signal.SIGKILL)


def in_processes(runs: list[Callable[[], int]], jobs: int) -> None:
    """Run each in a process of its own, `jobs` at the same time.

    Raises:
        SystemExit: one of them failed.
    """
    running: set[int] = set()
    failed = False
    for place, run in enumerate(runs, 1):
        pid = os.fork()
        if pid == 0:
            _quietly(run)
        running.add(pid)
        while running and (len(running) >= jobs or place == len(runs)):
            pid, status = os.wait()
            running.discard(pid)
            failed |= bool(status)
    if failed:
        raise SystemExit("error: the tests could not be recorded")


def _quietly(run: Callable[[], Any]) -> None:
    """Run to the end of this process, which is a fork."""
    code = 1
    try:
        if not os.environ.get("MUTANTS_LOUD"):
            nothing = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(nothing, descriptor)
        code = int(run())
    except BaseException:  # noqa: BLE001 -- the process ends here whatever it was
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _activate(number: int) -> None:
    os.environ[mutant_switch.ACTIVE] = str(number)
    _switch(number)


def _switch(active: int | mutant_switch.Reached) -> None:
    mutant_switch.active = active
    for module in list(sys.modules.values()):
        if "_mutant_" in getattr(module, "__dict__", {}):
            module._mutant_ = active  # type: ignore[attr-defined] # made by the instrumentation


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(str(file).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:20]
