"""`gpugate webhook`: operations on an installation, one module per subcommand."""
