"""Parts of commands that show data."""
