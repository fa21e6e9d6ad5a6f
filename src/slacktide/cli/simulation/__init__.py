"""Making workloads and hosts, looking at them, and one run of them."""
