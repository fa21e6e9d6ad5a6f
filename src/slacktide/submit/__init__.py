"""A workload file submitted to a cluster: its requests as Deployments and Jobs, at their own times."""
