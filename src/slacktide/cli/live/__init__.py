"""Parts of commands that show something live."""
