"""`gpugate webhook`: running an installation, a module per subcommand."""
