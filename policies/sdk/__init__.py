"""The words a policy is written in."""
