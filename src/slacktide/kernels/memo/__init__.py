"""What need not be looked at again: what a failure proves, and when a host can serve at the earliest."""
