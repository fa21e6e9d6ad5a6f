"""Every array that kernels work on: its declaration, its records, its view, and what to do where it is full."""
