"""`gpugate webhook`: the commands that look after an installed webhook."""
