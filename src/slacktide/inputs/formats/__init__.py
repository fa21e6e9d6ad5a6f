"""One file per format of workloads, hosts and networks."""
