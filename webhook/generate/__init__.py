"""Files and objects that are derived from the policy library."""
