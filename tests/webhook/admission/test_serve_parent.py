"""What the supervisor prints, logs and measures; its processes are in tests of their own."""

from __future__ import annotations

import ctypes
import datetime as dt
import gc
import resource
import shlex
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from admission.logged import FakeLog
from own_policies.written import SMALL, write

from gpugate import __version__
from gpugate.policies.sdk.platform import ClusterIdentity
from gpugate.webhook.admission import serve
from gpugate.webhook.admission.options import Keeping, Recording, ServeError, ServeOptions
from gpugate.webhook.admission.policy_guard import Guard, Guarding
from gpugate.webhook.admission.policy_reload import Reload, RulesContent, RulesFiles, load_rules
from gpugate.webhook.admission.shared import SharedShadow
from gpugate.webhook.admission.workers import WorkerExit
from gpugate.webhook.cli.identity import cluster_of
from gpugate.webhook.own_policies.sources import OwnPolicyError, PolicySource
from gpugate.webhook.registration import command as registration

if TYPE_CHECKING:
    from collections.abc import Iterator

URL = "https://localhost:8443"
CURL = "curl --cacert {file} -H 'Content-Type: application/json' --data-binary @review.json https://localhost:8443/validate"


@pytest.mark.parametrize(
    ("created", "ca_file", "policy_file", "file", "note"),
    [
        (True, "ca.crt", None, "ca.crt", ""),
        (True, "a b", "c d", "'a b'", ""),
        (True, None, None, "CA_FILE", "where this command writes CA_FILE: gpugate serve --ca-file CA_FILE"),
        (False, "ca.crt", None, "CA_FILE", "where CA_FILE contains the CA (PEM) of the certificate in --tls-cert"),
    ],
    ids=["created", "names with spaces", "created and not written", "given"],
)
def test_the_commands_that_register_a_server(
    created: bool,  # noqa: FBT001 -- a table's column
    ca_file: str | None,
    policy_file: str | None,
    file: str,
    note: str,
) -> None:
    shown = serve.registration_help(
        URL,
        created=created,
        ca_file=Path(ca_file) if ca_file else None,
        policy_file=Path(policy_file) if policy_file else None,
    )
    policy = " --policy-file 'c d'" if policy_file else ""
    assert shown.split("\n") == [
        "To register it in a cluster that can reach this address:",
        f"  gpugate registration --url {URL} --ca-file {file}{policy} | kubectl apply -f -",
        *([f"  {note}"] if note else []),
        "To test it:",
        f"  {CURL.format(file=file)}",
    ]


def test_the_command_that_registers_a_server_names_its_cluster() -> None:
    cluster = ClusterIdentity(name="gpu-1", region="eu-west-1", labels={"env": "prod"})
    shown = serve.registration_help(
        URL, created=True, ca_file=Path("ca.crt"), policy_file=Path("all.yaml"), cluster=cluster
    )
    (command,) = [line for line in shown.split("\n") if "gpugate registration" in line]
    arguments = shlex.split(command.partition("|")[0])[2:]
    assert cluster_of(registration.parser().parse_args(arguments)) == cluster


class Recorded:
    """Calls of any method of metrics."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *values, **named: self.calls.append((name, *values, *named.values()))


class Parent(serve._Parent):
    def __init__(
        self,
        options: ServeOptions,
        *,
        authority: bytes | None = b"ca",
        error: str | None = None,
        shadow: SharedShadow | None = None,
    ) -> None:
        self.log, self.metrics, self.polls = FakeLog(), Recorded(), list[bool]()
        identity = SimpleNamespace(authority=authority, not_after=dt.datetime(2026, 11, 22, tzinfo=dt.UTC))
        admission, health = (SimpleNamespace(getsockname=lambda port=port: ("", port)) for port in (8443, 8081))

        def poll(*, force: bool = False) -> str | None:
            self.polls.append(force)
            return error

        parts: Any = SimpleNamespace(
            options=options,
            rules=load_rules(options.policy_file),
            log=self.log,
            metrics=self.metrics,
            certificate=SimpleNamespace(identity=identity),
            files=RulesFiles(options.policy_file),
            guarding=Guarding(Guard(1)),
            poll_certificate=poll,
            admission=admission,
            health=health,
            shadow=shadow,
        )
        parts.may_load = lambda content: content.own[:16] == self.accepted
        super().__init__(parts)

    @property
    def accepted(self) -> bytes:
        """The name of the set of policies that all processes may use."""
        return self._shared.guarding.guard.accepted


OPTIONS = ServeOptions("0.0.0.0", 8443)  # noqa: S104 -- not bound here


def announced(capsys: pytest.CaptureFixture[str], options: ServeOptions, **parts: Any) -> list[str]:
    Parent(options, **parts)._announce()
    return capsys.readouterr().out.splitlines()


def test_the_announcement_of_a_server_without_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    first, second, *_, health, ready = announced(capsys, OPTIONS)
    assert first == f"gpugate {__version__} with {serve._summary(load_rules(None).ruleset)}"
    assert second == "No cluster to watch: policies that need other objects are not evaluated."
    assert (health, ready) == ("health: http://localhost:8081", f"ready: {URL}")


def test_the_announcement_of_a_server_with_managed_certificates(capsys: pytest.CaptureFixture[str]) -> None:
    keeping = Keeping("certificates", "platform", configuration="gates")
    options = ServeOptions("::1", 8443, keeping=keeping, cluster=SimpleNamespace())  # type: ignore[arg-type] # only its presence counts
    assert announced(capsys, options)[1:] == [
        serve.certificates_help(keeping),
        "health: http://[::1]:8081",
        "ready: https://[::1]:8443",
    ]


def test_the_objects_of_managed_certificates_are_named() -> None:
    assert serve.certificates_help(Keeping("certificates", "platform", configuration="gates")) == (
        "The authorities in the Secret platform/certificates sign the serving certificate; "
        "gpugate writes them into the webhook configurations gates."
    )


@pytest.mark.parametrize(("authority", "created"), [(b"ca", True), (None, False)], ids=["created", "given"])
def test_the_announcement_depends_on_the_certificate(
    capsys: pytest.CaptureFixture[str],
    authority: bytes | None,
    created: bool,  # noqa: FBT001 -- a table's column
) -> None:
    lines = announced(capsys, ServeOptions("10.0.0.1", 8443, ca_file=Path("ca.crt")), authority=authority)
    url = "https://10.0.0.1:8443"
    shown = serve.registration_help(url, created=created, ca_file=Path("ca.crt"), policy_file=None)
    assert lines[2:-2] == shown.split("\n")


def test_the_summary_counts_policies_by_mode_the_strictest_first(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    modes = "policies: {'*/*': {mode: audit}, nodepools/missing-gpu-limit: {mode: enforce}}"
    file.write_text(f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n{modes}\n")
    ruleset = load_rules(file).ruleset
    count = len(ruleset.rules)
    assert serve._summary(ruleset) == f"{count} policies (1 enforce, {count - 1} audit)"


EXPIRES = "2026-11-22T00:00:00+00:00"


@pytest.mark.parametrize(
    ("error", "lines"),
    [
        (None, []),
        ("", [("info", "certificate in use", {"expires": EXPIRES})]),
        ("m", [("error", "certificate invalid, the last valid one stays in use", {"error": "m"})]),
    ],
    ids=["unchanged", "loaded", "invalid"],
)
def test_a_new_certificate_is_logged(error: str | None, lines: list[Any]) -> None:
    parent = Parent(OPTIONS, error=error)
    parent._tick()
    assert (parent.log.lines, parent.polls) == (lines, [False])


def test_a_sighup_reads_both_files_again() -> None:
    parent = Parent(OPTIONS)
    parent._reload()
    assert parent.polls == [True]
    assert parent.log.lines == [("info", "policy file in force", {"generation": "shipped"})]
    assert parent.metrics.calls == [("reloaded", "shipped", True)]


def test_an_invalid_policy_file_is_logged() -> None:
    parent = Parent(OPTIONS)
    parent._reloaded(Reload("3f2a", "m"))
    text = "policy file invalid, the last valid one stays in force"
    assert parent.log.lines == [("error", text, {"generation": "3f2a", "error": "m"})]
    assert parent.metrics.calls == [("reloaded", "3f2a", False)]


def test_a_new_ruleset_is_for_workers_that_start_later() -> None:
    parent = Parent(OPTIONS)
    rules = load_rules(None)
    parent._use(rules)
    assert parent._shared.rules is rules


def test_a_worker_that_ended_is_logged_and_counted() -> None:
    parent = Parent(OPTIONS)
    parent._ended(WorkerExit(7, -9))
    assert parent.log.lines == [("error", "worker ended, another is started", {"pid": 7, "exit_code": -9})]
    assert parent.metrics.calls == [("forget", 7), ("worker_restarted",)]


@pytest.mark.parametrize(
    ("hard", "limit"), [(resource.RLIM_INFINITY, 1), (4096, 1), (1, 1), (0, 0)], ids=["none", "a limit", "1", "0"]
)
def test_core_dumps_are_limited_to_a_byte(monkeypatch: pytest.MonkeyPatch, hard: int, limit: int) -> None:
    limits: list[tuple[int, tuple[int, int]]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (hard, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda *given: limits.append(given))
    serve.forbid_core_dumps()
    assert limits == [(resource.RLIMIT_CORE, (limit, limit))]


def test_large_blocks_are_mapped_and_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, int]] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=lambda *pair: given.append(pair)))
    serve.return_large_blocks()
    # M_MMAP_THRESHOLD and M_TRIM_THRESHOLD of glibc's malloc.h.
    assert sorted(given) == [(-3, 1024 * 1024), (-1, 1024 * 1024)]
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    serve.return_large_blocks()


def test_an_address_in_use_is_an_error_of_the_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ServeError, match=rf"^cannot listen on 127\.0\.0\.1 port {port}: address already in use"):
            serve._listen("127.0.0.1", port)


def test_a_folder_for_sockets_that_is_too_long_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    with pytest.raises(ServeError, match=r"^cannot open a socket in .*: AF_UNIX path too long: set TMPDIR$"):
        serve._hand_over(folder)


def test_a_missing_extra_is_reported_before_a_process_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def missing(name: str) -> None:
        called.append(name)
        raise ServeError("not installed")

    # These change this process.
    changes = ["forbid_core_dumps", "return_large_blocks"]
    for name in changes:
        monkeypatch.setattr(serve, name, lambda name=name: called.append(name))
    monkeypatch.setattr(serve.importlib, "import_module", missing)
    with pytest.raises(ServeError, match="not installed"):
        serve.serve(ServeOptions("127.0.0.1", 0, trace=True))
    assert called == [*changes, "gpugate.webhook.admission.tracing"]


APPLIED = {
    "one": ({"env": "dev"}, "; cluster env=dev, name=gpu-1: clusters[0] applies"),
    "several": (
        {"env": "dev", "tier": "gold"},
        "; cluster env=dev, tier=gold, name=gpu-1: clusters[0], clusters[1] apply",
    ),
    "none": ({}, "; cluster name=gpu-1: no entry of clusters applies"),
}


@pytest.mark.parametrize(("labels", "end"), APPLIED.values(), ids=APPLIED)
def test_the_summary_says_which_entries_apply_in_the_cluster(tmp_path: Path, labels: dict[str, str], end: str) -> None:
    file = tmp_path / "policy.yaml"
    entries = "clusters: [{match: {env: dev}, mode: audit}, {match: {tier: gold}, mode: warn}]"
    file.write_text(f"apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n{entries}\n")
    files = RulesFiles(file, cluster=ClusterIdentity(name="gpu-1", labels=labels))

    assert serve._summary(files.load(files.read()).ruleset).endswith(end)


class FakeTrial:
    """A trial whose result is given; `started` are all of them."""

    started: ClassVar[list[FakeTrial]] = []

    def __init__(self, _load: Any) -> None:
        self.result: bool | Exception = False
        self.is_stopped = False
        self.started.append(self)

    def is_passed(self, seconds: float) -> bool:
        # The supervisor handles no signal meanwhile.
        assert seconds < 1
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def stop(self) -> None:
        self.is_stopped = True


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[FakeTrial]:
    monkeypatch.setattr(serve, "Trial", FakeTrial)
    FakeTrial.started = []
    return FakeTrial.started


def content(text: bytes = b"") -> RulesContent:
    """Return what was read of a policy file, with a policy outside the library if there is a text."""
    sources = (PolicySource("acme", "rules", "rules.yaml", text, "examples"),) if text else ()
    return RulesContent(None, sources, ())


def test_files_without_policies_outside_the_library_need_no_trial(trials: list[FakeTrial]) -> None:
    parent, plain = Parent(OPTIONS), content()
    assert parent._admits(plain)
    assert (parent.accepted, trials) == (plain.own[:16], [])


def test_policies_outside_the_library_may_be_loaded_after_a_trial(trials: list[FakeTrial]) -> None:
    parent, first = Parent(OPTIONS), content(b"first")
    before = parent.accepted
    assert [parent._admits(first), parent._admits(first)] == [False, False]
    (trial,) = trials
    assert parent.accepted == before

    trial.result = True
    assert parent._admits(first)
    assert parent.accepted == first.own[:16]
    # It was loaded, for example when only the policy file changes.
    assert parent._admits(first)
    assert len(trials) == 1


def test_the_trial_of_a_set_that_changed_is_stopped(trials: list[FakeTrial]) -> None:
    parent = Parent(OPTIONS)
    parent._admits(content(b"first"))
    parent._admits(content(b"second"))
    assert [trial.is_stopped for trial in trials] == [True, False]
    parent._stop_trial()
    assert [trial.is_stopped for trial in trials] == [True, True]


def test_a_set_that_fails_its_trial_may_not_be_loaded_and_has_another_trial_later(trials: list[FakeTrial]) -> None:
    parent, first = Parent(OPTIONS), content(b"first")
    before = parent.accepted
    parent._admits(first)
    trials[0].result = OwnPolicyError("ends")
    with pytest.raises(OwnPolicyError, match="ends"):
        parent._admits(first)
    assert parent.accepted == before
    assert not parent._admits(first)
    assert len(trials) == 2


class Switching:
    """A guard that says which policies were switched, and which one a dead process was calling."""

    def __init__(self, *switched: tuple[str, bool], died: str = "") -> None:
        self._switched, self._died = switched, died

    def switched(self) -> Any:
        return iter(self._switched)

    def died(self, _pid: int) -> str:
        return self._died


@pytest.mark.parametrize(
    ("is_off", "line"),
    [
        (True, ("error", "policy switched off after repeated failures")),
        (False, ("info", "policy switched on again")),
    ],
)
@pytest.mark.parametrize("has_events", [True, False])
def test_a_switched_policy_is_measured_logged_and_has_an_event(
    is_off: bool,  # noqa: FBT001 -- a table's column
    line: tuple[str, str],
    has_events: bool,  # noqa: FBT001 -- as above
) -> None:
    parent, events = Parent(OPTIONS), Recorded()
    parent._shared.guarding = Switching(("acme/slow", is_off))  # type: ignore[assignment] # in its place
    parent._events = events if has_events else None  # type: ignore[assignment] # as above
    parent._tick()
    assert parent.metrics.calls == [("switched", "acme/slow", is_off)]
    assert parent.log.lines == [(*line, {"policy": "acme/slow"})]
    assert events.calls == ([("create", "acme/slow", is_off)] if has_events else [])


def test_the_policy_that_ended_a_worker_is_logged() -> None:
    parent = Parent(OPTIONS)
    parent._shared.guarding = Switching(died="acme/ends")  # type: ignore[assignment] # in its place
    parent._ended(WorkerExit(7, 3))
    fields = {"pid": 7, "exit_code": 3, "policy": "acme/ends"}
    assert parent.log.lines == [("error", "worker ended, another is started", fields)]


@pytest.mark.parametrize(
    ("options", "is_created"),
    [
        (ServeOptions("::1", 8443, cluster=SimpleNamespace(), namespace="guard"), True),  # type: ignore[arg-type] # only its presence counts
        (ServeOptions("::1", 8443, cluster=SimpleNamespace()), False),  # type: ignore[arg-type] # as above
        (ServeOptions("::1", 8443, namespace="guard"), False),
    ],
    ids=["in a cluster", "outside, with one", "without one"],
)
def test_events_are_created_in_a_cluster_only(options: ServeOptions, *, is_created: bool) -> None:
    assert (Parent(options)._events is not None) is is_created


def test_an_event_that_is_not_created_is_logged() -> None:
    parent = Parent(OPTIONS)
    parent._failed_event("forbidden")
    assert parent.log.lines == [("warning", "no Kubernetes Event was created", {"reason": "forbidden"})]


@pytest.fixture
def collector() -> Iterator[None]:
    """Undo what the server sets of the garbage collector."""
    before = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*before)


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("hand_over", [None, SimpleNamespace(listener="expensive")], ids=["one worker", "several"])
def test_the_supervisor_runs_all_processes_and_ends_what_it_started(
    monkeypatch: pytest.MonkeyPatch, hand_over: Any, trials: list[FakeTrial]
) -> None:
    given: list[Any] = []

    def supervisor(_work: Any, *arguments: Any) -> Any:
        return SimpleNamespace(run=lambda *calls: given.extend((arguments, calls)) or 1)

    monkeypatch.setattr(serve, "Supervisor", supervisor)
    parent, events = Parent(ServeOptions("127.0.0.1", 0, drain_seconds=3)), Recorded()
    shared: Any = parent._shared
    shared.hand_over, shared.board = hand_over, SimpleNamespace(rows=4)
    shared.certificate.warnings = ("every user can replace the files",)
    shared.report_start = lambda: parent.log.lines.append("started")  # type: ignore[arg-type] # a mark
    parent._events = events  # type: ignore[assignment] # in its place
    parent._admits(content(b"first"))

    assert parent.run() == 1
    arguments, calls = given
    listeners = [shared.admission, shared.health, *(["expensive"] if hand_over else [])]
    assert arguments == (shared.board, listeners, 3, parent._ended)
    assert calls == (4, parent._announce, parent._tick, parent._reload)
    assert parent.log.lines == ["started", ("warning", "every user can replace the files", {})]
    assert (trials[0].is_stopped, events.calls) == (True, [("close",)])
    # Objects of the start are not looked at again in each worker, whose pages would be copied.
    assert gc.get_freeze_count() > 10_000
    assert gc.get_threshold() == (50_000, 20, 100)


SHADOW = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\nmode: audit\n"


@pytest.fixture
def shadowed(tmp_path: Path) -> Parent:
    return Parent(OPTIONS, shadow=SharedShadow(RulesFiles(tmp_path / "shadow.yaml"), tmp_path))


@pytest.mark.parametrize("change", ["_tick", "_reload"])
def test_a_shadow_policy_file_is_for_workers_that_start_later(shadowed: Parent, tmp_path: Path, change: str) -> None:
    file, shadow = tmp_path / "shadow.yaml", shadowed._shared.shadow
    assert shadow is not None
    file.write_text(SHADOW)
    getattr(shadowed, change)()
    valid = load_rules(file).generation
    assert shadow.rules is not None
    assert (shadow.rules.generation, shadow.error) == (valid, "")

    file.write_text("mode: [")
    getattr(shadowed, change)()
    assert (shadow.rules.generation, "not YAML" in shadow.error) == (valid, True)
    texts = ["shadow policy file in use", "shadow policy file invalid, the last valid one stays in use, if any"]
    lines = [line for line in shadowed.log.lines if line[1] in texts]
    assert [(level, text, fields["generation"]) for level, text, fields in lines] == [
        ("info", texts[0], valid),
        ("error", texts[1], valid),
    ]
    assert lines[1][2]["error"] == shadow.error
    assert [call for call in shadowed.metrics.calls if call[0] == "shadow_reloaded"] == [
        ("shadow_reloaded", True),
        ("shadow_reloaded", False),
    ]


def shadow_of(policy_file: Path | None, guarding: Guarding | None = None) -> SharedShadow | None:
    options = ServeOptions("::1", 8443, shadow_policy_file=policy_file)
    return serve._shadow(options, guarding or Guarding(Guard(1)), Path("tables"))


def test_a_shadow_policy_file_is_loaded_at_the_start(tmp_path: Path) -> None:
    assert shadow_of(None) is None
    file = tmp_path / "shadow.yaml"
    file.write_text(SHADOW)
    shadow = shadow_of(file)
    assert shadow is not None
    assert shadow.rules is not None
    assert (shadow.rules.generation, shadow.error, shadow.folder) == (load_rules(file).generation, "", Path("tables"))


@pytest.mark.parametrize(
    ("text", "error"),
    [("mode: [", "not YAML"), (SHADOW + "policy_paths: [p]\n", "uses other policies outside the library")],
    ids=["invalid", "other policies"],
)
def test_a_shadow_policy_file_that_cannot_be_used_is_reported_and_the_server_starts(
    tmp_path: Path, text: str, error: str
) -> None:
    write(tmp_path, {"shadow.yaml": text, "p/acme/rules.yaml": SMALL})
    shadow = shadow_of(tmp_path / "shadow.yaml")
    assert shadow is not None
    assert (shadow.rules, error in shadow.error) == (None, True)


def test_a_shadow_policy_file_may_use_the_policies_that_were_loaded(tmp_path: Path) -> None:
    write(tmp_path, {"shadow.yaml": SHADOW + "policy_paths: [p]\n", "p/acme/rules.yaml": SMALL})
    guarding = Guarding(Guard(1))
    guarding.guard.accept(RulesFiles(tmp_path / "shadow.yaml").read().own)
    shadow = shadow_of(tmp_path / "shadow.yaml", guarding)
    assert shadow is not None
    assert (shadow.rules is not None, shadow.error) == (True, "")


def test_another_error_of_a_shadow_policy_file_is_no_error_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shadow.yaml").write_text(SHADOW)
    monkeypatch.setattr(serve, "_check_own", None)
    shadow = shadow_of(tmp_path / "shadow.yaml")
    assert shadow is not None
    assert shadow.error.startswith("cannot be used (TypeError")


@pytest.mark.parametrize("is_tried", [True, False], ids=["own policies", "the library"])
def test_policies_outside_the_library_are_loaded_in_a_trial_first(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    is_tried: bool,  # noqa: FBT001 -- a table's column
) -> None:
    write(tmp_path, {"policy.yaml": SHADOW + "policy_paths: [p]\n" * is_tried, "p/acme/rules.yaml": SMALL})
    guarding, order = Guarding(Guard(1)), list[str]()
    files = RulesFiles(tmp_path / "policy.yaml", None, lambda policies, _: order.append("load") or tuple(policies))
    monkeypatch.setattr(serve, "trial", lambda load: (order.append("trial"), load()))
    rules = serve._loaded(files, guarding)
    assert order == (["trial", "load", "load"] if is_tried else ["load"])
    assert (rules.generation, guarding.guard.accepted) == (files.read().generation, files.read().own[:16])


@pytest.mark.parametrize("is_usable", [True, False])
def test_a_directory_that_cannot_be_recorded_to_is_reported(
    tmp_path: Path,
    is_usable: bool,  # noqa: FBT001 -- a table's column
) -> None:
    folder = tmp_path / "a" / "b"
    if not is_usable:
        (tmp_path / "a").write_text("")
    shared: Any = SimpleNamespace(policy_texts=lambda: ("inference",), log=FakeLog(), vocabulary=None)
    serve._prepare_recording(shared, Recording(folder))
    assert shared.vocabulary.knows("inference")
    if is_usable:
        assert (list(folder.iterdir()), folder.stat().st_mode & 0o777) == ([], 0o700)
    reason = {"folder": str(folder), "reason": "Not a directory"}
    assert shared.log.lines == ([] if is_usable else [("warning", "reviews cannot be recorded", reason)])
