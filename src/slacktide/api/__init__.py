"""The Python API: ``import slacktide as st`` (docs/python.md). ``slacktide/__init__.pyi`` lists what is public.

A thin layer: each function reads what it is given, and calls what the command of the same name calls.
"""
