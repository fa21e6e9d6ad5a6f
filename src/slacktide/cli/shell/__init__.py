"""What the shell is told: completions, and what a mistyped word may have meant."""
