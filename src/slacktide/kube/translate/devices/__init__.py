"""Dynamic resources: which devices a claim can have on a node."""
