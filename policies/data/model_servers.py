"""Model servers: how each is recognized, and its options for the model and the number of GPUs.

Sources, as of 2026-11-23: vLLM 0.11 `vllm/engine/arg_utils.py` (options; tensor, pipeline and data parallel sizes multiply, each 1
by default) and `docker/Dockerfile` (entrypoint); SGLang 0.5 `python/sglang/srt/server_args.py` (with `--enable-dp-attention` the
replicas of attention are inside the tensor parallel group); Text Generation Inference 3.3 `launcher/src/main.rs`; TensorRT-LLM 1.1
`tensorrt_llm/commands/serve.py`; Triton Inference Server user guide; llama.cpp `tools/server`. The name of a model, unless it is a
path, is downloaded from a hub: `vllm/transformers_utils`, `python/sglang/srt/utils/hf_transformers_utils.py`, `launcher/src/main.rs`
(download_convert_model).
"""

from __future__ import annotations

from typing import Final

import msgspec


class ModelServer(msgspec.Struct, frozen=True):
    """A model server.

    Attributes:
        name: its name as its project writes it.
        programs: names of its program -> the word that must follow; empty for none.
        modules: names after `python -m`.
        images: the last part of the names of images whose entrypoint is the server.
        gpu_images: the last part of the names of images that are built for GPUs, unless their tag names other hardware.
        factors: options whose values multiply to the GPUs that it uses, each with all its names; 1 where one is absent.
        shards: options whose value, if it is above 1, makes the server start a process for each GPU, which exchange data.
        shards_by_default: whether it does so for all GPUs that it finds if none of these options is given.
        distributed: prefixes of options with which the GPUs are not those of one container, or are counted differently.
        repositories: the last two parts of the names of its project's images, which contain no model.
        models: options that name the model to load, a directory or a name on a hub.
        model_variable: the environment variable for the model.
        cache: the directory for downloaded models, unless `HF_HOME` is set.
        model_first: whether the first argument that is not an option names the model too.
        answers_when_loaded: whether its HTTP health check succeeds only after the model is loaded.
    """

    name: str
    programs: tuple[tuple[str, str], ...] = ()
    modules: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    gpu_images: tuple[str, ...] = ()
    factors: tuple[tuple[str, ...], ...] = ()
    shards: tuple[tuple[str, ...], ...] = ()
    shards_by_default: bool = False
    distributed: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    model_variable: str = ""
    cache: str = ""
    model_first: bool = False
    answers_when_loaded: bool = True


SERVERS: Final = (
    ModelServer(
        "vLLM",
        programs=(("vllm", "serve"),),
        modules=("vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server"),
        images=("vllm-openai",),
        gpu_images=("vllm-openai",),
        factors=(
            ("--tensor-parallel-size", "-tp"),
            ("--pipeline-parallel-size", "-pp"),
            ("--data-parallel-size", "-dp"),
            ("--prefill-context-parallel-size", "-pcp"),
        ),
        shards=(("--tensor-parallel-size", "-tp"), ("--pipeline-parallel-size", "-pp")),
        distributed=(
            "--config",
            "--data-parallel-",
            "--distributed-executor-backend",
            "--headless",
            "--nnodes",
            "--node-rank",
            "--worker-use-ray",
            "-dpa",
            "-dpl",
            "-dpn",
            "-dpr",
        ),
        repositories=("lmcache/vllm-openai", "rocm/vllm", "vllm/vllm-openai"),
        models=("--model",),
        model_first=True,
    ),
    ModelServer(
        "SGLang",
        programs=(("sglang", "serve"),),
        modules=("sglang.launch_server",),
        gpu_images=("sglang",),
        factors=(
            ("--tp-size", "--tensor-parallel-size", "--tp"),
            ("--pp-size", "--pipeline-parallel-size", "--pp"),
            ("--dp-size", "--data-parallel-size", "--dp"),
        ),
        shards=(("--tp-size", "--tensor-parallel-size", "--tp"), ("--pp-size", "--pipeline-parallel-size", "--pp")),
        distributed=("--config", "--dist-init-addr", "--enable-dp-attention", "--nnodes", "--node-rank"),
        repositories=("lmsysorg/sglang",),
        models=("--model-path", "--model"),
    ),
    ModelServer("TensorRT-LLM", programs=(("trtllm-serve", ""),), shards=(("--tp-size",), ("--pp-size",))),
    ModelServer(
        "Text Generation Inference",
        programs=(("text-generation-launcher", ""),),
        images=("text-generation-inference",),
        gpu_images=("text-generation-inference",),
        shards=(("--num-shard",),),
        shards_by_default=True,
        repositories=("huggingface/text-generation-inference",),
        models=("--model-id",),
        model_variable="MODEL_ID",
        cache="/data",
    ),
    ModelServer("Triton", programs=(("tritonserver", ""),), answers_when_loaded=False),
    ModelServer("llama.cpp", programs=(("llama-server", ""),)),
)
