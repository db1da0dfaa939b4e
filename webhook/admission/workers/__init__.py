"""The processes of one webhook: a supervisor that answers nothing, and workers that answer everything."""
