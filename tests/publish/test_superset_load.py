"""Loading a bundle: requests to Superset's API, and messages of failures."""

from __future__ import annotations

import io
import json
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from bi.superset import load
from bi.superset.bundle import metadata, zipped

FILES = {
    "metadata.yaml": metadata("Dashboard"),
    "databases/a.yaml": {"uuid": "1"},
    "datasets/a/b.yaml": {"uuid": "2"},
    "charts/c.yaml": {"uuid": "3"},
    "dashboards/d.yaml": {"uuid": "4"},
}


class Recorded(ThreadingHTTPServer):
    """A server that records its requests."""

    asked: list[tuple[str, bytes]]
    refuses: str = ""


class Handler(BaseHTTPRequestHandler):
    server: Recorded

    def do_GET(self) -> None:
        self._answer({"result": "token of the form"})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked.append((self.path, body))
        if self.path == self.server.refuses:
            self._answer({"message": "no permission"}, 403)
        elif self.path.endswith("login"):
            self._answer({"access_token": "abc"})
        else:
            right = self.headers["X-CSRFToken"] == "token of the form" and self.headers["Authorization"] == "Bearer abc"
            self._answer({"message": "OK"}, 200 if right else 401)

    def _answer(self, said: object, status: int = 200) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(said).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Recorded]:
    with Recorded(("127.0.0.1", 0), Handler) as made:
        made.asked = []
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    path = tmp_path / "dashboard.zip"
    path.write_bytes(zipped(FILES))
    return path


def run(monkeypatch: pytest.MonkeyPatch, *words: str, password: str | None = "secret") -> int:
    monkeypatch.setattr("sys.argv", ["load", *words])
    monkeypatch.delenv("SUPERSET_PASSWORD", raising=False)
    if password is not None:
        monkeypatch.setenv("SUPERSET_PASSWORD", password)
    return load.main()


def test_datasets_charts_and_dashboard_are_each_overwritten(
    server: Recorded, bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(monkeypatch, str(bundle), f"http://127.0.0.1:{server.server_port}", "--username", "ann") == 0
    (login, words), *uploads = server.asked
    assert login == "/api/v1/security/login"
    assert json.loads(words)["username"] == "ann"
    kinds = {"dataset": "SqlaTable", "chart": "Slice", "dashboard": "Dashboard"}
    assert [path for path, _ in uploads] == [f"/api/v1/{kind}/import/" for kind in kinds]
    for (_, body), kind in zip(uploads, kinds.values(), strict=True):
        assert b'name="overwrite"\r\n\r\ntrue\r\n' in body
        with zipfile.ZipFile(io.BytesIO(body[body.index(b"PK") : body.rindex(b"\r\n--")])) as archive:
            assert yaml.safe_load(archive.read("bundle/metadata.yaml"))["type"] == kind
            folders = {name.split("/")[1] for name in archive.namelist()} - {"metadata.yaml"}
        assert folders == set(["databases", "datasets", "charts", "dashboards"][: 2 + list(kinds.values()).index(kind)])


def test_errors_are_one_sentence(
    server: Recorded, bundle: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"http://127.0.0.1:{server.server_port}"
    server.refuses = "/api/v1/dataset/import/"
    (bundle.parent / "no.zip").write_text("not a zip file")
    asked = {
        (str(bundle), url): f'error: {url} answered 403: {{"message": "no permission"}}\n',
        (str(bundle), "ftp://127.0.0.1"): "error: not a URL of Superset: ftp://127.0.0.1\n",
        (str(bundle), "http://127.0.0.1:1"): "refused",
        (str(bundle.parent / "none.zip"), url): "No such file",
        (str(bundle.parent / "no.zip"), url): "no.zip is not a zip file",
    }
    for words, said in asked.items():
        assert run(monkeypatch, *words) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.startswith("error: ")
        assert error.count("\n") == 1
    assert run(monkeypatch, str(bundle), url, password=None) == 2
    assert capsys.readouterr().err == "error: no password: set SUPERSET_PASSWORD\n"
