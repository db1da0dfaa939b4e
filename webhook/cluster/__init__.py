"""What a live cluster holds; the only folder that imports the Kubernetes client."""
