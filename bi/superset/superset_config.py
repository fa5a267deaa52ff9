"""Superset settings for a warehouse: no cache, no requests to other hosts, secrets from the environment.

SUPERSET_CONFIG_PATH=bi/superset/superset_config.py
SUPERSET_SECRET_KEY       your own key: `openssl rand -base64 42`
SUPERSET_METASTORE        database for Superset's own tables: `postgresql+psycopg2://me@localhost:5432/superset`
"""

from __future__ import annotations

import os
from copy import deepcopy

from superset import config

SECRET_KEY = os.environ["SUPERSET_SECRET_KEY"]
SQLALCHEMY_DATABASE_URI = os.environ["SUPERSET_METASTORE"]

# no cache: a cached chart would show the numbers of the previous build
DATA_CACHE_CONFIG = {"CACHE_TYPE": "NullCache"}

# Superset's page loads a tracking pixel from another host; this policy forbids all other hosts
TALISMAN_CONFIG = deepcopy(config.TALISMAN_CONFIG)
TALISMAN_CONFIG["content_security_policy"] = {
    what: [one for one in allowed if one.startswith(("'", "data:", "blob:"))] if isinstance(allowed, list) else allowed
    for what, allowed in TALISMAN_CONFIG["content_security_policy"].items()
}
