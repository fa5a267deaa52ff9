"""AcmeTrace: jobs of the clusters Seren and Kalos, their utilisation, and jobs of three earlier traces."""
