"""AcmeTrace: jobs and utilization of the clusters Seren and Kalos, and jobs of three earlier traces."""
