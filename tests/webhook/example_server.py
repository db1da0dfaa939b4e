"""The admission front with a gate for every example of the library, told apart by the uid of the review.

`python example_server.py CA_FILE` prints `ready: URL`. Everything but the choice of the gate and the wait for cluster data
is what `gpugate serve` runs.
"""

from __future__ import annotations

import datetime as dt
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from library_examples import library_example, ruleset_of

import gpugate.policies
from gpugate.policies.engine.config import PolicyConfig
from gpugate.webhook.admission.app import create_app
from gpugate.webhook.admission.asgi import AdmissionAsgi
from gpugate.webhook.admission.certificate import Certificate
from gpugate.webhook.admission.front.limits import Limits
from gpugate.webhook.admission.front.server import Front, listen
from gpugate.webhook.admission.gate import Answer, Gate, Later, Rules
from gpugate.webhook.admission.options import ServeOptions
from gpugate.webhook.admission.workers import Board, Duties, Worker
from gpugate.webhook.manifests.load import RunFacts

if TYPE_CHECKING:
    from gpugate.policies.engine.evaluate import Phase

ROOT = Path(gpugate.policies.__file__).parent
# The path of the example below the policies, and a number for each call.
UID = re.compile(rb'"uid":"([^"#]+)#')


def now() -> dt.datetime:
    return dt.datetime(2026, 11, 21, tzinfo=dt.UTC)


class ExampleGate(Gate):
    def __init__(self) -> None:
        super().__init__(
            Rules(ruleset_of(PolicyConfig()), "g"),
            RunFacts(()),
            now,
        )
        self._gates: dict[str, Gate] = {}

    def try_answer(
        self, phase: Phase, body: bytes, seconds_left: float | None, *, may_wait: bool, only_quick: bool
    ) -> Answer | Later:
        found = UID.search(body)
        assert found is not None
        name = found[1].decode()
        if name not in self._gates:
            example = library_example(ROOT / name)
            facts = RunFacts(example.context, complete=example.complete)
            self._gates[name] = Gate(Rules(ruleset_of(example.config), "g"), facts, now)
        return self._gates[name].try_answer(phase, body, seconds_left, may_wait=may_wait, only_quick=only_quick)


class NothingToSay:
    def missing(self) -> tuple[str, ...]:
        return ()

    def exposition(self, accept: str) -> tuple[str, bytes]:
        return accept, b""

    def shadowed(self) -> None:
        """Say that there is no shadow policy file."""


def serve(gate: Gate, options: ServeOptions) -> None:
    """Run the front with a gate in this process, and say where it is."""
    certificate = Certificate(options, lambda: dt.datetime.now(tz=dt.UTC))
    listener, health = listen(options.host, options.port), listen(options.host, options.health_port)

    def front() -> Front:
        app = create_app(gate, NothingToSay())
        sys.stdout.write(f"ready: https://127.0.0.1:{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        return Front(
            lambda load, turns: AdmissionAsgi(gate, app, load, turns, lambda _: None), options.limits, lambda _: None
        )

    duties = Duties(missing=lambda: (), tick=lambda _: None, reload=lambda: None, stop=lambda: None)
    Worker(0, Board(1), drain_seconds=0).run(front, (listener, lambda: certificate.identity.context), health, duties)


def main() -> None:
    # The cluster data of an example never changes, so that a review has the same answer after a short wait for more.
    limits = Limits(late_facts=0.001)
    options = ServeOptions(host="127.0.0.1", port=0, health_port=0, ca_file=Path(sys.argv[1]), limits=limits)
    serve(ExampleGate(), options)


if __name__ == "__main__":
    main()
