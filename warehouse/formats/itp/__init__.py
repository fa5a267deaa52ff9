"""The ITP trace and the ElasticFlow traces made of it, from the ElasticFlow repository."""
