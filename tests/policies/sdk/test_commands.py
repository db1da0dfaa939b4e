from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpugate.policies.sdk.commands import Strength, command_sign

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
    assert command_sign(ctx.subject, ctx).shown == "train.py in its command"


def test_a_long_name_is_cut(context: Callable[..., Context[Any]]) -> None:
    ctx = context({"spec": {"containers": [{"command": ["python", "train_" + "x" * 1000 + ".py"]}]}})
    assert len(command_sign(ctx.subject, ctx).shown) < 100


@pytest.mark.parametrize(("characters", "expected"), [(64, LAUNCHER), (16384, NOTHING)])
def test_what_is_read_is_bounded(context: Callable[..., Context[Any]], characters: int, expected: Strength) -> None:
    long = {"command": ["echo", "x" * characters]}
    for container in (shell(" " * characters + "torchrun main.py"), {"command": ["torchrun", "main.py"]}):
        ctx = context({"spec": {"containers": [long, container]}})
        assert command_sign(ctx.subject, ctx).strength is expected
