"""Grids of runs: read from a small file, run by threads, processes or a Dask cluster, resumed where they stopped.

``grid`` says what is to be run, ``keys`` what determines an outcome, ``prepare`` makes inputs, ``run`` does one run,
``local`` and ``cluster`` do many, ``conduct`` brings them
together. Outcomes are read by ``slacktide.results.experiment``.
"""
