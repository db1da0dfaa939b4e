"""What charts and kustomizations become: the manifests that a cluster gets, and where each line of them comes from."""
