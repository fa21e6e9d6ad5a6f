"""What was promised and what is delivered (specification, section 2)."""
