"""Several processes that read and evaluate the files of a run together.

Each stores the files that it reads until it evaluates them, so that only facts and findings are sent between processes.
"""

from __future__ import annotations

import gc
import multiprocessing
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.engine.config import GpugateError
from gpugate.policies.engine.ruleset import bind
from gpugate.webhook.check.session import TOGETHER, LocalSession, Results
from gpugate.webhook.own_policies.catalog import catalog_from

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from multiprocessing.connection import Connection

    from gpugate.policies.engine.config import PolicyConfig
    from gpugate.policies.engine.ruleset import Ruleset
    from gpugate.policies.sdk.objects import Request
    from gpugate.webhook.check.options import Options
    from gpugate.webhook.check.session import Apart, Numbered
    from gpugate.webhook.own_policies.catalog import Catalog
    from gpugate.webhook.own_policies.sources import PolicySource

_STEPS: Final = 50  # files after which a process says how far it is
# Almost everything that a process creates stays until its end. By default the collections of what it has created so far take
# a tenth of its time.
_COLLECT_AFTER: Final = (50_000, 20, 100)


class WorkerError(GpugateError):
    """A process ended before its work was done."""


class WorkerSession:
    """Reads and evaluates in several processes; `local` reads the streams of this process."""

    def __init__(self, count: int, ruleset: Ruleset, catalog: Catalog, options: Options, local: LocalSession) -> None:
        # A process may start without the memory of this one, so that it loads the policies itself.
        only = frozenset(rule.policy.id for rule in ruleset.rules)
        rules = (ruleset.config, only, catalog.sources, catalog.closed_families)
        self._local = local
        self._processes = []
        self._connections: list[Connection[Any, Any]] = []
        for _ in range(count):
            ours, theirs = multiprocessing.Pipe()
            process = multiprocessing.Process(target=_work, args=(theirs, rules, options), daemon=True)
            process.start()
            theirs.close()
            self._processes.append(process)
            self._connections.append(ours)

    @property
    def process_ids(self) -> list[int]:
        """The ids of the processes."""
        return [process.pid or 0 for process in self._processes]

    def read(self, files: Sequence[Numbered], step: Callable[[int], None]) -> list[tuple[int, list[Request]]]:
        """Read files; return the facts in each, with its number in the run."""
        here = [(number, file) for number, file in files if file.is_stream]
        others = [(number, file) for number, file in files if not file.is_stream]
        count = len(self._connections)
        for index in range(count):
            self._send(index, others[index::count])
        facts = self._local.read(here, step)
        for file_facts in self._answers(step):
            facts += file_facts
        return sorted(facts, key=lambda numbered: numbered[0])

    def evaluate(self, facts: Sequence[Request], step: Callable[[int], None], apart: Apart = TOGETHER) -> Results:
        """Evaluate the files with the facts of the whole run; `apart` has other ones for some files, by their numbers.

        Raises:
            GpugateError: a process has an error that a user can correct, or ended early.
        """
        for index in range(len(self._connections)):
            self._send(index, (facts, dict(apart)))
        results = self._local.evaluate(facts, step, apart)
        for answer in self._answers(step):
            results.add(answer)
        for process in self._processes:
            process.join()
        return results

    def _answers(self, step: Callable[[int], None]) -> list[Any]:
        """Collect one answer of each process, in their order."""
        answers: dict[int, Any] = {}
        while len(answers) < len(self._connections):
            waiting = [c for index, c in enumerate(self._connections) if index not in answers]
            for connection in wait(waiting):
                index = self._connections.index(connection)  # type: ignore[arg-type] # it is one of those waited for
                try:
                    message = self._connections[index].recv()
                except (EOFError, ConnectionError):
                    raise self._ended(index) from None
                if isinstance(message, GpugateError):
                    raise message
                if isinstance(message, int):
                    step(message)
                else:
                    answers[index] = message
        return [answers[index] for index in range(len(self._connections))]

    def _send(self, index: int, message: object) -> None:
        try:
            self._connections[index].send(message)
        except ConnectionError:
            raise self._ended(index) from None

    def _ended(self, index: int) -> WorkerError:
        self._processes[index].join()
        return WorkerError(f"a process ended early with code {self._processes[index].exitcode}; try --jobs 1")


def _work(
    connection: Connection[Any, Any],
    rules: tuple[PolicyConfig, Collection[str], tuple[PolicySource, ...], Collection[str] | None],
    options: Options,
) -> None:
    done = 0

    def step(files: int) -> None:
        nonlocal done
        done += files
        if done >= _STEPS:
            connection.send(done)
            done = 0

    gc.freeze()
    gc.set_threshold(*_COLLECT_AFTER)
    config, only, sources, closed_families = rules
    policies = catalog_from(sources).policies
    session = LocalSession(bind(policies, config, only, closed_families=closed_families), options)
    try:
        try:
            connection.send(session.read(connection.recv(), step))
            facts, apart = connection.recv()
            connection.send(session.evaluate(facts, step, apart))
        except GpugateError as error:
            # Some exceptions cannot be made again out of their text alone, which is all that is shown.
            connection.send(GpugateError(str(error)))
    except (EOFError, ConnectionError, KeyboardInterrupt):
        return  # the parent process has ended
