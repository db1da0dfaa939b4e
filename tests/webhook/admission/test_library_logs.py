from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import pytest

CAPTURE = """
import asyncio, logging, threading, warnings
import orjson
from gpugate.webhook.admission.review import attribute
from gpugate.webhook.admission.log import capture_libraries
from gpugate.webhook.admission.log import Log

capture_libraries(Log())
"""


def run(script: str) -> list[dict[str, str]]:
    done = subprocess.run(  # noqa: S603 -- ours
        [sys.executable, "-c", CAPTURE + textwrap.dedent(script)], capture_output=True, check=False, timeout=60
    )
    return [json.loads(line) for line in done.stderr.splitlines()]


@pytest.mark.parametrize(
    ("script", "level", "message", "error"),
    [
        pytest.param(
            "logging.getLogger('urllib3').warning('retry %d of %s', 2, 'https://x')",
            "warning",
            "retry 2 of https://x",
            None,
            id="arguments",
        ),
        pytest.param(
            "logging.getLogger('urllib3').warning('broken by %s', ValueError('canary'))",
            "warning",
            "broken by ValueError",
            None,
            id="exception-as-argument",
        ),
        pytest.param(
            """
            try:
                raise ValueError("canary")
            except ValueError:
                logging.getLogger("uvicorn.error").exception("Exception in ASGI application\\n")
            """,
            "error",
            "Exception in ASGI application",
            "ValueError at <string>:",
            id="traceback",
        ),
        pytest.param(
            """
            try:
                attribute(b"canary")
            except Exception:
                logging.getLogger("asyncio").exception("Exception in callback")
            """,
            "error",
            "Exception in callback",
            "UnattributableError at review.py",
            id="our-line",
        ),
        pytest.param(
            """
            async def main():
                async def fail():
                    raise ValueError("canary")
                task = asyncio.ensure_future(fail())
                await asyncio.wait([task])
            asyncio.run(main())
            """,
            "error",
            "Task exception was never retrieved",
            "ValueError at <string>",
            id="asyncio-task",
        ),
        pytest.param("warnings.warn('old')", "warning", "<string>:9: UserWarning: old", None, id="warning"),
        pytest.param("logging.warning('%d', 'canary')", "warning", "%d", None, id="arguments-that-do-not-fit"),
        pytest.param("logging.warning('a\\nb')", "warning", "a", None, id="several-lines"),
        pytest.param(
            "raise ValueError('canary')",
            "error",
            "uncaught exception in the main thread",
            "ValueError at <string>:",
            id="main",
        ),
        pytest.param(
            """
            def fail():
                raise ValueError("canary")
            threading.Thread(target=fail).start()
            """,
            "error",
            "uncaught exception in a thread",
            "ValueError at <string>",
            id="thread",
        ),
        pytest.param(
            """
            class Broken:
                def __del__(self):
                    raise ValueError("canary")
            Broken()
            """,
            "error",
            "uncaught exception in a finalizer",
            "ValueError at <string>",
            id="finalizer",
        ),
    ],
)
def test_one_line_without_the_messages_of_exceptions(script: str, level: str, message: str, error: str | None) -> None:
    (line,) = run(script)
    assert (line["level"], line["message"]) == (level, message)
    assert line.get("error", "").startswith(error or "")
    assert "canary" not in json.dumps(line)


def test_records_below_warning_are_ignored() -> None:
    assert run("logging.getLogger('uvicorn.error').info('Started')") == []
