"""The command line: one module per command, flags in, a call, output."""
