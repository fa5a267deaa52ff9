"""python -m bi.superset.load FILE URL: load a bundle into a running Superset, replacing an earlier one.

Superset's own dashboard import keeps existing charts and datasets. This script imports datasets, charts and
dashboard one after another, each with overwrite. Existing connections stay, with the password entered by hand.

SUPERSET_PASSWORD=... python -m bi.superset.load dashboard.zip http://127.0.0.1:8088 --username admin
"""

from __future__ import annotations

import argparse
import http.cookiejar
import json
import os
import sys
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import Any
from uuid import uuid4

from bi.superset.bundle import metadata, unzipped, zipped

_STEPS = {
    "dataset": ("SqlaTable", ("databases/", "datasets/")),
    "chart": ("Slice", ("databases/", "datasets/", "charts/")),
    "dashboard": ("Dashboard", ("databases/", "datasets/", "charts/", "dashboards/")),
}
"""Import order: kind -> type in the bundle's metadata, and folders."""


class Superset:
    """A session with a running Superset.

    Raises
    ------
    ValueError
        The URL is not http or https.
    urllib.error.URLError
        The server does not answer or rejects the request.
    """

    def __init__(self, url: str, username: str, password: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"not a URL of Superset: {url}")
        self._base = url.rstrip("/") + "/api/v1/"
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(cookies)
        login = {"username": username, "password": password, "provider": "db"}
        token = self.ask("security/login", json.dumps(login).encode(), {"Content-Type": "application/json"})
        self._headers = {"Authorization": f"Bearer {token['access_token']}"}
        self._headers["X-CSRFToken"] = self.ask("security/csrf_token/", None, self._headers)["result"]
        self._headers["Referer"] = url

    def ask(self, where: str, body: bytes | None, headers: dict[str, str]) -> Any:
        """Return the answer of the API."""
        request = urllib.request.Request(self._base + where, body, headers)  # noqa: S310 - http, see above
        with self._opener.open(request, timeout=300) as answer:
            return json.load(answer)

    def load(self, content: bytes) -> None:
        """Import a bundle, overwriting datasets, charts and dashboard with the same uuids."""
        files = unzipped(content)
        for what, (kind, folders) in _STEPS.items():
            part = {name: one for name, one in files.items() if name.startswith(folders)}
            self._upload(f"{what}/import/", zipped(part | {"metadata.yaml": metadata(kind)}))

    def _upload(self, where: str, content: bytes) -> None:
        mark = uuid4().hex
        lines = [
            f'--{mark}\r\nContent-Disposition: form-data; name="overwrite"\r\n\r\ntrue\r\n'.encode(),
            f'--{mark}\r\nContent-Disposition: form-data; name="formData"; filename="bundle.zip"\r\n'.encode(),
            b"Content-Type: application/zip\r\n\r\n",
            content,
            f"\r\n--{mark}--\r\n".encode(),
        ]
        headers = {"Content-Type": f"multipart/form-data; boundary={mark}"}
        self.ask(where, b"".join(lines), self._headers | headers)


def main() -> int:
    """Load the bundle, or print one sentence with the reason for the failure."""
    options = argparse.ArgumentParser(
        prog="python -m bi.superset.load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("file", type=Path, help="zip file written by `python -m bi.superset`")
    options.add_argument("url", help="URL of Superset, such as http://127.0.0.1:8088")
    options.add_argument("--username", default="admin", help="user who may write datasets (default admin)")
    given = options.parse_args()
    if "SUPERSET_PASSWORD" not in os.environ:
        print("error: no password: set SUPERSET_PASSWORD", file=sys.stderr)
        return 2
    try:
        content = given.file.read_bytes()
        Superset(given.url, given.username, os.environ["SUPERSET_PASSWORD"]).load(content)
    except urllib.error.HTTPError as error:
        answer = error.read().decode(errors="replace")[:500]
        print(f"error: {given.url} answered {error.code}: {answer}", file=sys.stderr)
        return 2
    except zipfile.BadZipFile:
        print(f"error: {given.file} is not a zip file", file=sys.stderr)
        return 2
    except (OSError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"Loaded  {given.file} into {given.url}: datasets, charts and dashboard")
    return 0


if __name__ == "__main__":
    sys.exit(main())
