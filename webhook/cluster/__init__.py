"""Access to a live cluster; the only folder that imports the Kubernetes client.

Typed decoders are created at import, before any thread starts. msgspec 0.22 inspects a type at its first use. Two threads that
do so at the same time can crash the process: a null pointer in its C code, observed in one of twelve starts.
"""
