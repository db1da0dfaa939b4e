"""Entry point `gpugate audit`: evaluate the stored objects of a cluster as if they were created now."""
