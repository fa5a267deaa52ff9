"""Sources and licenses of the published traces."""

from __future__ import annotations

from typing import NamedTuple


class License(NamedTuple):
    """License as package formats name it."""

    name: str
    """SPDX identifier."""
    title: str
    url: str


class Trace(NamedTuple):
    """Published trace."""

    title: str
    url: str
    license: License
    doi: str = ""
    """Digital object identifier; empty if none is known."""


CC_BY = License(
    "CC-BY-4.0", "Creative Commons Attribution 4.0 International", "https://creativecommons.org/licenses/by/4.0/"
)
MIT = License("MIT", "MIT License", "https://opensource.org/license/mit")

TRACES = {
    "zhejiang": Trace(
        "Zhejiang Lab cluster traces", "https://github.com/zhejianglab/Zhejiang-Lab-Cluster-Traces", CC_BY
    ),
    "acme": Trace("AcmeTrace", "https://github.com/InternLM/AcmeTrace", CC_BY),
    "itp": Trace("Traces of ITP and ElasticFlow", "https://github.com/pkusys/ElasticFlow", MIT),
}
"""Traces by the first part of their formats' names: `zhejiang` of `zhejiang.port_counters`."""
