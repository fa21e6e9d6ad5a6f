"""What the engine is told of the cluster, while this replica leads."""
