"""A control plane on this machine, and work for it."""
