"""Titles and conclusions of the report: each number is computed once more, from the rows below it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import pytest

from tests.report.conftest import Figures, values

Row = dict[str, str]


def total(rows: Iterable[Row], column: str) -> float:
    return sum(float(row[column] or 0) for row in rows)


def highest(rows: Iterable[Row], column: str) -> Row:
    return max(rows, key=lambda row: float(row[column] or -1))


def of_ports(rows: list[Row]) -> list[str]:
    fullest = highest(rows, "fuller_percent")
    percent = float(fullest["fuller_percent"])
    idle = sum(float(row["fuller_percent"]) < 0.005 for row in rows)
    return [
        f"The fullest link is {fullest['switch']} {fullest['port']} ({fullest['server']}): {percent:.1f} %",
        f"{len(rows)} ports of {len({row['switch'] for row in rows})} switches",
        f"{idle} of them moved nothing",
        f"A ✕ marks a suspect port: {sum(bool(row['suspect']) for row in rows)}.",
    ]


def of_balance(rows: list[Row]) -> list[str]:
    judged = [row for row in rows if row["judged"] == "true"]
    uneven = [row for row in judged if float(row["cov_percent"]) >= float(row["threshold_percent"])]
    even = [row for row in judged if row not in uneven]
    return [
        f"standard deviation up to {total([highest(uneven, 'cov_percent')], 'cov_percent'):.1f} %",
        f"on other leaves at most {total([highest(even, 'cov_percent')], 'cov_percent'):.1f} %",
        f"{len(uneven)} of {len(judged)} directions of the leaves ({len({row['switch'] for row in judged})})",
        *(f"{row['switch']} {row['direction']}" for row in uneven),
    ]


def of_servers(rows: list[Row]) -> list[str]:
    busiest = max(rows, key=lambda row: int(row["rx_bytes"]) + int(row["tx_bytes"]))
    rates = [f"{float(f'{int(busiest[way]) * 8 / 3600 / 1e9:.3g}'):g}" for way in ("rx_bytes", "tx_bytes")]
    return [
        f"{busiest['server']} is busiest: {rates[0]} Gb/s received, {rates[1]} Gb/s sent",
        f"of {len(rows)} servers",
    ]


def of_matrix(rows: list[Row]) -> list[str]:
    sent = [row for row in rows if row["src"] != "outside"]
    proven = [row for row in sent if int(row["bytes_high"]) - int(row["bytes_low"]) <= 0.1 * int(row["bytes_estimate"])]
    local = [row for row in sent if row["src"] == row["dst"]]
    of_sent = 100 / total(sent, "bytes_estimate")
    return [
        f"{total(local, 'bytes_estimate') * of_sent:.0f} % of the bytes stay under their leaf",
        f"prove {total(proven, 'bytes_estimate') * of_sent:.1f} % of the bytes",
    ]


def of_coverage(rows: list[Row]) -> list[str]:
    loaded = [row for row in rows if row["loaded"] == "true"]
    most = highest(loaded, "gap_bytes_percent")
    return [
        f"{len(loaded)} of {len(rows)} leaves loaded",
        f"up to {total([highest(loaded, 'opening_gap_seconds')], 'opening_gap_seconds'):.0f} s without a poll",
        f"the largest share at {most['switch']}: {float(most['gap_bytes_percent']):g} %",
        f"{total(loaded, 'missing_port_polls'):.0f} polls of single ports are missing",
    ]


def of_minutes(rows: list[Row]) -> list[str]:
    rates = [(max(float(row["highest_in_gbps"] or 0), float(row["highest_out_gbps"] or 0)), row) for row in rows]
    rate, row = max(rates, key=lambda one: one[0])
    return [f"{row['switch']} has the busiest polled minute: {rate:g} Gb/s"]


def of_iterations(rows: list[Row]) -> list[str]:
    longest = highest(rows, "longest_seconds")
    most, median = float(longest["longest_seconds"]), float(longest["median_seconds"])
    return [
        f"one of {longest['task']}: {most:.2f} s, its median {median:g} s",
        f"{total(rows, 'iterations'):.0f} iterations of the tasks with logs ({len(rows)})",
    ]


def of_conservation(rows: list[Row]) -> list[str]:
    apart = max(abs(int(row["in_bytes"]) / int(row["out_bytes"]) - 1) * 1e6 for row in rows if row["kind"] == "leaf")
    return [f"agree within {apart:.0f} ppm", f"the switches ({len(rows)})"]


def of_claims(rows: list[Row]) -> list[str]:
    count = Counter(row["verdict"] for row in rows)
    tested = count["reproduced"] + count["differs"] + count["contradicted"]
    return [
        f"{count['reproduced']} of {tested} published figures are reproduced",
        f"{count['differs']} differ, {count['contradicted']} are contradicted",
    ]


def of_durations(rows: list[Row]) -> list[str]:
    longest = highest(rows, "median_seconds")
    hours = float(longest["median_seconds"]) / 3600
    return [
        f"jobs of {longest['trace']} {longest['cluster']} run longer than {hours:.1f} h",
        f"{total(rows, 'jobs'):,.0f} GPU jobs, a row for each cluster ({len(rows)})",
    ]


def of_files(rows: list[Row]) -> list[str]:
    read = [row for row in rows if row["status"] in ("read", "partial")]
    return [
        f"{total(read, 'files'):.0f} files read",
        f"of {len({row['cluster'] for row in read if row['cluster']})} clusters",
        f"{total(read, 'bytes') / 1e6:.1f} MB",
        f"skipped or ignored: {total(rows, 'files') - total(read, 'files'):.0f}",
    ]


SAID: dict[str, Callable[[list[Row]], list[str]]] = {
    "ports": of_ports,
    "suspects": lambda rows: [f"Suspect links: {len(rows)},"],
    "balance": of_balance,
    "servers": of_servers,
    "matrix": of_matrix,
    "coverage": of_coverage,
    "minutes": of_minutes,
    "task-iterations": of_iterations,
    "tasks": lambda rows: [f"Training tasks with logs: {len(rows)}"],
    "conservation": of_conservation,
    "claims": of_claims,
    "job-durations": of_durations,
    "files": of_files,
}


@pytest.mark.parametrize("name", SAID)
def test_a_sentence_has_the_numbers_of_its_rows(figures: Figures, name: str) -> None:
    hours = [one for one in figures if one == name or one.startswith(f"{name}-20")]
    for one in hours:
        text = " ".join(f"{figures[one]['title']} {figures[one]['says']}".split())
        missing = [said for said in SAID[name](values(figures[one])) if said not in text]
        assert missing == [], (one, text)
    assert hours
