"""What the columns of an input hold: cells and their types, terms, affinity, access, resizes, instances."""
