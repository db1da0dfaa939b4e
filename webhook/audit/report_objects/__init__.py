"""Writes what an audit found into the cluster: one report object for each object with findings."""
