"""A record of all that an engine was told: written, read, decided again, and made into a workload."""
