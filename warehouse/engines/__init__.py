"""Engines: what turns a model's SELECT into a part. One small module each, behind `base.Engine`."""
