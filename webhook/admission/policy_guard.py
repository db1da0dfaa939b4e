"""Policies outside the library in the server: loaded in a trial first, bounded in time and memory, and switched off.

A policy that raises, hangs, allocates too much or ends its process is charged by its id, and is switched off for
`OFF_SECONDS` after repeated failures. Its result is then "not evaluated", and the other policies are evaluated as before.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import resource
import signal
import struct
import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from time import monotonic, thread_time
from typing import TYPE_CHECKING, Any, Final

from gpugate.policies.engine.config import GpugateError, OutOfTimeError
from gpugate.policies.sdk.findings import Skip
from gpugate.webhook.own_policies.sources import MOST_POLICIES, OwnPolicyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager
    from multiprocessing.connection import Connection
    from types import FrameType

    from gpugate.policies.sdk.field import Field
    from gpugate.policies.sdk.findings import Patch, Violation
    from gpugate.policies.sdk.policy import AnyContext, Handler, Policy

# Failures without a success in between after which a policy is switched off. One failure that ends a process counts as
# several, because every connection of the process is lost.
MOST_FAILURES: Final = 10
_OF_A_DEATH: Final = 4
OFF_SECONDS: Final = 600.0
SWITCHED_OFF: Final = "the policy is switched off, because it failed repeatedly"
# The time of one call on the clock, because a policy may wait. The time in which the thread waits for a processor does not
# count: on a busy node it would switch off a good policy.
MOST_SECONDS: Final = 0.5
# The CPU time of one call: less than the budget of a review, so that the other policies are still evaluated.
MOST_CPU_SECONDS: Final = 0.1
_TICK_SECONDS: Final = 0.02
# What one call may allocate.
MOST_BYTES: Final = 256 * 2**20
# The time in which all policies must be loaded, on a busy node too.
_TRIAL_SECONDS: Final = 15.0
_ORPHAN_SECONDS: Final = 5.0

_HEADER: Final = struct.Struct("=16s")
# The name of no set.
_UNCOUNTED: Final = b""
_STATE: Final = struct.Struct("=Id")  # failures, and the time until which the policy is off
_PROCESS: Final = struct.Struct("=ii")  # process id, and the running policy from 1
_RUNNING: Final = struct.Struct("=i")  # the second of these


class PolicyTimeoutError(Exception):
    """A call of a policy took too long."""


class _TooLongError(BaseException):
    """Raised by the timer in a policy, which may catch every Exception."""


class Guard:
    """Shared memory of the processes of one server about the policies outside the library; created before the fork.

    The rows of policies belong to one set of policies, whose name is in the header. A process with another set, which it has
    for a second during a reload, changes nothing.
    """

    def __init__(self, processes: int, clock: Callable[[], float] = monotonic) -> None:
        self._processes = processes
        self._states = _HEADER.size
        self._rows = self._states + MOST_POLICIES * _STATE.size
        self._memory = mmap.mmap(-1, self._rows + processes * _PROCESS.size)
        self._clock = clock

    @property
    def accepted(self) -> bytes:
        """The name of the set that was loaded in a trial without an error."""
        (name,) = _HEADER.unpack_from(self._memory)
        return bytes(name)

    def accept(self, name: bytes) -> None:
        """Let all processes use a set; its policies have no failures yet."""
        if name[:16] != self.accepted:
            self._memory[self._states : self._rows] = b"\0" * (self._rows - self._states)
            _HEADER.pack_into(self._memory, 0, name[:16])

    def failures(self, policy: int) -> int:
        """Return how often a policy failed since its last success."""
        count: int = self._state(policy)[0]
        return count

    def is_off(self, policy: int) -> bool:
        """Tell whether a policy is switched off."""
        until: float = self._state(policy)[1]
        return bool(until) and self._clock() < until

    def failed(self, policy: int, weight: int = 1) -> None:
        """Count a failure. A policy that was off before is switched off again by the first one."""
        failures, until = self._state(policy)
        failures += weight
        if failures >= MOST_FAILURES:
            until = self._clock() + OFF_SECONDS
        self._set(policy, failures, until)

    def succeeded(self, policy: int) -> None:
        """Forget the failures of a policy."""
        if any(self._state(policy)):
            self._set(policy, 0, 0.0)

    def begin(self, process: int) -> None:
        """Register this process."""
        _PROCESS.pack_into(self._memory, self._rows + process * _PROCESS.size, os.getpid(), 0)

    def running(self, process: int, policy: int | None) -> None:
        """Record which policy this process calls; None is none."""
        number = 0 if policy is None else policy + 1
        _RUNNING.pack_into(self._memory, self._rows + process * _PROCESS.size + _RUNNING.size, number)

    def died(self, pid: int) -> int | None:
        """Count the death of a process; return the policy that it was calling, None if it was calling none."""
        for process in range(self._processes):
            owner, number = _PROCESS.unpack_from(self._memory, self._rows + process * _PROCESS.size)
            if owner == pid and number:
                self.running(process, None)
                self.failed(number - 1, _OF_A_DEATH)
                return int(number) - 1
        return None

    def _state(self, policy: int) -> tuple[int, float]:
        failures, until = _STATE.unpack_from(self._memory, self._states + policy * _STATE.size)
        return failures, until

    def _set(self, policy: int, failures: int, until: float) -> None:
        _STATE.pack_into(self._memory, self._states + policy * _STATE.size, failures, until)


class Limits:
    """Limits the time and the memory of one call of a policy; create it in the main thread of a process.

    A timer ticks while policies are called, and reads the clocks. It and the limit of memory stay for a tick after the last
    call, so that the calls of one review set them once.

    Args:
        clock: seconds.
        starved: the seconds for which this thread was ready to run and got no processor.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, starved: Callable[[], float] | None = None) -> None:
        self._clock = clock
        self._starved = seconds_starved if starved is None else starved
        self._is_running = self._is_armed = False
        # As of the last tick, because reading it before each call costs more than most calls do.
        self._starved_before = 0.0
        # The time on the clock and the CPU time of this thread at the start of the call.
        self._started, self._cpu = 0.0, 0.0
        self._soft, self._hard = resource.getrlimit(resource.RLIMIT_AS)
        signal.signal(signal.SIGALRM, self._tick)

    def call(self, run: Callable[[Field, AnyContext], Iterator[Any]], subject: Field, ctx: AnyContext) -> list[Any]:
        """Call the function of a policy within the limits, and return what it yields.

        Raises:
            PolicyTimeoutError: the time is over.
            MemoryError: an allocation was refused.
        """
        try:
            try:
                self._start()
                return list(run(subject, ctx))
            finally:
                self._is_running = False
        except _TooLongError:
            # The timer may expire during the cleanup, and does not expire again that soon.
            self._is_running = False
            raise PolicyTimeoutError from None

    @contextmanager
    def paused(self, around: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
        """Exclude work from the limits, in addition to another context.

        Values derived from all watched objects are cached for later reviews. If their computation were stopped, no review
        would complete it.
        """
        self._is_running = False
        self.disarm()
        try:
            with around():
                yield
        finally:
            self._start()

    def _start(self) -> None:
        if not self._is_armed:
            size = address_space()
            if size:
                most = size + MOST_BYTES
                self._limit(most if self._soft == resource.RLIM_INFINITY else min(most, self._soft))
            self._is_armed = True
            self._starved_before = self._starved()
            signal.setitimer(signal.ITIMER_REAL, _TICK_SECONDS, _TICK_SECONDS)
        self._started, self._cpu = self._clock(), thread_time()
        self._is_running = True

    def disarm(self) -> None:
        """Stop the timer, and remove the limit of memory."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._limit(self._soft)
        self._is_armed = False

    def _limit(self, size: int) -> None:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (size, self._hard))

    def _tick(self, _number: int, _frame: FrameType | None) -> None:
        if not self._is_running:
            self.disarm()
            return
        starved = self._starved()
        self._started += starved - self._starved_before
        self._starved_before = starved
        if self._clock() - self._started >= MOST_SECONDS or thread_time() - self._cpu >= MOST_CPU_SECONDS:
            raise _TooLongError


def seconds_starved() -> float:
    """Return the seconds for which this thread was ready to run and got no processor; 0 where the kernel does not count it.

    The second figure of `schedstat`, in nanoseconds (Linux, Documentation/scheduler/sched-stats.rst).
    """
    try:
        with open("/proc/thread-self/schedstat", "rb") as opened:  # noqa: PTH123 -- called during reviews
            return int(opened.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def address_space() -> int:
    """Return the size of the address space of this process in bytes; 0 where the kernel does not tell it."""
    try:
        with open("/proc/self/statm", "rb") as opened:  # noqa: PTH123 -- called during reviews
            return int(opened.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 0


class Guarding:
    """Guards the calls of policies outside the library in each process of a server; created before the fork."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self._process = 0
        self._limits: Limits | None = None
        self._counts_cpu = False
        self._ids: tuple[str, ...] = ()
        self._off: frozenset[str] = frozenset()

    def enter(self, process: int, *, counts_cpu: bool) -> None:
        """Guard the calls of this process, in whose main thread policies are called.

        Args:
            process: the number of the process.
            counts_cpu: whether a call that spends the CPU budget of a review is a failure; not in a process that hands such
                reviews over.
        """
        self._process, self._counts_cpu = process, counts_cpu
        self._limits = Limits()
        self.guard.begin(process)

    def leave(self) -> None:
        """Stop to guard the calls of this process, which ends."""
        if self._limits is not None:
            self._limits.disarm()

    def guarded(self, policies: Sequence[Policy], name: bytes) -> tuple[Policy, ...]:
        """Return the policies of a set with every call guarded."""
        self._ids = tuple(policy.id for policy in policies)
        return tuple(
            replace(policy, handlers=tuple(self._handler(handler, index, name[:16]) for handler in policy.handlers))
            for index, policy in enumerate(policies)
        )

    def limited(self, policies: Sequence[Policy], _name: bytes) -> tuple[Policy, ...]:
        """Return the policies of a set with the time and memory of every call limited, and no failure counted."""
        return tuple(
            replace(policy, handlers=tuple(self._handler(handler, 0, _UNCOUNTED) for handler in policy.handlers))
            for policy in policies
        )

    def died(self, pid: int) -> str:
        """Charge the policy that a dead process was calling; return its id, empty if it was calling none."""
        policy = self.guard.died(pid)
        return self._ids[policy] if policy is not None and policy < len(self._ids) else ""

    def switched(self) -> Iterator[tuple[str, bool]]:
        """Yield the policies that were switched off or on since the last call, with whether they are off."""
        off = frozenset(policy_id for index, policy_id in enumerate(self._ids) if self.guard.is_off(index))
        changed = sorted(off ^ self._off)
        self._off = off
        yield from ((policy_id, policy_id in off) for policy_id in changed)

    def _handler(self, handler: Handler[Any], policy: int, name: bytes) -> Handler[Any]:
        guard, run = self.guard, handler.run

        def call(subject: Field, ctx: AnyContext) -> Iterator[Patch | Violation | Skip]:
            limits = self._limits
            if limits is None:
                yield from run(subject, ctx)
                return
            ctx.unhurried = partial(limits.paused, ctx.unhurried)
            # Otherwise another set is in force in the other processes, and soon in this one.
            is_current = guard.accepted == name
            if is_current and guard.is_off(policy):
                yield Skip(SWITCHED_OFF)
                return
            if is_current:
                guard.running(self._process, policy)
            try:
                results = limits.call(run, subject, ctx)
            except (Exception, SystemExit, OutOfTimeError) as error:
                if is_current and (self._counts_cpu or not isinstance(error, OutOfTimeError)):
                    guard.failed(policy)
                raise
            finally:
                if is_current:
                    guard.running(self._process, None)
            if is_current:
                guard.succeeded(policy)
            yield from results

        return replace(handler, run=call)


class Trial:
    """A load of policies in a process of its own, which is started in a process without threads.

    Args:
        load: loads the policies.
        seconds: the time limit.
    """

    def __init__(self, load: Callable[[], object], seconds: float = _TRIAL_SECONDS) -> None:
        self._seconds = seconds
        self._end = monotonic() + seconds
        context = multiprocessing.get_context("fork")
        self._answer, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=_try, args=(theirs, load, seconds), daemon=True)
        self._process.start()
        theirs.close()

    def is_passed(self, seconds: float) -> bool:
        """Tell whether the policies were loaded; wait for it some seconds at most. Not to be called after that.

        Raises:
            GpugateError: they cannot be loaded; the text of the error is that of `load`.
            OwnPolicyError: loading takes too long, ends the process or starts a thread.
        """
        if not self._answer.poll(max(0.0, min(seconds, self._end - monotonic()))):
            if monotonic() < self._end:
                return False
            self.stop()
            raise OwnPolicyError(
                f"the policies are not loaded within {self._seconds:g} s: remove slow code at the top level of the files"
            )
        try:
            answer = self._answer.recv()
        except EOFError:
            self._process.join()
            raise OwnPolicyError(
                f"a policy ends the process while it is loaded (exit code {self._process.exitcode}): remove this code"
            ) from None
        finally:
            self.stop()
        if isinstance(answer, GpugateError):
            raise answer
        return True

    def stop(self) -> None:
        """End the process. It may ignore every signal that it can."""
        self._answer.close()
        self._process.kill()
        self._process.join()


def trial(load: Callable[[], object], seconds: float = _TRIAL_SECONDS) -> None:
    """Load policies in a process of its own, in at most some seconds; a SIGTERM ends both processes.

    Raises:
        GpugateError: they cannot be loaded; the text of the error is that of `load`.
        OwnPolicyError: loading takes too long, ends the process or starts a thread.
    """
    # The first process of a container gets no signal that it does not handle.
    before = signal.signal(signal.SIGTERM, _leave)
    # During the fork, the exception of the handler would be lost, or leave the process behind.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    started = Trial(load, seconds)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        while not started.is_passed(seconds):
            pass
    except BaseException:
        started.stop()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, _frame: FrameType | None) -> None:
    # The exit code of a process that the signal ends, as shells report it.
    raise SystemExit(128 + number)


def _try(connection: Connection[Any, Any], load: Callable[[], object], seconds: float) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    signal.set_wakeup_fd(-1)
    # Ends this process if the parent was killed and cannot.
    signal.setitimer(signal.ITIMER_REAL, seconds + _ORPHAN_SECONDS)
    before = address_space()
    if before:
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (before + 2 * MOST_BYTES, hard))
    try:
        load()
        answer = None
        if threading.active_count() > 1:
            answer = OwnPolicyError("a policy starts a thread while it is loaded: remove this code")
    except GpugateError as error:
        answer = OwnPolicyError(str(error))
    except Exception as error:  # noqa: BLE001 -- the parent needs an answer
        answer = OwnPolicyError(f"the policies cannot be used ({type(error).__name__})")
    connection.send(answer)
