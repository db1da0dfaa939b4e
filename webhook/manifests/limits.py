"""How much a file may ask of us; each limit is far above any object that the API server accepts."""

from __future__ import annotations

from typing import Final

# etcd takes 1.5 MiB per object; a dump of a whole cluster is many objects in one `kind: List`.
MAX_BYTES: Final = 64 * 2**20
# The deepest custom resource definitions nest about 60 levels; libyaml's composer overruns the stack at some 20,000.
MAX_DEPTH: Final = 128
# How many directories deep a tree is read; a path of PATH_MAX could have 2,000, each some frames of Python's stack.
MAX_DIRECTORIES: Final = 128
MAX_NODES: Final = 2_000_000
# Nodes that stand in the text once and in the object many times; 280 bytes of aliases make a million.
MAX_ALIASED_NODES: Final = 100_000
