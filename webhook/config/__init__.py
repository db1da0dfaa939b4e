"""`gpugate config`: the configuration in force, the first files of a project, and JSON schemas."""
