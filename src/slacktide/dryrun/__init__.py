"""A dry run: the cluster as it would be under our decisions, beside the scheduler that works there."""
