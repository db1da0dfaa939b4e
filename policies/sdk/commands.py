"""The evidence of training in the command of a container: launchers, scripts, benchmarks and servers.

A command is parsed like a shell does: words, quotes, comments, here-documents and lists of commands. Nothing is
expanded, so a program that a variable or a substitution names is unknown.

Sources: launchers of PyTorch 2.9 (`torch/distributed/run.py`), accelerate 1.12, DeepSpeed 0.18, Horovod 0.28, Colossal-AI 0.5,
torchtune 0.6, Axolotl 0.12, LLaMA-Factory 0.9, fairseq 0.12; programs of NVIDIA nccl-tests 2.17 and nvbandwidth 0.8; POSIX
shell (IEEE 1003.1-2024, 2.2 and 2.3).
"""

from __future__ import annotations

import re
from enum import IntEnum
from itertools import chain
from typing import TYPE_CHECKING, Final, cast

from gpugate.policies.sdk.structs import MutableStruct, Struct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpugate.policies.sdk.field import Field, Path
    from gpugate.policies.sdk.objects import Wrapper
    from gpugate.policies.sdk.policy import AnyContext


class Strength(IntEnum):
    """How strong the evidence of training is. The strongest evidence in a Pod counts."""

    NOTHING = 0
    OTHER = 1
    SCRIPT = 2
    LAUNCHER = 3


class Sign(Struct, frozen=True, order=True):
    """The evidence of training in a command, and its text for messages.

    LAUNCHER: the command starts a launcher of distributed training. SCRIPT: it runs a script or module whose name
        indicates training. OTHER: it runs a benchmark, a server, inference or an evaluation.
    """

    strength: Strength = Strength.NOTHING
    text: str = ""


_NO_SIGN: Final = Sign()
# The number of characters that are read of the commands of a Pod, or of all templates of a workload.
_READ: Final = 16 * 1024
_LONGEST_IMAGE: Final = 255
_LONGEST_SHOWN: Final = 60
_DEEPEST: Final = 3
# Workloads whose Pods work together, so the command of one of them is evidence for all.
_GANGS: Final = frozenset({"JAXJob", "JobSet", "MPIJob", "PaddleJob", "PyTorchJob", "RayJob", "TFJob", "XGBoostJob"})

_SHELLS: Final = frozenset({"ash", "bash", "dash", "ksh", "sh", "zsh"})
_PREFIXES: Final = frozenset(
    {"!", "{", "builtin", "command", "do", "elif", "else", "exec", "if", "nohup", "then", "time", "until", "while"}
)
# Programs that run another program, which follows their own options.
_WRAPPERS: Final = frozenset(
    {
        *("catatonit", "ddtrace-run", "dumb-init", "env", "gosu", "ionice", "nice", "ncu", "nsys", "numactl"),
        *("opentelemetry-instrument", "setsid", "stdbuf", "strace", "sudo", "taskset", "timeout", "tini", "xargs"),
    }
)
# The same, where the command begins after this word.
_RUNNERS: Final = {
    **dict.fromkeys(("conda", "hatch", "mamba", "micromamba", "pdm", "pipenv", "pixi", "poetry", "uv"), "run"),
    "ray": "--",
}
_MPI: Final = frozenset({"mpiexec", "mpiexec.hydra", "mpirun", "orterun", "prun", "srun"})
# Launchers that only start training, and the word that must follow.
_LAUNCHERS: Final = {
    **dict.fromkeys(("deepspeed", "fairseq-train", "horovodrun", "torchrun"), ""),
    **dict.fromkeys(("axolotl", "llamafactory-cli"), "train"),
    **dict.fromkeys(("colossalai", "tune"), "run"),
    "accelerate": "launch",
}
_LAUNCHER_MODULES: Final = re.compile(
    r"torch\.distributed\.(?:run|launch)|torchrun|accelerate\.commands\.(?:launch|accelerate_cli)"
    r"|deepspeed(?:\.launcher\.[a-z_]+)?|horovod\.runner(?:\.[a-z_]+)?"
)
# Programs whose arguments are not a command.
_OTHERS: Final = frozenset(
    {
        *("add", "apk", "apt", "apt-get", "cat", "cd", "cp", "curl", "dnf", "echo", "export", "git", "grep", "kubectl"),
        *("ls", "microdnf", "mkdir", "pip", "pip3", "printf", "rm", "scp", "source", "ssh", "wget", "which", "yum"),
    }
)
_BENCHMARK: Final = re.compile(
    r"(?:[a-z_]+_perf(?:_mpi)?|nvbandwidth|bandwidthTest|p2pBandwidthLatencyTest|gpu[-_]burn|[nr]ccl[-_]tests?"
    r"|vector-?[aA]dd|nbody|deviceQuery|ib_(?:write|read|send)_(?:bw|lat)|osu_[a-z_]+|x?hpl|x?hpcg"
    r"|dcgmproftester[0-9]*|dcgmi|nvidia-smi)"
)
_BENCHMARK_IMAGE: Final = re.compile(r"[nr]ccl-?tests?|nvbandwidth|gpu-burn|cuda-samples?|vector-?add|nbody")
_SERVERS: Final = frozenset(
    {"lmdeploy", "lm_eval", "ollama", "text-generation-launcher", "tritonserver", "trtllm-serve", "vllm"}
)
_TRAINING: Final = re.compile(
    r"(?<![a-z])(?:(?:pre|re)?[-_]?train(?:ing|er)?|fine[-_]?tun(?:e|ing)|sft|dpo|grpo|rlhf|q?lora)(?![a-z])"
)
_BENCH: Final = re.compile(r"(?<![a-z])bench(?:mark(?:s|ing)?)?(?![a-z])")
_OTHERWISE: Final = re.compile(
    r"(?<![a-z])(?:infer(?:ence)?|serv(?:e|er|ing)|generat(?:e|ion)|eval(?:uat(?:e|ion))?|lm_eval|predict(?:ion)?"
    r"|preprocess|tokenize|download|convert|chat|test|vllm|sglang|lmdeploy)(?![a-z])"
)
_SCRIPT: Final = re.compile(r"\.(?:py|sh)$")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
# Options of a shell in one word, with `c` among them or with `o` at the end, which takes the next word.
_C_OPTION: Final = re.compile(r"-(?=.{1,6}\Z)[abefhiklmnoptuvx]*c[abefhiklmnoptuvx]*")
_O_OPTION: Final = re.compile(r"[-+][abefhiklmnptuvx]*o")


def command_sign(pod: Field, ctx: AnyContext) -> Sign:
    """Return the evidence of training in the commands of a Pod or Pod template; linear, and of the first 16 KiB only.

    If a template has no evidence, the other templates of the same gang and the entrypoint of a RayJob count.
    """
    wrapper = ctx.wrapper
    if wrapper is None:
        return _sign_of_pod(pod, _Budget())
    if command_sign not in wrapper.memo:
        signs_by_path = _signs(wrapper)
        # The strongest sign is computed once, because a workload may have thousands of templates.
        wrapper.memo[command_sign] = signs_by_path, max(signs_by_path.values())
    signs, strongest = cast("tuple[dict[Path, Sign], Sign]", wrapper.memo[command_sign])
    own = signs.get(pod.path, _NO_SIGN)
    is_gang = wrapper.kind.kind in _GANGS or wrapper.kind.group == "batch.volcano.sh"
    return strongest if is_gang and own is _NO_SIGN else own


def _signs(wrapper: Wrapper) -> dict[Path, Sign]:
    """Return the sign of each template of a workload by its path, and that of its entrypoint under the empty path."""
    budget = _Budget()
    entrypoint = wrapper.root["spec", "entrypoint"].text if wrapper.kind.kind == "RayJob" else ""
    signs: dict[Path, Sign] = {(): _sign_of_shell(budget.take(entrypoint))}
    for template in wrapper.templates:
        signs[template.path] = _sign_of_pod(template, budget)
    return signs


class _Budget(MutableStruct):
    """The number of characters that may still be read."""

    left: int = _READ

    def take(self, text: str) -> str:
        """Return the part of a text that may be read. A text costs one more than its length."""
        taken = text[: max(self.left, 0)]
        self.left -= len(text) + 1
        return taken


def _sign_of_pod(pod: Field, budget: _Budget) -> Sign:
    return max((_sign_of_container(container, budget) for container in pod["spec", "containers"]), default=_NO_SIGN)


def _sign_of_container(container: Field, budget: _Budget) -> Sign:
    command, words = container["command"].texts, []
    for word in chain(command, container["args"].texts):
        if budget.left <= 0:
            break
        words.append(budget.take(word))
    # The script of an Argo template.
    if container["source"].text and (not words or _base(words[0]) in _SHELLS):
        return _sign_of_shell(budget.take(container["source"].text))
    if words and not command:
        # Arguments of an entrypoint that is not known, which may be a shell.
        if _C_OPTION.fullmatch(words[0]):
            words = ["sh", *words]
        elif len(words) == 1:
            return max(_sign_of_shell(words[0]), _sign_of_image(container))
    return max(_sign_of_words(words), _sign_of_image(container))


def _sign_of_image(container: Field) -> Sign:
    benchmark = _BENCHMARK_IMAGE.search(_base(container["image"].text[-_LONGEST_IMAGE:]))
    return Sign(Strength.OTHER, f"{benchmark[0]} in its image") if benchmark else _NO_SIGN


def _sign_of_shell(text: str, depth: int = 0) -> Sign:
    return max((_sign_of_words(words, depth) for words in _simple_commands(text)), default=_NO_SIGN)


class Started(Struct, frozen=True):
    """A program that a simple command starts, without assignments and wrappers before it, and the words after it.

    `parallel` is the MPI launcher that starts several copies of it, else empty.
    """

    program: str
    words: tuple[str, ...]
    parallel: str = ""


def started_programs(container: Field) -> tuple[Started, ...] | None:
    """Return the programs that the command and arguments of a container start; None above 16 KiB.

    Commands inside of shells are included. Without a command, the arguments belong to the entrypoint of the image, so
    the first program is empty.
    """
    command, arguments = container["command"].texts, container["args"].texts
    if sum(len(word) + 1 for word in (*command, *arguments)) > _READ:
        return None
    if not command:
        return (Started("", tuple(arguments)),)
    return tuple(_all_started([*command, *arguments], 0))


def runs_benchmark(pod: Field, ctx: AnyContext) -> bool:
    """Tell whether a Pod, or another Pod of its gang, starts a program that measures GPUs or their network."""
    wrapper = ctx.wrapper
    if wrapper is None or wrapper.kind.kind not in _GANGS:
        return _starts_benchmark(pod)
    if runs_benchmark not in wrapper.memo:
        wrapper.memo[runs_benchmark] = any(map(_starts_benchmark, wrapper.templates))
    return bool(wrapper.memo[runs_benchmark])


_STATES: Final = frozenset({"dcgmi", "nvidia-smi"})  # print the state of GPUs, often before another program


def _starts_benchmark(pod: Field) -> bool:
    containers = pod["spec", "containers"]
    started = {start.program for container in containers for start in started_programs(container) or ()}
    works = not started.isdisjoint(_LAUNCHERS) or not started.isdisjoint(_SERVERS)
    return not works and any(_BENCHMARK.fullmatch(program) for program in started - _STATES)


def _all_started(words: Sequence[str], depth: int) -> Iterator[Started]:
    started = _started(words)
    if started is None:
        return
    text = _shell_input(started.words)[0] if started.program in _SHELLS else None
    if text is None:
        yield started
    elif depth < _DEEPEST:
        for command in _simple_commands(text):
            yield from _all_started(command, depth + 1)


def _started(words: Sequence[str]) -> Started | None:
    position, wrapped, parallel = 0, False, ""
    while position < len(words):
        word = words[position]
        program = _base(word)
        position += 1
        if _ASSIGNMENT.match(word) or program in _PREFIXES or (wrapped and word.startswith("-")):
            continue
        if program in _WRAPPERS:
            wrapped = True
        elif program in _MPI:
            wrapped, parallel = True, program
        elif program in _RUNNERS:
            try:
                position = words.index(_RUNNERS[program], position) + 1
            except ValueError:
                return Started(program, tuple(words[position:]))
            wrapped = True
        elif not wrapped or _is_program(program):
            return Started(program, tuple(words[position:]), parallel)
    return None


def _is_program(word: str) -> bool:
    """Tell whether a word after a wrapper is a program and not the value of an option of the wrapper."""
    return (
        word in _SHELLS
        or word in _LAUNCHERS
        or word in _SERVERS
        or word in _OTHERS
        or word.startswith("python")
        or bool(_BENCHMARK.fullmatch(word) or _SCRIPT.search(word))
    )


def _sign_of_words(words: Sequence[str], depth: int = 0) -> Sign:  # noqa: PLR0911 -- one case per line
    """Read a simple command: its program and its script."""
    started = _started(words)
    if started is None:
        return _NO_SIGN
    program = started.program
    if program in _SHELLS:
        return _sign_of_shell_words(started.words, depth)
    if program.startswith("python"):
        return _sign_of_python(started.words, started.parallel)
    if program in _LAUNCHERS:
        return _sign_of_launcher(program, started.words)
    if program in _SERVERS or _BENCHMARK.fullmatch(program):
        return Sign(Strength.OTHER, f"{program} in its command")
    if program not in _OTHERS and _SCRIPT.search(program):
        return _sign_of_script(program, started.parallel)
    return _NO_SIGN


def _sign_of_shell_words(words: Sequence[str], depth: int) -> Sign:
    text, script = _shell_input(words)
    if text is not None:
        return _sign_of_shell(text, depth + 1) if depth < _DEEPEST else _NO_SIGN
    return _sign_of_script(_base(script), "") if script else _NO_SIGN


def _shell_input(words: Sequence[str]) -> tuple[str | None, str]:
    """Return the input of a shell by its arguments: the text after `-c` (None without it) and the script."""
    value = False
    for position, word in enumerate(words):
        if value:
            value = False
        elif _O_OPTION.fullmatch(word):
            value = True
        elif _C_OPTION.fullmatch(word):
            return (words[position + 1] if position + 1 < len(words) else ""), ""
        elif not word.startswith(("-", "+")):
            return None, word
    return None, ""


def _sign_of_python(words: Sequence[str], parallel: str) -> Sign:
    for position, word in enumerate(words):
        if word == "-m":
            module = words[position + 1] if position + 1 < len(words) else ""
            if _LAUNCHER_MODULES.fullmatch(module):
                return _sign_of_launcher(f"python -m {module}", words[position + 2 :])
            return _sign_of_script(module, parallel)
        if not word.startswith("-"):
            if _base(word) in _LAUNCHERS:
                return _sign_of_launcher(_base(word), words[position + 1 :])
            return _sign_of_script(_base(word), parallel)
        if word == "-c":
            break
    return _NO_SIGN


def _sign_of_launcher(launcher: str, words: Sequence[str]) -> Sign:
    """Return the sign of a launcher by what it starts. A launcher that starts nothing (`--help`) has none."""
    plain = [word for word in words if not word.startswith("-")]
    follows = _LAUNCHERS.get(launcher, "")
    if not plain or (follows and plain[0] != follows):
        return _NO_SIGN
    target = next((words[i + 1] for i, word in enumerate(words[:-1]) if word in {"-m", "--module"}), "")
    target = target or next((_base(word) for word in plain if _SCRIPT.search(word)), "")
    sign = _sign_of_script(target, "")
    if sign.strength is Strength.OTHER:
        return sign
    return Sign(Strength.LAUNCHER, f"the launcher {launcher} {follows}".rstrip() + " in its command")


def _sign_of_script(name: str, parallel: str) -> Sign:
    """Return the sign of a script or module by its name. A script that MPI runs in parallel is a launcher if it trains."""
    lowered = name.lower()
    printable = name if len(name) <= _LONGEST_SHOWN else f"{name[:_LONGEST_SHOWN]}..."
    if _BENCH.search(lowered):
        return Sign(Strength.OTHER, f"{printable} in its command")
    if _TRAINING.search(lowered):
        if parallel:
            return Sign(Strength.LAUNCHER, f"{parallel} with {printable} in its command")
        return Sign(Strength.SCRIPT, f"{printable} in its command")
    return Sign(Strength.OTHER, f"{printable} in its command") if _OTHERWISE.search(lowered) else _NO_SIGN


def _base(path: str) -> str:
    return path.rpartition("/")[2]


# Every repetition is possessive, so that matching is linear. An unclosed quote ends with the text.
_TOKEN: Final = re.compile(
    r"""(?P<gap>(?:[ \t\r]|\\\r?\n)++|\#[^\n]*+)
    |(?P<here><<-?[ \t]*+(?P<quote>['"]?)(?P<mark>[A-Za-z0-9_.-]++)(?P=quote))
    |(?P<redirect>[0-9]*+(?:<<<|[<>]{1,2}|&>{1,2})(?:&[0-9-]*+)?+)
    |(?P<end>[\n;&|()`]++)
    |(?P<word>(?:'[^']*+(?:'|\Z)|"(?:[^"\\]|\\.)*+(?:"|\Z|\\\Z)|\\.|[^\s'"\\;&|()`<>])++)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED: Final = re.compile(r"""'([^']*+)'?+|"((?:[^"\\]|\\.)*+)"?+|\\(.)""", re.DOTALL)
_ESCAPED: Final = re.compile(r"""\\(["\\$`])|\\\n""")


def _simple_commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each simple command of a shell script, without quotes. Here-documents are skipped."""
    words: list[str] = []
    position, mark = 0, ""
    while token := _TOKEN.match(text, position):
        position = token.end()
        if token["word"] is not None:
            words.append(_unquoted(token["word"]))
        elif token["mark"] is not None:
            mark = token["mark"]
        elif token["end"] is not None:
            if words:
                yield words
                words = []
            if mark and "\n" in token["end"]:
                position = _end_of_here_document(text, position, mark)
                mark = ""
    if words:
        yield words


def _end_of_here_document(text: str, start: int, mark: str) -> int:
    """Return the end of the line that consists of tabs and the mark; the end of the text if there is none."""
    mark_start = text.find(mark, start)
    while mark_start >= 0:
        begin, end = mark_start, mark_start + len(mark)
        while begin > start and text[begin - 1] == "\t":
            begin -= 1
        if (begin == start or text[begin - 1] == "\n") and text[end : end + 1] in {"", "\n"}:
            return end
        mark_start = text.find(mark, end)
    return len(text)


def _unquoted(word: str) -> str:
    if not ("'" in word or '"' in word or "\\" in word):
        return word
    return _QUOTED.sub(_plain, word)


def _plain(quoted: re.Match[str]) -> str:
    single, double, escaped = quoted.groups()
    if single is not None:
        return str(single)
    if double is not None:
        return _ESCAPED.sub(r"\1", double)
    return str(escaped).removeprefix("\n")
