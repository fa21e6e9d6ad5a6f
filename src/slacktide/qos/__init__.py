"""What was promised and what is delivered."""
