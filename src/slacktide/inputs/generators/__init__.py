"""One file per generator of workloads; ``registry`` lists them."""
