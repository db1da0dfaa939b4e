"""Policies whose rules are CEL expressions, as documents of the kind Policy."""
