"""Policy bundles: the policy file, its own policies and schemas as an artifact in an OCI registry."""
