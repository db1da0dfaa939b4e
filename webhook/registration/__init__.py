"""What makes an API server ask the webhook: the objects, what they ask for, and how they differ in a cluster."""
