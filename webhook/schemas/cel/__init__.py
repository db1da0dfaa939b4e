"""The part of the Common Expression Language that definitions of custom resources are written in."""
