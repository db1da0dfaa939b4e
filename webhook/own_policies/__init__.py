"""Policies outside the library: in directories that settings name, and in installed packages."""
