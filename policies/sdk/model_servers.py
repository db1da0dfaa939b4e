"""The model server that a container runs, and its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpugate.policies.data.model_servers import SERVERS
from gpugate.policies.sdk.commands import started_programs
from gpugate.policies.sdk.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpugate.policies.data.model_servers import ModelServer
    from gpugate.policies.sdk.commands import Started
    from gpugate.policies.sdk.field import Field, Path
    from gpugate.policies.sdk.policy import AnyContext

_LONGEST_IMAGE: Final = 255
# A word that a shell, Kubernetes or a template replaces by an unknown value.
_EXPANSIONS: Final = ("$", "`")


class Arguments(Struct, frozen=True):
    """The arguments of a program."""

    words: tuple[str, ...]

    def option(self, names: Sequence[str]) -> str | None:
        """Return the last value of an option, given as `--name value` or `--name=value`; None where it is absent."""
        value = None
        for position, word in enumerate(self.words):
            name, equals, text = word.partition("=")
            if _normal(name) in names:
                value = text if equals else (self.words[position + 1] if position + 1 < len(self.words) else "")
        return value

    def has_beginning(self, beginnings: Sequence[str]) -> bool:
        """Tell whether an argument begins like one of some options."""
        return any(_normal(word).startswith(tuple(beginnings)) for word in self.words)

    @property
    def has_expansions(self) -> bool:
        """Whether an argument is replaced by an unknown value when the container starts."""
        return any(sign in word for word in self.words for sign in _EXPANSIONS)


class Running(Struct, frozen=True):
    """A model server that a container runs.

    Attributes:
        server: the model server.
        arguments: its arguments.
        alone: whether it is the only server, and Ray, which spreads a server over nodes, is not started with it.
    """

    server: ModelServer
    arguments: Arguments
    alone: bool


def programs(pod: Field, _: AnyContext) -> Mapping[Path, tuple[Started, ...]]:
    """Return the programs that each app container starts, by its path. `ctx.derived(programs)` caches them."""
    return {container.path: started_programs(container) or () for container in pod["spec", "containers"]}


def running_server(container: Field, started: tuple[Started, ...]) -> Running | None:
    """Return the model server that a container runs, by its command or the entrypoint of its image.

    `started` contains the container's programs as returned by `programs`.
    """
    if len(started) == 1 and not started[0].program:
        return _of_image(container, started[0].words)
    servers = list(filter(None, map(_of_program, started)))
    if not servers:
        return None
    server, words = servers[0]
    return Running(
        server, Arguments(words), len(servers) == 1 and not any(program.program == "ray" for program in started)
    )


def image_of(container: Field) -> tuple[str, str]:
    """Return name and tag of a container's image, without its registry, path and digest."""
    name, _, tag = container["image"].text[-_LONGEST_IMAGE:].partition("@")[0].rpartition("/")[2].partition(":")
    return name, tag


def repository_of(container: Field) -> str:
    """Return the last two parts of the name of a container's image, such as `vllm/vllm-openai`."""
    path, _, last = container["image"].text[-_LONGEST_IMAGE:].partition("@")[0].rpartition("/")
    return f"{path.rpartition('/')[2]}/{last.partition(':')[0]}"


def _of_image(container: Field, words: tuple[str, ...]) -> Running | None:
    image, _ = image_of(container)
    matching = (server for server in SERVERS if image in server.images)
    return next((Running(server, Arguments(words), alone=True) for server in matching), None)


def _of_program(started: Started) -> tuple[ModelServer, tuple[str, ...]] | None:
    words = started.words
    for server in SERVERS:
        for program, word in server.programs:
            if started.program == program and (not word or words[:1] == (word,)):
                return server, words[1:] if word else words
    if started.program.startswith("python"):
        module, arguments = _module(words)
        return next(((server, arguments) for server in SERVERS if module in server.modules), None)
    return None


def _module(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the module that `python -m` runs, and its arguments."""
    for position, word in enumerate(words):
        if word == "-m":
            return "".join(words[position + 1 : position + 2]), words[position + 2 :]
        if not word.startswith("-"):
            break
    return "", ()


def _normal(option: str) -> str:
    """Return an option with dashes; vLLM's argparse accepts underscores too (`vllm/utils/argparse_utils.py`)."""
    return option.replace("_", "-") if option.startswith("--") else option
