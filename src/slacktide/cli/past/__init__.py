"""Commands about a cluster's past."""
