"""Policies on ResourceQuotas and namespaces without one."""
