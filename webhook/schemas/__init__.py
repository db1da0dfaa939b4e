"""Schema validation without an API server, from tables compiled of the definitions of the kinds."""
