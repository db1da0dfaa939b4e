"""Policies on monitoring."""
