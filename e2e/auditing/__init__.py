"""Tests of the audit share what is stored: a package, because fixtures of that scope end with one."""
