"""Records the reviews that the API server sends, for the tests that run without one."""
