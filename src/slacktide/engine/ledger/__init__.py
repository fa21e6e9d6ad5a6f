"""What each controller was promised and has got: now, kept outside of the scheduler, and carried on after a crash."""
