"""The base installation, which has neither DuckDB nor pyarrow, runs plain values and names the command for tables."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from servo.worker import frames

INSTALL = "pip install 'servo-orchestrator[tables]'"
# Hides the packages of the extra from imports and from `find_spec`, in this process and in its children.
BLOCK = """
import importlib.abc, sys

class Blocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("duckdb", "pyarrow"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
import importlib.util
_find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: (
    None if name.partition(".")[0] in ("duckdb", "pyarrow") else _find_spec(name, package)
)
"""


def run_without_tables(folder: Path, code: str) -> Any:
    """Runs the code where the packages are missing and returns the JSON that it prints."""
    (folder / "assets.py").write_text(dedent(code))
    words = [sys.executable, "-c", f"{BLOCK}\nsys.path.insert(0, {str(folder)!r})\nimport assets"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_plain_values_are_materialized_without_the_extra(tmp_path: Path) -> None:
    answer = run_without_tables(
        tmp_path,
        """
        import json
        from servo import asset, checks, materialize

        @asset(checks=[checks.row_count(at_least=1), checks.not_null("a"), checks.unique("a")])
        def rows():
            return [{"a": 1}, {"a": 2}]

        @asset
        def total(rows):
            return sum(row["a"] for row in rows)

        print(json.dumps(materialize([rows, total]).value(total)))
        """,
    )
    assert answer == 3


@pytest.mark.parametrize(
    ("asset", "reason"),
    [
        ("@asset(checks=[checks.sql('SELECT 1')])\ndef table(): fail()", "the check `sql` needs pyarrow"),
        ("@asset(checks=[checks.schema({'a': 'int64'})])\ndef table(): fail()", "the check `schema` needs pyarrow"),
        ("@asset(io='parquet')\ndef table(): fail()", "storing `default/table` as Parquet needs pyarrow"),
        (
            "from polars import DataFrame\n@asset\ndef table() -> DataFrame: fail()",
            "storing `default/table` as Parquet needs pyarrow",
        ),
        (
            "import polars\n@asset\ndef table(): return polars.DataFrame({'a': [1]})",
            "storing a table as Parquet needs pyarrow",
        ),
        ("@asset\ndef table():\n    import pyarrow", "No module named 'pyarrow'"),
    ],
)
def test_tables_fail_with_the_command_that_installs_them(tmp_path: Path, asset: str, reason: str) -> None:
    message = run_without_tables(
        tmp_path,
        f"""
import json
from servo import asset, checks, materialize

def fail():
    raise AssertionError("user code ran before the packages were checked")

{asset}

(task,) = materialize([table], raise_on_error=False).tasks
print(json.dumps(task.error.message))
""",
    )
    assert message.startswith(reason)
    assert INSTALL in message


@pytest.mark.parametrize(("function", "outcome"), [("plain", "succeeded"), ("table", "failed")], ids=["plain", "table"])
def test_a_workers_child_needs_the_extra_for_tables_only(tmp_path: Path, function: str, outcome: str) -> None:
    job = {
        "module": "code_of_user",
        "function": function,
        "asset_key": f"default/{function}",
        "partition": "",
        "run_id": "run",
        "attempt_id": "attempt",
        "attempt": 1,
        "idempotency_key": "key",
        "fencing_token": 1,
        "map_index": None,
        "item_json": "",
        "config": {},
        "secrets": {},
        "trace": {},
        "inputs": [],
        "checks": [],
        "quarantine": False,
        "previous": "",
        "output_uri": f"file://{tmp_path}/out/",
    }
    (tmp_path / "code_of_user.py").write_text(
        "from servo import asset\n"
        "@asset\ndef plain(): return [1]\n"
        "@asset(io='parquet')\ndef table(): return [{'a': 1}]\n"
    )
    answer = run_without_tables(
        tmp_path,
        f"""
import json
from servo.worker.child_main import run
print(json.dumps(run(json.loads({json.dumps(json.dumps(job))}))))
""",
    )
    assert answer["outcome"] == outcome, answer
    if outcome == "failed":
        assert (answer["error"]["category"], INSTALL in answer["error"]["message"]) == ("CONFIGURATION", True)
    assert frames.pack(answer)


def test_the_base_installation_requires_no_tables() -> None:
    needed = [each for each in requires("servo-orchestrator") or () if "extra ==" not in each]
    assert needed
    assert not [each for each in needed if each.startswith(("duckdb", "pyarrow", "pandas", "polars", "google-auth"))]
