"""How kernels are compiled and linked, random numbers as hashes, and calls into a user's own functions."""
