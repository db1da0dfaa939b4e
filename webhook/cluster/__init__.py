"""What a live cluster holds; the only folder that imports the Kubernetes client.

Typed decoders are made when a module is imported, before there are threads: msgspec 0.22 works out what a type holds when it is
first used, and two threads that are the first may end the process (a null pointer in its C part, seen in one start of twelve).
"""
