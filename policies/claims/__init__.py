"""Policies on ResourceClaims, their templates and DeviceClasses (Dynamic Resource Allocation)."""
