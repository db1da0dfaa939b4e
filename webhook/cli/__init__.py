"""The program, what its commands share, and the commands that belong to no feature."""
