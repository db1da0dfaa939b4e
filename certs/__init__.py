"""Issue, renew and load the TLS certificates of the webhook server."""
