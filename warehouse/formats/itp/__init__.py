"""The ITP trace and the ElasticFlow traces derived from it, from the ElasticFlow repository."""
