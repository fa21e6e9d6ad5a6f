"""From objects of Kubernetes to what the core understands; without memory of its own."""
