from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from own_policies.written import SMALL, write

from gpugate.policies.catalog import CATALOG
from gpugate.policies.sdk.facts import NoFacts
from gpugate.policies.sdk.findings import Stance
from gpugate.policies.sdk.platform import ClusterIdentity
from gpugate.webhook.admission.gate import Gate, Rules
from gpugate.webhook.admission.policy_reload import SHIPPED, PolicyFileWatch, Reload, RulesFiles, load_rules
from gpugate.webhook.manifests.policy_file import PolicyFileError
from gpugate.webhook.own_policies.catalog import OwnPaths

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpugate.policies.sdk.policy import Policy
    from gpugate.webhook.admission.policy_reload import RulesContent

HEAD = "apiVersion: gpugate.dev/v1\nkind: PolicyConfig\n"
AUDIT, WARN = HEAD + "mode: audit\n", HEAD + "mode: warn\n"
REVIEWS = Path(__file__).parents[2] / "fixtures" / "reviews"


def generation(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class Watched:
    """A policy file, its watch, and the arguments of its callbacks."""

    def __init__(self, path: Path, text: str = AUDIT) -> None:
        self.path = path
        path.write_text(text)
        self.used: list[Rules] = []
        self.reloads: list[Reload] = []
        self.watch = PolicyFileWatch(path, load_rules(path), self.used.append, self.reloads.append)

    @property
    def generations(self) -> list[str]:
        return [rules.generation for rules in self.used]

    def replace(self, text: str | bytes) -> None:
        new = self.path.with_name("new")
        new.write_bytes(text if isinstance(text, bytes) else text.encode())
        new.replace(self.path)


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    found = Watched(tmp_path / "policy.yaml")
    found.watch.poll()
    return found


def test_without_a_file_every_policy_is_as_shipped() -> None:
    rules = load_rules(None)
    assert (rules.generation, len(rules.ruleset.order) > 0) == (SHIPPED, True)


def test_without_a_file_nothing_changes() -> None:
    reloads: list[Reload] = []
    watch = PolicyFileWatch(None, load_rules(None), lambda _: None, reloads.append)
    watch.poll()
    watch.reload()
    assert reloads == [Reload(SHIPPED)]


def test_the_generation_is_of_the_bytes_that_were_parsed(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(AUDIT)
    assert load_rules(file).generation == generation(AUDIT)


def test_an_unchanged_file_is_not_reported(watched: Watched) -> None:
    watched.watch.poll()
    assert (watched.used, watched.reloads) == ([], [])


def test_a_file_that_did_not_change_is_not_read(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Path, "open", None)
    watched.watch.poll()
    assert watched.reloads == []


def test_a_change_between_loading_and_watching_is_seen(tmp_path: Path) -> None:
    watched = Watched(tmp_path / "policy.yaml")
    watched.replace(WARN)
    watched.watch.poll()
    assert (watched.generations, watched.reloads) == ([generation(WARN)], [Reload(generation(WARN))])


def in_place(watched: Watched) -> None:
    watched.path.write_text(WARN)


def renamed(watched: Watched) -> None:
    watched.replace(WARN)


@pytest.mark.parametrize("change", [in_place, renamed])
def test_a_change_is_applied(watched: Watched, change: Callable[[Watched], None]) -> None:
    change(watched)
    watched.watch.poll()
    assert (watched.generations, watched.reloads) == ([generation(WARN)], [Reload(generation(WARN))])


def test_a_config_map_is_swapped_as_the_kubelet_does(tmp_path: Path) -> None:
    def project(name: str, text: str) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        (folder / "policy.yaml").write_text(text)
        link = tmp_path / "..data_tmp"
        link.symlink_to(name)
        link.replace(tmp_path / "..data")
        return folder

    first = project("..2026_01_01", AUDIT)
    path = tmp_path / "policy.yaml"
    path.symlink_to("..data/policy.yaml")
    used: list[Rules] = []
    reloads: list[Reload] = []
    watch = PolicyFileWatch(path, load_rules(path), used.append, reloads.append)
    watch.poll()

    project("..2026_01_02", WARN)
    shutil.rmtree(first)
    watch.poll()

    assert ([rules.generation for rules in used], reloads) == ([generation(WARN)], [Reload(generation(WARN))])


def removed(watched: Watched) -> None:
    watched.path.unlink()


def directory(watched: Watched) -> None:
    watched.path.unlink()
    watched.path.mkdir()


def pipe(watched: Watched) -> None:
    watched.path.unlink()
    os.mkfifo(watched.path)


def dangling(watched: Watched) -> None:
    watched.path.unlink()
    watched.path.symlink_to("..data/policy.yaml")


def loop(watched: Watched) -> None:
    watched.path.unlink()
    watched.path.symlink_to(watched.path.name)


def holding(text: str | bytes) -> Callable[[Watched], None]:
    return lambda watched: watched.replace(text)


FAILURES = [
    pytest.param(removed, "no such file or directory", id="deleted"),
    pytest.param(directory, "is not a regular file", id="a-directory"),
    pytest.param(pipe, "is a pipe", id="a-pipe"),
    pytest.param(dangling, "no such file or directory", id="a-link-to-nothing"),
    pytest.param(loop, "too many levels of symbolic links", id="a-link-to-itself"),
    pytest.param(holding(b""), "holds 0 documents", id="empty"),
    pytest.param(holding(HEAD + "policies:\n  pods/mig-with"), "policies", id="half-written"),
    pytest.param(holding("a: [b"), "not YAML", id="invalid-yaml"),
    pytest.param(holding(HEAD + "modee: audit\n"), "did you mean `mode`?", id="unknown-key"),
    pytest.param(holding(HEAD + "mode: true\n"), "not a boolean", id="wrong-type"),
    pytest.param(holding(HEAD.replace("v1", "v2")), "must be gpugate.dev/v1", id="newer-version"),
    pytest.param(holding(AUDIT + "#" * 5 * 2**20), "larger than 1 MiB", id="MiB"),
    pytest.param(holding(AUDIT.encode() + b"# \xff\n"), "not UTF-8", id="not-UTF-8"),
    pytest.param(holding(AUDIT.encode() + b"# \xe2\x82"), "not UTF-8", id="cut-in-a-character"),
]


@pytest.mark.parametrize(("failure", "message"), FAILURES)
class TestLastGood:
    def test_stays(self, watched: Watched, failure: Callable[[Watched], None], message: str) -> None:
        failure(watched)
        watched.watch.poll()
        (reloads,) = watched.reloads
        assert (watched.used, reloads.generation, message in reloads.error) == ([], generation(AUDIT), True)

    def test_is_reported_once(self, watched: Watched, failure: Callable[[Watched], None], message: str) -> None:  # noqa: ARG002 -- the table's
        failure(watched)
        watched.watch.poll()
        watched.watch.poll()
        assert len(watched.reloads) == 1

    def test_is_reported_again_on_reload(
        self, watched: Watched, failure: Callable[[Watched], None], message: str
    ) -> None:
        failure(watched)
        watched.watch.poll()
        watched.watch.reload()
        assert message in watched.reloads[1].error

    def test_a_valid_file_replaces_it(self, watched: Watched, failure: Callable[[Watched], None], message: str) -> None:  # noqa: ARG002 -- the table's
        failure(watched)
        watched.watch.poll()
        if watched.path.is_dir():
            watched.path.rmdir()
        watched.replace(WARN)
        watched.watch.poll()
        assert (watched.generations, watched.reloads[-1]) == ([generation(WARN)], Reload(generation(WARN)))


def test_a_restored_file_is_reported_but_not_bound_again(watched: Watched) -> None:
    watched.replace("")
    watched.watch.poll()
    watched.replace(AUDIT)
    watched.watch.poll()
    assert (watched.used, watched.reloads[1:]) == ([], [Reload(generation(AUDIT))])


@pytest.mark.parametrize("before", [(), (WARN,), ("", AUDIT)], ids=["loaded", "changed", "restored"])
def test_a_file_that_was_written_again_with_the_same_content_is_not_reported(
    watched: Watched, before: tuple[str, ...]
) -> None:
    for text in before:
        watched.replace(text)
        watched.watch.poll()
    used, reloads = list(watched.used), list(watched.reloads)
    watched.replace(watched.path.read_bytes())
    watched.watch.poll()
    assert (watched.used, watched.reloads) == (used, reloads)


def test_another_failure_is_returned_too(watched: Watched) -> None:
    for text in ("", "- a\n"):
        watched.replace(text)
        watched.watch.poll()
    assert ["0 documents" in watched.reloads[0].error, "not a YAML mapping" in watched.reloads[1].error] == [True, True]


def test_an_internal_error_keeps_the_ruleset(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpugate.webhook.admission.policy_reload.bind", None)
    watched.replace(WARN)
    watched.watch.poll()
    assert (watched.used, "cannot be used (TypeError" in watched.reloads[0].error) == ([], True)


def test_another_error_of_reading_keeps_the_ruleset(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    watched.replace(WARN)
    monkeypatch.setattr("gpugate.webhook.admission.policy_reload.read_directories", None)
    watched.watch.poll()
    (reload,) = watched.reloads
    assert (watched.used, reload.generation) == ([], generation(AUDIT))
    assert reload.error.startswith(f"{watched.path}: cannot be used (TypeError")


def test_on_demand_the_same_file_is_bound_again(watched: Watched) -> None:
    watched.watch.reload()
    assert (watched.generations, watched.reloads) == ([generation(AUDIT)], [Reload(generation(AUDIT))])


def test_a_refused_file_is_refused_at_start(tmp_path: Path) -> None:
    with pytest.raises(PolicyFileError, match="no such file"):
        load_rules(tmp_path / "policy.yaml")


def test_every_answer_is_of_one_generation(tmp_path: Path) -> None:
    """Reload two files with different decisions two hundred times, while another thread answers."""
    review = (REVIEWS / "nodepool-create-unlimited.validate.json").read_bytes()
    enforcing = HEAD + "policies:\n  nodepools/missing-gpu-limit: {mode: enforce}\n"
    off = HEAD + "policies:\n  '*': {mode: off}\n"
    path = tmp_path / "policy.yaml"
    path.write_text(enforcing)
    gate = Gate(load_rules(path), NoFacts(), lambda: dt.datetime(2026, 11, 21, tzinfo=dt.UTC))
    watch = PolicyFileWatch(path, gate.rules, gate.use, lambda _: None)
    answers: list[dict[str, Any]] = []
    done = threading.Event()

    def answer() -> None:
        while not done.is_set():
            answers.append(json.loads(gate.validate(review).body)["response"])

    thread = threading.Thread(target=answer)
    before = sys.getswitchinterval()
    # Often enough to interrupt reviews at every point, and few enough to finish soon.
    sys.setswitchinterval(0.0001)
    thread.start()
    try:
        for text in (off, enforcing) * 100:
            new = path.with_name("new")
            new.write_text(text)
            new.replace(path)
            watch.poll()
    finally:
        done.set()
        thread.join()
        sys.setswitchinterval(before)

    seen = {(a["auditAnnotations"]["generation"], a["allowed"]) for a in answers}
    assert seen == {(generation(enforcing), False), (generation(off), True)}


def test_every_policy_is_bound(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(WARN)
    assert len(load_rules(path).ruleset.rules) == sum(bool(policy.mode) for policy in CATALOG)


FLEET = """\
apiVersion: gpugate.dev/v1
kind: PolicyConfig
clusters:
  - match: {env: dev}
    mode: audit
"""


def test_rules_are_those_of_the_cluster(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(FLEET)
    modes: list[set[Stance]] = []
    for env in ("dev", "prod"):
        files = RulesFiles(path, cluster=ClusterIdentity(labels={"env": env}))
        modes.append({rule.mode for rule in files.load(files.read()).ruleset.rules})

    assert modes[0] == {Stance.AUDIT}
    assert Stance.ENFORCE in modes[1]


def test_a_webhook_that_does_not_know_its_cluster_does_not_start(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(FLEET)

    with pytest.raises(PolicyFileError, match=r"policy\.yaml:3:1: clusters: depends on the cluster"):
        load_rules(path)


def own_policy(message: str) -> str:
    return SMALL.replace("has too many replicas", message)


class Outside:
    """A server with a policy outside the library; `admits` tells whether changed files may be loaded."""

    def __init__(self, folder: Path, policy_file: Path | None = None) -> None:
        self.policy = folder / "p" / "acme" / "rules.yaml"
        write(folder, {"p/acme/rules.yaml": own_policy("first")})
        self.guarded: list[tuple[list[str], bytes]] = []
        paths = OwnPaths() if policy_file else OwnPaths((folder / "p",))
        self.files = RulesFiles(policy_file, paths, self._guarded)
        self.rules = self.files.load(self.files.read())
        self.used: list[Rules] = []
        self.reloads: list[Reload] = []
        self.offered: list[str] = []
        self.admits: Callable[[], bool] = lambda: True
        self.watch = PolicyFileWatch(self.files, self.rules, self.used.append, self.reloads.append, self._admits)
        self.watch.poll()

    def _guarded(self, policies: Sequence[Policy], name: bytes) -> tuple[Policy, ...]:
        self.guarded.append(([policy.id for policy in policies], name))
        return tuple(replace(policy, doc="Guarded.") for policy in policies)

    def _admits(self, content: RulesContent) -> bool:
        self.offered.append(content.generation)
        return self.admits()

    def change(self, text: str) -> str:
        """Replace the policy, and return the generation of the files."""
        new = self.policy.with_name("new")
        new.write_text(text)
        new.replace(self.policy)
        return self.files.read().generation

    @property
    def results(self) -> tuple[list[str], list[Reload]]:
        return [rules.generation for rules in self.used], self.reloads


@pytest.fixture
def outside(tmp_path: Path) -> Outside:
    return Outside(tmp_path)


def test_policies_outside_the_library_are_guarded_and_bound_behind_those_of_the_library(outside: Outside) -> None:
    name = outside.files.read().own
    assert outside.guarded == [(["acme/many-replicas"], name)]
    *library, own = outside.rules.ruleset.catalog
    assert tuple(library) == CATALOG
    assert (own.id, own.doc) == ("acme/many-replicas", "Guarded.")


@pytest.mark.parametrize("text", [None, AUDIT], ids=["no policy file", "a policy file"])
def test_the_generation_is_of_the_policy_file_and_of_policies_outside_the_library(
    tmp_path: Path, text: str | None
) -> None:
    file = tmp_path / "policy.yaml"
    if text:
        file.write_text(text)
    write(tmp_path, {"p/acme/rules.yaml": SMALL})
    content = RulesFiles(file if text else None, OwnPaths((tmp_path / "p",))).read()
    data = (text or "").encode()
    assert (content.data or b"", content.generation) == (data, hashlib.sha256(data + content.own).hexdigest()[:12])


def test_a_changed_policy_outside_the_library_is_loaded(outside: Outside) -> None:
    assert outside.results == ([], [])

    second = outside.change(own_policy("second"))
    outside.watch.poll()
    assert outside.results == ([second], [Reload(second)])
    outside.watch.reload()
    assert outside.results == ([second] * 2, [Reload(second)] * 2)


def test_an_invalid_policy_outside_the_library_leaves_the_last_rules_in_force(outside: Outside) -> None:
    first = outside.rules.generation
    outside.change(SMALL.replace("object.spec", "objct.spec"))
    for _ in range(2):
        outside.watch.poll()

    (reload,) = outside.reloads
    assert (outside.used, reload.generation, "unknown variable `objct`" in reload.error) == ([], first, True)


def test_directories_that_the_policy_file_names_are_watched(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(AUDIT + "policy_paths: [p]\n")
    outside = Outside(tmp_path, file)
    for text in ("second", "third"):
        outside.change(own_policy(text))
        outside.watch.poll()
    assert len(outside.used) == 2

    file.write_text(AUDIT)
    outside.watch.poll()
    assert outside.results[0][-1] == generation(AUDIT)
    outside.change(own_policy("fourth"))
    outside.watch.poll()
    assert len(outside.used) == 3


def test_files_that_did_not_change_are_read_once(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outside.files, "read", None)
    outside.watch.poll()
    assert outside.results == ([], [])


def test_changed_files_are_offered_until_they_may_be_loaded(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    outside.admits = lambda: False
    second = outside.change(own_policy("second"))
    outside.watch.poll()
    monkeypatch.setattr(outside.files, "read", None)
    outside.watch.poll()
    assert (outside.results, outside.offered) == (([], []), [second] * 2)

    outside.admits = lambda: True
    for _ in range(2):
        outside.watch.poll()
    assert (outside.results, outside.offered) == (([second], [Reload(second)]), [second] * 3)


def test_files_that_are_reloaded_on_demand_are_bound_once_they_may_be_loaded(outside: Outside) -> None:
    first = outside.rules.generation
    outside.admits = lambda: False
    outside.watch.reload()
    assert outside.results == ([], [])
    outside.admits = lambda: True
    for _ in range(2):
        outside.watch.poll()
    assert outside.results == ([first], [Reload(first)])


def test_a_newer_change_replaces_one_that_may_not_be_loaded_yet(outside: Outside) -> None:
    outside.admits = lambda: False
    second = outside.change(own_policy("second"))
    outside.watch.poll()
    third = outside.change(own_policy("third"))
    outside.watch.poll()
    outside.admits = lambda: True
    for _ in range(2):
        outside.watch.poll()
    assert (outside.results[0], outside.offered) == ([third], [second, third, third])


@pytest.mark.parametrize("text", [own_policy("first"), SMALL.replace("kinds", "kind")], ids=["restored", "invalid"])
def test_a_change_that_is_undone_before_it_may_be_loaded_is_never_loaded(outside: Outside, text: str) -> None:
    outside.admits = lambda: False
    second = outside.change(own_policy("second"))
    outside.watch.poll()
    outside.admits = lambda: True
    outside.change(text)
    for _ in range(2):
        outside.watch.poll()
    assert outside.used == []
    assert outside.offered.count(second) == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [(PolicyFileError("a policy ends"), "a policy ends"), (OSError(), "cannot be used (OSError")],
)
def test_files_whose_trial_fails_are_reported_once_and_not_offered_again(
    outside: Outside, error: Exception, message: str
) -> None:
    def admits() -> bool:
        raise error

    first = outside.rules.generation
    outside.admits = lambda: False
    outside.change(own_policy("second"))
    outside.watch.poll()
    outside.admits = admits
    for _ in range(2):
        outside.watch.poll()

    (reload,) = outside.reloads
    assert (outside.used, reload.generation, message in reload.error) == ([], first, True)
    assert len(outside.offered) == 2
