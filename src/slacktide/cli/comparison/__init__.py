"""Many runs, what they are compared by, and how many hosts are enough."""
