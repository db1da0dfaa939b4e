"""Policies on the node classes of EC2 and of EKS Auto Mode."""
