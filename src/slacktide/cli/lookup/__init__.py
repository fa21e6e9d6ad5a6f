"""What there is to choose from."""
