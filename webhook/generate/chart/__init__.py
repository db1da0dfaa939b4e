"""The Helm chart, and the same objects without Helm, from one description."""
