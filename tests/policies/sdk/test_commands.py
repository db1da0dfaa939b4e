from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.sdk.commands import Started, Strength, command_sign, runs_benchmark, started_programs

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpugate.policies.sdk.policy import Context

LAUNCHER, SCRIPT, OTHER, NOTHING = Strength.LAUNCHER, Strength.SCRIPT, Strength.OTHER, Strength.NOTHING


def shell(script: str) -> dict[str, Any]:
    return {"command": ["sh", "-c", script]}


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        ({"command": ["torchrun", "--nproc_per_node=8", "main.py"]}, LAUNCHER),
        ({"command": ["/opt/venv/bin/torchrun"], "args": ["main.py"]}, LAUNCHER),
        ({"args": ["torchrun", "main.py"]}, LAUNCHER),
        ({"args": ["-c", "torchrun main.py"]}, LAUNCHER),
        ({"args": ["cd /app && torchrun main.py"]}, LAUNCHER),
        ({"command": ["torchrun", "--help"]}, NOTHING),
        ({"command": ["env", "NCCL_DEBUG=INFO", "torchrun", "main.py"]}, LAUNCHER),
        ({"command": ["python", "-m", "torch.distributed.run", "main.py"]}, LAUNCHER),
        ({"command": ["python3.12", "-u", "-m", "torch.distributed.launch", "main.py"]}, LAUNCHER),
        ({"command": ["python", "-m", "torch.utils.collect_env"]}, NOTHING),
        ({"command": ["python", "/usr/local/bin/torchrun", "main.py"]}, LAUNCHER),
        ({"command": ["accelerate", "launch", "run_clm.py"]}, LAUNCHER),
        ({"command": ["accelerate", "config"]}, NOTHING),
        ({"command": ["deepspeed", "--num_gpus", "8", "main.py"]}, LAUNCHER),
        ({"command": ["deepspeed", "inference.py"]}, OTHER),
        ({"command": ["horovodrun", "-np", "8", "python", "main.py"]}, LAUNCHER),
        ({"command": ["mpirun", "-np", "8", "-x", "NCCL_DEBUG", "python", "train_mnist.py"]}, LAUNCHER),
        ({"command": ["mpirun", "-np", "8", "python", "solve.py"]}, NOTHING),
        ({"command": ["mpirun", "-np", "8", "/opt/nccl-tests/build/all_reduce_perf", "-b", "8"]}, OTHER),
        ({"command": ["mpirun", "bash", "-c", "python train.py"]}, SCRIPT),
        ({"command": ["torchrun", "all_reduce_bench.py"]}, OTHER),
        ({"command": ["torchrun", "-m", "lm_eval", "--model", "hf"]}, OTHER),
        ({"command": ["torchrun", "train_and_eval.py"]}, LAUNCHER),
        ({"command": ["python", "train.py"]}, SCRIPT),
        ({"command": ["python", "-u", "scripts/fine_tune_llama.py"]}, SCRIPT),
        ({"command": ["python", "training/infer.py"]}, OTHER),
        ({"command": ["python", "constrained.py"]}, NOTHING),
        ({"command": ["python", "-m", "vllm.entrypoints.openai.api_server"]}, OTHER),
        ({"command": ["vllm", "serve"]}, OTHER),
        ({"command": ["./train.sh"]}, SCRIPT),
        ({"command": ["nvidia-smi"]}, OTHER),
        ({"command": ["sleep", "infinity"]}, NOTHING),
        ({"image": "registry.example.com/k8s-samples:nvbandwidth-v0.8"}, OTHER),
        ({"command": ["bash"], "source": "torchrun main.py"}, LAUNCHER),
        ({"command": ["python"], "source": "torchrun main.py"}, NOTHING),
        ({"command": ["uv", "run", "torchrun", "main.py"]}, LAUNCHER),
        ({"command": ["uv", "pip", "install", "deepspeed", "x"]}, NOTHING),
        ({"command": ["ray", "job", "submit", "--working-dir", ".", "--", "python", "train.py"]}, SCRIPT),
        (shell("pip install deepspeed accelerate"), NOTHING),
        (shell("sudo pip install deepspeed x"), NOTHING),
        (shell("echo torchrun main.py"), NOTHING),
        (shell("# torchrun main.py"), NOTHING),
        (shell("A=1 B='x y' torchrun main.py"), LAUNCHER),
        (shell("set -e; cd /app\nexec torchrun \\\n  --nnodes 2 main.py"), LAUNCHER),
        (shell("if [ -f x ]; then torchrun main.py; fi"), LAUNCHER),
        (shell("(nvidia-smi && torchrun main.py) 2>&1 | tee log"), LAUNCHER),
        (shell("echo 'torchrun main.py; torchrun x.py'"), NOTHING),
        (shell('bash -c "torchrun main.py"'), LAUNCHER),
        (shell("bash -eo pipefail -c 'torchrun main.py'"), LAUNCHER),
        (shell("cat > run.sh <<'EOF'\ntorchrun main.py\nEOF\ntrue"), NOTHING),
        (shell("cat <<-END\nit's\n\tEND\ntorchrun main.py"), LAUNCHER),
        (shell("echo it's torchrun main.py"), NOTHING),
        (shell('t"orch"run main.py'), LAUNCHER),
        (shell("python preprocess.py && python train.py && python evaluate.py"), SCRIPT),
    ],
)
def test_a_command_tells(context: Callable[..., Context[Any]], container: dict[str, Any], expected: Strength) -> None:
    ctx = context({"metadata": {}, "spec": {"containers": [container]}})
    assert command_sign(ctx.subject, ctx).strength is expected


def test_the_strongest_of_several_containers_counts(context: Callable[..., Context[Any]]) -> None:
    containers = [{"command": ["vllm", "serve"]}, {"command": ["python", "train.py"]}, {"command": ["true"]}]
    ctx = context({"metadata": {}, "spec": {"containers": containers}})
    assert command_sign(ctx.subject, ctx).text == "train.py in its command"


def test_a_long_name_is_cut(context: Callable[..., Context[Any]]) -> None:
    ctx = context({"spec": {"containers": [{"command": ["python", "train_" + "x" * 1000 + ".py"]}]}})
    assert len(command_sign(ctx.subject, ctx).text) < 100


@pytest.mark.parametrize(("characters", "expected"), [(64, LAUNCHER), (16384, NOTHING)])
def test_what_is_read_is_bounded(context: Callable[..., Context[Any]], characters: int, expected: Strength) -> None:
    long = {"command": ["echo", "x" * characters]}
    for container in (shell(" " * characters + "torchrun main.py"), {"command": ["torchrun", "main.py"]}):
        ctx = context({"spec": {"containers": [long, container]}})
        assert command_sign(ctx.subject, ctx).strength is expected


# Programs by what their words mean. `torchrun main.py` stands for a launcher that they run.
RUNS_THE_NEXT_WORDS = (  # noqa: SIM905 -- one word for each line is too long
    "catatonit ddtrace-run dumb-init env gosu ionice nice ncu nsys numactl opentelemetry-instrument setsid stdbuf strace "
    "sudo taskset timeout tini xargs ! { builtin command do elif else exec if nohup then time until while"
).split()
RUNS_A_COMMAND_OF_ITS_OWN = ["conda", "hatch", "mamba", "micromamba", "pdm", "pipenv", "pixi", "poetry", "uv"]
RUNS_NOTHING = (  # noqa: SIM905 -- as above
    "add apk apt apt-get cat cd cp curl dnf echo export git grep kubectl ls microdnf mkdir pip pip3 printf rm scp source ssh "
    "wget which yum"
).split()
SHELLS = ["ash", "bash", "dash", "ksh", "sh", "zsh"]
SERVERS = ["lmdeploy", "lm_eval", "ollama", "text-generation-launcher", "tritonserver", "trtllm-serve", "vllm"]
MPI = ["mpiexec", "mpiexec.hydra", "mpirun", "orterun", "prun", "srun"]
LAUNCHERS = {
    "deepspeed main.py": "deepspeed",
    "fairseq-train data": "fairseq-train",
    "horovodrun python main.py": "horovodrun",
    "torchrun main.py": "torchrun",
    "axolotl train a.yaml": "axolotl train",
    "llamafactory-cli train a.yaml": "llamafactory-cli train",
    "colossalai run main.py": "colossalai run",
    "tune run lora": "tune run",
    "accelerate launch main.py": "accelerate launch",
    "python -m torchrun main.py": "python -m torchrun",
}


def sign(context: Callable[..., Context[Any]], container: dict[str, Any]) -> tuple[Strength, str]:
    ctx = context({"metadata": {}, "spec": {"containers": [container]}})
    found = command_sign(ctx.subject, ctx)
    return found.strength, found.text


TORCHRUN = (LAUNCHER, "the launcher torchrun in its command")
NONE = (NOTHING, "")
WORDS = {
    **{f"{word} torchrun main.py": TORCHRUN for word in RUNS_THE_NEXT_WORDS},
    **{f"{word} run torchrun main.py": TORCHRUN for word in RUNS_A_COMMAND_OF_ITS_OWN},
    **{f"{word} install torchrun main.py": NONE for word in RUNS_A_COMMAND_OF_ITS_OWN},
    "ray start -- torchrun main.py": TORCHRUN,
    "ray start torchrun main.py": NONE,
    # A word that is no known program may be the value of an option of the wrapper.
    "timeout -s KILL 1h torchrun main.py": TORCHRUN,
    **{f"sudo {word} torchrun main.py": NONE for word in RUNS_NOTHING},
    **{f"sudo {word} -c 'torchrun main.py'": TORCHRUN for word in SHELLS},
    **{f"sudo {word} a torchrun main.py": (OTHER, f"{word} in its command") for word in SERVERS},
    "sudo nvbandwidth torchrun main.py": (OTHER, "nvbandwidth in its command"),
    "sudo python3 main.py torchrun main.py": NONE,
    "sudo ./run.sh torchrun main.py": NONE,
    **{f"{word} python train.py": (LAUNCHER, f"{word} with train.py in its command") for word in MPI},
    **{text: (LAUNCHER, f"the launcher {shown} in its command") for text, shown in LAUNCHERS.items()},
    **{f"{text.split()[0]} other a": NONE for text, shown in LAUNCHERS.items() if " " in shown},
    "bash train.sh": (SCRIPT, "train.sh in its command"),
    "bash -e -o pipefail /app/train.sh infer": (SCRIPT, "train.sh in its command"),
    "bash +o posix train.sh": (SCRIPT, "train.sh in its command"),
    "bash -c": NONE,
    "bash": NONE,
    "mpirun bash train.sh": (SCRIPT, "train.sh in its command"),
    "python -c torchrun train.py": NONE,
    "python": NONE,
    "python -m": NONE,
    "python -u -m": NONE,
    "python -W ignore.py train.py": NONE,
    "mpirun python -m pkg.train": (LAUNCHER, "mpirun with pkg.train in its command"),
    "python torchrun infer.py": (OTHER, "infer.py in its command"),
    "torchrun -m pkg.infer main.py": (OTHER, "pkg.infer in its command"),
    "torchrun --module pkg.infer main.py": (OTHER, "pkg.infer in its command"),
    "torchrun main -m": TORCHRUN,
    "accelerate launch /app/infer.py": (OTHER, "infer.py in its command"),
    "python -m torch.distributed.run": NONE,
    "python -m torch.distributed.run infer.py": (OTHER, "infer.py in its command"),
    "python -m torch.distributed.run main.py": (
        LAUNCHER,
        "the launcher python -m torch.distributed.run in its command",
    ),
    "python /app/Train.py": (SCRIPT, "Train.py in its command"),
    "/app/bench_train.py": (OTHER, "bench_train.py in its command"),
    "mpirun /app/train.py": (LAUNCHER, "mpirun with train.py in its command"),
    "A=torchrun B=main.py": NONE,
    "sudo A=1 torchrun main.py": TORCHRUN,
}


@pytest.mark.parametrize(("text", "expected"), WORDS.items(), ids=WORDS)
def test_what_the_words_of_a_command_tell(
    context: Callable[..., Context[Any]], text: str, expected: tuple[Strength, str]
) -> None:
    assert sign(context, shell(text)) == expected


def in_shells(count: int, text: str) -> list[str]:
    """Return a command of this many shells in each other, of which the last runs the text."""
    for _ in range(count - 1):
        text = "sh -c '" + text.replace("'", "'\\''") + "'"
    return ["sh", "-c", text]


@pytest.mark.parametrize(("shells", "is_read"), [(1, True), (2, True), (3, True), (4, False), (5, False), (6, False)])
def test_three_shells_in_each_other_are_read(
    context: Callable[..., Context[Any]],
    shells: int,
    is_read: bool,  # noqa: FBT001 -- a table's column
) -> None:
    container = {"command": in_shells(shells, "torchrun main.py")}
    assert sign(context, container) == (TORCHRUN if is_read else NONE)
    ctx = context({"spec": {"containers": [container]}})
    started = started_programs(ctx.subject["spec", "containers", 0])
    assert started == ((Started("torchrun", ("main.py",)),) if is_read else ())


SHELL_TEXTS = {
    "'torchrun' main.py": LAUNCHER,
    '"torchrun" main.py': LAUNCHER,
    "torch\\run main.py": LAUNCHER,
    '"torch\\\nrun" main.py': LAUNCHER,
    "torch\\\nrun main.py": LAUNCHER,
    '"torch\\run" main.py': NOTHING,
    "echo a # b\ntorchrun main.py": LAUNCHER,
    "echo \\# b; torchrun main.py": LAUNCHER,
    "cat <<EOF; true\ntorchrun a\nEOF\ntorchrun main.py": LAUNCHER,
    "cat <<EOF\ntorchrun a\nEOF x\n": NOTHING,
    "cat <<EOF\ntorchrun a\n EOF\n": NOTHING,
    "cat <<EOF\nxEOF\nEOF\ntorchrun main.py": LAUNCHER,
    "cat <<-EOF\nx\n\t\tEOF\ntorchrun main.py": LAUNCHER,
    "cat <<EOF\nEOF\ntorchrun main.py": LAUNCHER,
    "cat <<EOF\ntorchrun a": NOTHING,
    "torchrun main.py < EOF": LAUNCHER,
    "2>&1 torchrun main.py": LAUNCHER,
}


@pytest.mark.parametrize(("text", "expected"), SHELL_TEXTS.items(), ids=map(repr, SHELL_TEXTS))
def test_quotes_comments_and_here_documents_are_those_of_a_shell(
    context: Callable[..., Context[Any]], text: str, expected: Strength
) -> None:
    assert sign(context, shell(text))[0] is expected


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        pytest.param({"command": ["vllm", "serve"]}, (Started("vllm", ("serve",)),), id="a program"),
        pytest.param({"args": ["serve", "a"]}, (Started("", ("serve", "a")),), id="arguments of the entrypoint"),
        pytest.param({}, (Started("", ()),), id="the entrypoint"),
        pytest.param(
            {"command": ["sh", "-c"], "args": ["cd /app; env A=1 vllm serve && mpirun -n 2 python a.py"]},
            (Started("cd", ("/app",)), Started("vllm", ("serve",)), Started("python", ("a.py",), "mpirun")),
            id="a shell",
        ),
        pytest.param({"command": ["bash", "a.sh"]}, (Started("bash", ("a.sh",)),), id="a script"),
        pytest.param(
            {"command": ["uv", "pip", "list"]}, (Started("uv", ("pip", "list")),), id="a runner that runs none"
        ),
        pytest.param({"command": ["env"]}, (), id="nothing"),
        pytest.param({"command": ["a" * 16_383]}, (Started("a" * 16_383, ()),), id="16 KiB"),
        pytest.param({"command": ["a" * 16_384]}, None, id="more than 16 KiB"),
        pytest.param({"command": ["a" * 8_191, "b" * 8_191]}, (Started("a" * 8_191, ("b" * 8_191,)),), id="two words"),
        pytest.param({"command": ["a" * 8_191], "args": ["b" * 8_192]}, None, id="two words of more than 16 KiB"),
    ],
)
def test_the_programs_that_a_container_starts(
    context: Callable[..., Context[Any]], container: dict[str, Any], expected: tuple[Started, ...] | None
) -> None:
    ctx = context({"spec": {"containers": [container]}})
    assert started_programs(ctx.subject["spec", "containers", 0]) == expected


GANG = """
apiVersion: {api}
kind: {kind}
metadata: {{}}
spec: {{{spec}}}
"""
PYTORCH = (
    "pytorchReplicaSpecs: {Master: {template: {spec: {containers: [{command: [torchrun, main.py]}]}}}, "
    "Worker: {template: {spec: {containers: [{command: [sleep, inf]}]}}}}"
)
TASKS = (
    "tasks: [{template: {spec: {containers: [{command: [sleep, inf]}]}}}, "
    "{template: {spec: {containers: [{command: [torchrun, main.py]}]}}}]"
)


@pytest.mark.parametrize(
    ("api", "kind", "spec", "expected"),
    [
        pytest.param("kubeflow.org/v1", "PyTorchJob", PYTORCH, LAUNCHER, id="PyTorchJob"),
        pytest.param("batch.volcano.sh/v1alpha1", "Job", TASKS, LAUNCHER, id="Volcano"),
    ],
)
def test_templates_that_train_together_tell_the_same(
    context: Callable[..., Context[Any]], api: str, kind: str, spec: str, expected: Strength
) -> None:
    for subject in (1, 2):
        ctx = context(GANG.format(api=api, kind=kind, spec=spec), subject=subject)
        assert command_sign(ctx.subject, ctx).strength is expected


@pytest.mark.parametrize(
    ("container", "expected"),
    [
        pytest.param({"command": ["a", "b" * 60 + ".py"]}, NONE, id="not a script"),
        pytest.param(
            {"command": ["python", "train_" + "b" * 54]}, (SCRIPT, "train_" + "b" * 54 + " in its command"), id="60"
        ),
        pytest.param(
            {"command": ["python", "train_" + "b" * 55]}, (SCRIPT, "train_" + "b" * 54 + "... in its command"), id="61"
        ),
        pytest.param({"image": "a/nccl-tests:1"}, (OTHER, "nccl-tests in its image"), id="an image"),
        pytest.param({"image": "nccl-tests/a:1"}, NONE, id="a folder of an image"),
        pytest.param({"image": "nccl-tests" + "a" * 245}, (OTHER, "nccl-tests in its image"), id="the longest image"),
        pytest.param({"image": "nccl-tests" + "a" * 246}, NONE, id="a longer image"),
        pytest.param({"args": ["-x", "torchrun main.py"]}, NONE, id="an option of the entrypoint"),
        pytest.param({"args": ["torchrun main.py", "a"]}, NONE, id="two arguments of the entrypoint"),
        pytest.param({"source": "torchrun main.py"}, TORCHRUN, id="a script without a command"),
        pytest.param({"command": ["python"], "source": "torchrun main.py"}, NONE, id="a script of another language"),
    ],
)
def test_names_images_and_arguments_of_an_entrypoint(
    context: Callable[..., Context[Any]], container: dict[str, Any], expected: tuple[Strength, str]
) -> None:
    assert sign(context, container) == expected


@pytest.mark.parametrize(("characters", "expected"), [(16_373, LAUNCHER), (16_374, NOTHING)])
def test_each_word_counts_one_more_than_its_length(
    context: Callable[..., Context[Any]], characters: int, expected: Strength
) -> None:
    # 10 of 16,384 are left, of which `torchrun` takes nine.
    containers = [{"command": ["x" * characters]}, {"command": ["torchrun", "main.py"]}]
    ctx = context({"spec": {"containers": containers}})
    assert command_sign(ctx.subject, ctx).strength is expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["/opt/tests/all_reduce_perf", "-b", "8"], True),
        (["mpirun", "-np", "2", "nvbandwidth"], True),
        (["sh", "-c", "nvbandwidth -t 0; sleep 5"], True),
        (["nvidia-smi"], False),
        (["sh", "-c", "nvbandwidth && vllm serve m"], False),
        (["sh", "-c", "all_reduce_perf && torchrun train.py"], False),
        (["python", "train.py"], False),
    ],
)
def test_a_benchmark_is_all_that_a_container_starts(
    context: Callable[..., Context[Any]], command: list[str], expected: object
) -> None:
    ctx = context({"spec": {"containers": [{"name": "a", "image": "a:1", "command": command}]}})
    assert runs_benchmark(ctx.subject, ctx) is expected
