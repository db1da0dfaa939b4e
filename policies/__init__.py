"""What is decided: pure functions from a request to a verdict; no I/O, no HTTP, no clock."""
