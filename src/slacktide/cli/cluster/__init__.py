"""What works on a cluster: the scheduler, and what is asked of it."""
