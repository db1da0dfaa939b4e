"""Messages and exceptions of libraries as lines of the log; `test_library_logs.py` shows whole processes."""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, cast

import pytest
from admission.logged import FakeLog

from gpugate.policies.sdk import quantity
from gpugate.webhook.admission.keeper import wait
from gpugate.webhook.admission.log import Log, capture_libraries, located

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLog]:
    """The log of this process, for the duration of a test."""
    captured, root = FakeLog(), logging.getLogger()
    before = list(root.handlers), root.level
    for owner, name in ((sys, "excepthook"), (threading, "excepthook"), (sys, "unraisablehook")):
        monkeypatch.setattr(owner, name, getattr(owner, name))
    capture_libraries(cast("Log", captured))
    yield captured
    logging.captureWarnings(capture=False)
    root.handlers[:], root.level = before


def raised(error: BaseException) -> BaseException:
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


@pytest.mark.parametrize(
    ("level", "message", "arguments", "expected"),
    [
        (logging.WARNING, "a %s of %d", ("b", 2), ("warning", "a b of 2")),
        (logging.ERROR, "a", (), ("error", "a")),
        (logging.CRITICAL, "a\nb", (), ("error", "a")),
        (logging.WARNING, "", (), ("warning", "")),
        (logging.WARNING, "a %s", (ValueError("canary"),), ("warning", "a ValueError")),
        (logging.WARNING, "a %d", ("b",), ("warning", "a %d")),
        (logging.WARNING, "a %s %s", ("b",), ("warning", "a %s %s")),
        (logging.WARNING, "a %(b)s", ({"b": 1},), ("warning", "a %(b)s")),
    ],
)
def test_the_first_line_of_a_message(
    log: FakeLog, level: int, message: str, arguments: tuple[Any, ...], expected: tuple[str, str]
) -> None:
    # pytest adds a handler of its own, which raises an error if arguments do not fit.
    root = logging.getLogger()
    root.handlers[:] = [handler for handler in root.handlers if type(handler).__module__.startswith("gpugate")]
    logging.getLogger("urllib3").log(level, message, *arguments)
    assert log.lines == [(*expected, {"logger": "urllib3"})]


def test_records_below_warnings_are_ignored(log: FakeLog) -> None:
    logging.getLogger("urllib3").info("a")
    assert log.lines == []


def test_an_exception_of_a_record_has_its_location_and_no_message(log: FakeLog) -> None:
    logging.getLogger("urllib3").error("a", exc_info=raised(KeyError("canary")))
    ((level, message, fields),) = log.lines
    assert (level, message, set(fields), "canary" in str(fields)) == ("error", "a", {"logger", "error"}, False)
    assert str(fields["error"]).startswith("KeyError at test_log_capture.py:")


def test_warnings_of_python_are_captured(log: FakeLog) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn("a", stacklevel=1)
    assert [(level, fields["logger"]) for level, _, fields in log.lines] == [("warning", "py.warnings")]


@pytest.mark.parametrize("where", ["the main thread", "a thread", "a finalizer"])
def test_uncaught_exceptions_are_logged(log: FakeLog, where: str) -> None:
    error = raised(KeyError("canary"))
    arguments: Any = type("Arguments", (), {"exc_value": error})
    if where == "the main thread":
        sys.excepthook(KeyError, error, None)
    elif where == "a thread":
        threading.excepthook(arguments)
    else:
        sys.unraisablehook(arguments)
    ((level, message, fields),) = log.lines
    assert (level, message) == ("error", f"uncaught exception in {where}")
    assert str(fields["error"]).startswith("KeyError at test_log_capture.py:")


def test_an_exception_without_a_value_is_logged(log: FakeLog) -> None:
    threading.excepthook(cast("Any", type("Arguments", (), {"exc_value": None})))
    assert log.lines == [("error", "uncaught exception in a thread", {"error": ""})]


def in_a_library() -> BaseException:
    """Return an error of a function that gpugate calls and that is none of its own."""

    def fails() -> bool:
        raise KeyError("canary")

    try:
        wait(1, threading.Event(), fails)
    except KeyError as error:
        return error
    raise AssertionError


def of_gpugate() -> BaseException:
    try:
        quantity.parse(cast("Any", []))
    except Exception as error:  # noqa: BLE001 -- of any type
        return error
    raise AssertionError


def test_an_exception_is_located_at_the_last_line_of_gpugate() -> None:
    assert located(KeyError("canary")) == "KeyError"
    assert located(in_a_library()).startswith("KeyError at keeper.py:")
    name, _, where = located(of_gpugate()).partition(" at ")
    assert (name, where.partition(":")[0]) == (type(of_gpugate()).__name__, "quantity.py")
