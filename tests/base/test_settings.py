"""What a command was told: flags win over variables, these over warehouse.toml, that over defaults."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warehouse.base.errors import SettingsError
from warehouse.base.settings import DEFAULT_TARGET, Settings, memory_bytes, settle


def config(folder: Path, text: str) -> Path:
    (folder / "warehouse.toml").write_text(text, encoding="utf-8")
    return folder


def test_defaults(tmp_path: Path) -> None:
    found = settle({}, folder=tmp_path)
    assert found == Settings((), DEFAULT_TARGET, None, found.threads, "3GB", None)
    assert 1 <= found.threads <= (os.cpu_count() or 1)
    assert found.memory_bytes == memory_bytes("3GB") >= 10**9
    config(tmp_path, "")
    assert settle({}, folder=tmp_path).project is None
    (tmp_path / "models").mkdir()
    assert settle({}, folder=tmp_path).project == tmp_path, "a folder with a file and models is a project"


def test_a_flag_wins_over_a_variable_and_that_over_the_file_to_which_its_paths_are_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config(tmp_path, 'data = ["a", "/b"]\ntarget = "t"\nproject = "p"\nthreads = 3\nmemory = "3GB"\ncluster = "c"\n')
    of_file = (tmp_path / "a", Path("/b"))
    assert settle({}, folder=tmp_path) == Settings(of_file, tmp_path / "t", tmp_path / "p", 3, "3GB", "c")
    monkeypatch.setenv("WAREHOUSE_TARGET", "of variable")
    monkeypatch.setenv("WAREHOUSE_THREADS", "2")
    monkeypatch.setenv("WAREHOUSE_CLUSTER", "")  # set to nothing is not set
    found = settle({"target": "of flag", "project": "q", "memory": None, "data": []}, folder=tmp_path)
    assert found == Settings(of_file, Path("of flag"), Path("q"), 2, "3GB", "c")
    monkeypatch.setenv("WAREHOUSE_DATA", os.pathsep.join(["x", "", "y"]))
    found = settle({}, folder=tmp_path)
    assert (found.data, found.target) == ((Path("x"), Path("y")), Path("of variable"))


def test_sizes() -> None:
    sizes = {"4GB": 4 * 10**9, "512MiB": 2**29, " 1.5 GiB ": 3 * 2**29, "1TB": 10**12, "100KB": 100_000}
    assert [memory_bytes(text) for text in sizes] == list(sizes.values())
    for text in ("4", "GB", "4gb", "4G", "-4GB", "4GB4", "4 000MB"):
        with pytest.raises(SettingsError) as raised:
            settle({"memory": text})
        assert str(raised.value) == f"--memory is {text!r}, not a size\nfor instance 4GB or 512MiB"


@pytest.mark.parametrize("source", ["--threads", "WAREHOUSE_THREADS", "`threads` in warehouse.toml"])
def test_what_is_no_number_of_threads_is_an_error_that_names_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    for value in ("0", "many", "1025"):
        if source == "WAREHOUSE_THREADS":
            monkeypatch.setenv(source, value)
        config(tmp_path, f"threads = '{value}'")
        with pytest.raises(SettingsError) as raised:
            settle({"threads": value} if source == "--threads" else {}, folder=tmp_path)
        assert str(raised.value) == f"{source} is {value!r}, not a number of threads between 1 and 1024"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("target = ", "{file}: not valid TOML: "),
        ("targt = 'x'", "{file}: unknown key `targt`\nnearest: target"),
        (
            "[zzz]",
            "{file}: unknown key `zzz`\nknown keys: data, target, project, threads, memory, cluster, max_rejected",
        ),
        ("target = 5", "`target` in warehouse.toml is 5, where a text is expected"),
        ("target = ''", "`target` in warehouse.toml is '', where a text is expected"),
        ("data = 5", "`data` in warehouse.toml is 5, where a folder or several are expected"),
        ("data = ['a', 5]", "`data` in warehouse.toml is [{file.parent}"),
        pytest.param("a" + ".a" * 30_000 + " = 1", "{file}: not valid TOML: nested too deeply", id="nested"),
        pytest.param("#" * 1_000_001, "{file}: larger than 1,000,000 bytes", id="long"),
    ],
)
def test_a_mistake_in_the_file_is_an_error_that_names_it(tmp_path: Path, text: str, message: str) -> None:
    config(tmp_path, text)
    with pytest.raises(SettingsError) as raised:
        settle({}, folder=tmp_path)
    expected = message.format(file=tmp_path / "warehouse.toml").replace("[/", "['/")
    assert str(raised.value).startswith(expected)
    assert raised.value.exit_status == 2
    (tmp_path / "warehouse.toml").write_bytes(b"target = 'caf\xe9'")
    with pytest.raises(SettingsError, match=r"warehouse\.toml: not valid TOML"):
        settle({}, folder=tmp_path)


@pytest.mark.parametrize("key", ["target", "project", "cluster", "memory"])
def test_an_empty_flag_is_an_error_and_not_the_default(tmp_path: Path, key: str) -> None:
    """As of `-t "$TARGET"` where the variable is not set."""
    with pytest.raises(SettingsError, match=f"--{key} is ''"):
        settle({key: ""}, folder=tmp_path)
    with pytest.raises(SettingsError, match="--data is "):
        settle({"data": ["a", ""]}, folder=tmp_path)
