"""What was promised and what is delivered (specification, sections 2 and 3)."""
