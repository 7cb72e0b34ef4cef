"""``servo build`` as users call it: a folder in, files under their digests out, or all faults with file and line."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from servo import ManifestInvalid
from servo.build.build import Built, build
from servo.build.requirements import lock
from servo.manifest import canonical
from servo.v1.manifest_pb2 import Manifest

SERVO = str(Path(sys.executable).parent / "servo")

ASSETS = """
from servo import Daily, Run, LatestPartitions, asset, schedule
from shop.money import cents

@asset(namespace="raw", partitions=Daily("2026-01-01"))
def orders():
    return [cents(1)]

@asset(namespace="marts", partitions=Daily("2026-01-01"))
def revenue(orders):
    return sum(orders)

@schedule("0 6 * * *")
def nightly():
    return Run("+marts/revenue", partitions=LatestPartitions())
"""

ONE_ASSET = "\n\n@asset\ndef x():\n    return 1\n"


def project(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def shop(folder: Path) -> Path:
    return project(
        folder,
        {
            "src/shop/__init__.py": "",
            "src/shop/assets.py": ASSETS,
            "src/shop/money.py": "def cents(amount):\n    return 100 * amount\n",
            "src/shop/rates.csv": "a,b\n",
            "src/shop/__pycache__/x.pyc": "x",
            "src/shop/test_assets.py": "import servo\nraise RuntimeError('tests are not packaged')\n",
            "src/.env": "SECRET=1\n",
            "src/one-off.py": "import servo\nraise RuntimeError('this file name cannot be imported')\n",
            "requirements.txt": "# needed\nPolars == 1.2.3\nduckdb==1.0 --hash=sha256:aa \\\n  --hash=sha256:bb\n",
        },
    )


def servo(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SERVO, *map(str, arguments)], capture_output=True, text=True, check=False)


def test_a_project_becomes_files_under_their_digests(tmp_path: Path) -> None:
    answer = servo("build", shop(tmp_path), "--json", "--code-version", "c0ffee")
    assert answer.returncode == 0, answer.stderr
    summary = json.loads(answer.stdout)
    folder = tmp_path / ".servo/build"
    assert json.loads((folder / "build.json").read_text()) == summary
    assert (summary["assets"], summary["schedules"], summary["sensors"]) == (2, 1, 0)
    for kind, suffix in (("manifest", "json"), ("archive", "zip"), ("requirements", "txt")):
        content = (folder / f"{summary[kind]}.{suffix}").read_bytes()
        assert hashlib.sha256(content).hexdigest() == summary[kind]
    with zipfile.ZipFile(folder / f"{summary['archive']}.zip") as zipped:
        assert zipped.namelist() == [
            "one-off.py",
            "requirements.lock",
            "shop/__init__.py",
            "shop/assets.py",
            "shop/money.py",
            "shop/rates.csv",
        ]
        expected = "duckdb==1.0 --hash=sha256:aa --hash=sha256:bb\nPolars == 1.2.3\n"
        assert zipped.read("requirements.lock").decode() == expected
    manifest = json.loads((folder / f"{summary['manifest']}.json").read_text())
    assert manifest["artifact"]["digest"] == summary["archive"]
    assert manifest["assets"][0]["code"] == {"entry_point": {"module": "shop.assets", "function": "revenue"}}


def test_definitions_without_effect_are_reported(tmp_path: Path) -> None:
    folder = shop(tmp_path)
    (warning,) = json.loads(servo("build", folder, "--json").stdout)["warnings"]
    assert warning["field"] == "schedules[0]"
    assert warning["description"].startswith("1 schedule: schedules are not served yet")
    assert f"  ! schedules[0]  {warning['description']}" in servo("build", folder).stdout.splitlines()


NOISE = """
import subprocess, sys
print("a word of the module")
sys.stdout.write("and one more\\n")
sys.__stdout__.write("one of the stream itself\\n")
subprocess.run(["echo", "one of a program"])
"""


def test_output_of_modules_goes_to_stderr(tmp_path: Path) -> None:
    code = f"from servo import asset\n{NOISE}\n@asset\ndef x():\n    return 1\n"
    answer = servo("build", project(tmp_path, {"things.py": code}), "--json")
    assert json.loads(answer.stdout)["assets"] == 1
    printed = {"a word of the module", "and one more", "one of the stream itself", "one of a program"}
    assert set(answer.stderr.splitlines()) == printed


def test_build_works_without_stdout_and_stderr(tmp_path: Path) -> None:
    project(tmp_path, {"things.py": f"from servo import asset{ONE_ASSET}"})
    closed = subprocess.run(f"{SERVO} build {tmp_path} >&-", shell=True, check=False, capture_output=True, text=True)
    assert closed.returncode == 0, closed.stderr


def test_digests_do_not_depend_on_the_folder(tmp_path: Path) -> None:
    one = servo("build", shop(tmp_path / "one"), "--json")
    other = servo("build", shop(tmp_path / "other"), "--json", "--out", tmp_path / "out")
    assert one.stdout == other.stdout
    assert (tmp_path / "out/build.json").exists()


def test_all_faults_are_reported_with_file_and_line_and_nothing_is_written(tmp_path: Path) -> None:
    broken = project(
        tmp_path,
        {
            "requirements.txt": "polars>=1\n\nduckdb==1.0\n",
            "a.py": "from servo import asset\n\n@asset\ndef x(y):\n    return y\n",
            "b.py": "import servo\n\nservo.assset\n",
            "c.py": "from servo import asset\ndef (:\n",
            "d.py": "from functools import partial\nfrom servo import asset\nz = asset(name='z')(partial(print, 1))\n",
            "e.py": "import sys\nimport servo\nsys.exit(3)\n",
            "f.py": "from servo import asset\ndef io():\n    class Io:\n        store = load = print\n    return Io\n"
            "\n@asset(io=io())\ndef stored():\n    return 1\n\n@asset(io='ghost.Io')\ndef unstored():\n    return 1\n",
            "g.py": "from servo import asset, source\nevents = source('events')\n"
            "@asset\ndef clean(events):\n    return 1\n\n@asset\ndef after(clean):\n    return 1\n",
        },
    )
    answer = servo("build", broken)
    assert answer.returncode == 2
    lines = answer.stderr.splitlines()
    for place, part in [
        ("requirements.txt:1", "polars>=1: is not locked"),
        ("b.py:3", "cannot be imported: AttributeError"),
        ("c.py:2", "cannot be imported: SyntaxError"),
        ("a.py:3", "the parameter `y` names no asset"),
        ("d.py:3", "d: cannot be imported: @asset takes a function, and this is a partial"),
        ("e.py:3", "it ends the program (exit code 3); do that only if __name__"),
        ("f.py:7", "io `f.io.<locals>.Io` cannot be imported"),
        ("f.py:11", "io `ghost.Io` cannot be imported: No module named 'ghost'"),
        ("g.py:3", "the parameter `events` reads the source `default/events`, which Servo does not store; give"),
    ]:
        assert any(place in line and part in line for line in lines), (place, answer.stderr)
    assert len(lines) == 9
    assert not (tmp_path / ".servo").exists()


@pytest.mark.parametrize(
    ("code", "place", "subject"),
    [
        (
            "def make(n):\n    @asset(name=n)\n    def x():\n        return n\n    return x\nall = [make('a')]",
            3,
            "default/a",
        ),
        ("class Shop:\n    @asset\n    def a(self):\n        return 1", 3, "default/a"),
        ("@asset\ndef a():\n    return 1\n@asset(name='b')\ndef a():\n    return 2", 2, "default/a"),
        ("@asset\ndef a():\n    return 1\na = a.function", 2, "default/a"),
        ("ticks = [Schedule('nightly', '0 6 * * *', Run('*'))]", 2, "nightly"),
        ("polls = [sensor(name='files')(print)]", 2, "files"),
        ("looks = [check('default/fine')(lambda fine: True)]", 2, "<lambda>"),
    ],
)
def test_definitions_without_a_module_level_name_are_faults(
    tmp_path: Path, code: str, place: int, subject: str
) -> None:
    fine = "@asset\ndef fine():\n    return 1\n"
    head = "from servo import Run, Schedule, asset, check, sensor\n"
    answer = servo("build", project(tmp_path, {"things.py": f"{head}{code}\n", "fine.py": f"{head}{fine}"}))
    assert answer.returncode == 2
    assert f"/things.py:{place}: {subject}: it has no module-level name" in answer.stderr


def test_definitions_made_by_loops_and_own_decorators_are_found(tmp_path: Path) -> None:
    """Definitions made in a loop, or with a decorator from a module of the project."""
    files = {
        "common.py": "from servo import asset, check\n",
        "made.py": "from common import asset\nimport other\n@asset\ndef a():\n    return 1\n",
        "loop.py": "from servo import asset\nimport made\nfor n in 'xy':\n"
        "    globals()[n] = asset(name=n)(lambda n=n: n)\ndel n\n",
        "other.py": "from common import asset\n@asset\ndef b(a):\n    return 1\n",
    }
    assert build(project(tmp_path, files)).summary()["assets"] == 4


def test_definitions_in_unimportable_files_are_faults(tmp_path: Path) -> None:
    script = "import servo\n\n@servo.asset(name='y')\ndef later():\n    return 1\n"
    files = {
        "fine.py": f"from servo import asset{ONE_ASSET}",
        "old-stuff.py": script,
        "2x.py": "import servo\ndef (:\n",
    }
    answer = servo("build", project(tmp_path, files))
    assert answer.returncode == 2
    assert answer.stderr.endswith(
        "/old-stuff.py:4: later: is in a file that cannot be imported; name the file and its folders with letters, "
        "digits and _\n"
    )


@pytest.mark.parametrize(
    ("name", "content", "part"),
    [
        ("servo.toml", b"[project]\n# \xe9\n", "servo.toml: 'utf-8' codec can't decode"),
        ("servo.toml", b"[projct]\nsource = 'x'\n", "servo.toml: `projct` is not known here; write a table [project]"),
        ("servo.toml", b"project = 5\n", "servo.toml: `project` is not known here; write a table [project]"),
        ("requirements.txt", b"polars==1.0 # \xe9\n", "requirements.txt: is not UTF-8 text"),
        ("requirements.txt/x", b"", "requirements.txt cannot be read: Is a directory"),
        (
            "nul.py",
            b"import servo\0",
            "nul.py:1: nul: cannot be imported: SyntaxError: source code string cannot contain",
        ),
    ],
)
def test_unreadable_files_are_faults(tmp_path: Path, name: str, content: bytes, part: str) -> None:
    project(tmp_path, {"fine.py": f"from servo import asset{ONE_ASSET}"})
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content)
    answer = servo("build", tmp_path)
    assert (answer.returncode, part in answer.stderr) == (2, True), answer.stderr


# The argument, the definition that reports it (module or asset), and the message.
WRONG = [
    (
        "checks=[row_count(at_least=1).on(severity='fatal')]",
        "a0",
        'severity is \'fatal\'; write "info" or "warning" or',
    ),
    ("checks=[row_count(at_least=1).on(phase='before')]", "a1", 'phase is \'before\'; write "pre" or "post"'),
    ("checks=[row_count(at_least=-1)]", "a2", "at_least is -1; write a whole number from 0 to "),
    ("checks=[row_count(at_least=0.5)]", "a3", "at_least is 0.5; write a whole number"),
    ("retry=Retry(backoff='expo')", "a4", 'backoff is \'expo\'; write "exponential" or "linear" or "constant"'),
    ("retry='often'", "default/x5", "retry is 'often'; write how many attempts there are, or Retry(…)"),
    ("tags={'a': 1}", "default/x6", "tags['a'] is 1; write a text"),
    ("priority='high'", "default/x7", "priority is 'high'; write a whole number"),
    ("priority=2**40", "default/x8", "priority is 1099511627776; write a whole number from -2147483648 to 2147483647"),
    ("pool=None", "default/x9", "pool is None; write a text, or leave it out"),
    ("partitions='daily'", "default/x10", "partitions is 'daily'; write Daily(\"2026-01-01\"), Static("),
    ("timeout=float('inf')", "default/x11", "timeout: `inf` is not a duration: write seconds, a timedelta, or a"),
    ("checks=row_count(at_least=1)", "default/x12", "checks is one Check; write a list of checks"),
    ("secrets=Secret.env('KEY')", "default/x13", "secrets is one Secret; write a list of secrets"),
    ("quarantine='yes'", "default/x14", "quarantine is 'yes'; write True or False"),
    ("freshness='1d'", "default/x15", "freshness is '1d'; write Freshness(max_age=…)"),
    ("resources='big'", "default/x16", "resources is 'big'; write Resources(cpu=…, memory=…)"),
    ("config='x'", "default/x17", "config is 'x'; write a mapping, or leave it out"),
    # An exception that no check foresees.
    ("automation=Cron(5)", "default/x18", "cannot be written down (TypeError: "),
    ("freshness=Freshness(zone=5)", "default/x19", "zone is 5; write a text"),
    ("partition=1", "a20", "@asset has no option `partition`; did you mean `partitions`?"),
    ("'raw'", "a21", '@asset takes a function, and this is a text; give options by their names: @asset(name="…")'),
    ("deps={1: 'a'}", "default/x22", "deps names 1; write the name of a parameter"),
    ("partitions=Daily('2026-01-01', zone=5)", "default/x23", "zone is 5; write a text"),
    (
        "retry_on='transiant'",
        "default/x24",
        "retry_on holds `transiant`, which is not a category; did you mean `transient`",
    ),
    ("retry_on=[int]", "default/x25", "retry_on holds the class int, which is not an exception"),
    ("deps={'x': In('default/fine', optional='no')}", "default/x26", "deps names `x`, which is not a parameter"),
]


def test_wrong_arguments_are_reported_with_file_and_line(tmp_path: Path) -> None:
    names = "Daily, Freshness, In, Retry, Run, Secret, asset, schedule"
    head = f"from servo import {names}\nfrom servo.define.checks import row_count\n"
    head += "from servo.define.conditions import Cron\n"
    files = {
        f"a{number}.py": f"{head}@asset({given})\ndef x{number}():\n    return 1\n"
        for number, (given, _, _) in enumerate(WRONG)
    }
    nightly = "@schedule('0 6 * * *', {given})\ndef nightly():\n    return Run('*')\n"
    files["gap.py"] = head + nightly.format(given="gap='shft'")
    files["overlap.py"] = head + nightly.format(given="overlap='twice'")
    files["fine.py"] = f"{head}@asset(retry_on=ConnectionError)\ndef fine():\n    return 1\n"
    # Two faults in one module; a reader of a faulty asset has no fault itself.
    files["both.py"] = (
        f"{head}@asset\ndef one(x7, ghost):\n    return 1\n\n@asset(pool=5)\ndef two(x8):\n    return 1\n"
    )
    answer = servo("build", project(tmp_path, files))
    assert answer.returncode == 2, answer.stderr
    lines = answer.stderr.removeprefix("servo: ").splitlines()
    for place, subject, part in [
        *((f"a{number}.py:4", subject, part) for number, (_, subject, part) in enumerate(WRONG)),
        ("gap.py:4", "gap", 'gap is \'shft\'; write "shift" or "skip"'),
        ("overlap.py:4", "overlap", 'overlap is \'twice\'; write "first" or "last" or "both"'),
        ("both.py:4", "default/one", "the parameter `ghost` names no asset"),
        ("both.py:8", "default/two", "pool is 5; write a text"),
    ]:
        matching = [line for line in lines if f"/{place}: {subject}: " in line]
        assert [part in line for line in matching] == [True], (place, part, answer.stderr)
    assert len(lines) == len(WRONG) + 4, answer.stderr


def entry_points(built: Built) -> dict[str, tuple[str, str]]:
    places = {each.key: each.code.entry_point for each in built.manifest.assets}
    return {key: (place.module, place.function) for key, place in places.items()}


def test_an_asset_is_found_under_the_name_it_was_given(tmp_path: Path) -> None:
    code = (
        "from servo import asset\nfrom lib import plain\nown = asset(name='a')(plain)\nb = asset(name='b')(lambda: 1)\n"
    )
    project(tmp_path, {"lib.py": "def plain():\n    return 1\n", "things.py": code})
    assert entry_points(build(tmp_path)) == {"default/a": ("things", "own"), "default/b": ("things", "b")}


def test_every_build_imports_modules_again(tmp_path: Path) -> None:
    """Modules that the process imported before, of this or another project with the same names, do not count."""
    code = "from servo import asset\nimport part\n\n@asset(name=part.NAME)\ndef x():\n    return 1\n"
    for name in ("one", "other"):
        project(tmp_path / name, {"things.py": code, "part.py": f"NAME = '{name}'\n"})
    import_before = set(sys.modules)
    assert list(entry_points(build(tmp_path / "one"))) == ["default/one"]
    assert list(entry_points(build(tmp_path / "other"))) == ["default/other"]
    project(tmp_path / "one", {"part.py": "NAME = 'two'\n"})
    assert list(entry_points(build(tmp_path / "one"))) == ["default/two"]
    assert not {"things", "part"} & (set(sys.modules) - import_before)


@pytest.mark.parametrize(
    ("line", "module", "reason"),
    [
        ("import shop.build", "shop.build", "shop/build is left out like everything called build; give it another"),
        ("from .build import deep", "shop.build", "shop/build is left out like everything called build"),
        ("from shop import test_data", "shop.test_data", "shop/test_data.py is left out like everything called test_*"),
        ("import os, common.things", "common", "common is a link, and links are not followed; put what it points to"),
        ("import linked", "linked", "linked.py is a link, and links are not followed"),
        ("import old.a", "old.a", "old/a.py is left out by 'old/*' in project.exclude of servo.toml; take that away"),
    ],
)
def test_imported_modules_must_be_packaged(tmp_path: Path, line: str, module: str, reason: str) -> None:
    project(tmp_path, {"elsewhere/__init__.py": "", "elsewhere/things.py": ""})
    folder = project(
        tmp_path / "project",
        {
            "servo.toml": "[project]\nexclude = ['old/*']\n",
            "shop/__init__.py": "",
            "shop/assets.py": f"from servo import asset\n{line}{ONE_ASSET}",
            "shop/build/__init__.py": "from . import deep\n",
            "shop/build/deep.py": "",
            "shop/test_data.py": "",
            "old/a.py": "",
        },
    )
    (folder / "common").symlink_to(tmp_path / "elsewhere")
    (folder / "linked.py").symlink_to(tmp_path / "elsewhere/things.py")
    modules = set(sys.modules)
    with pytest.raises(ManifestInvalid) as raised:
        build(folder)
    (fault,) = raised.value.faults
    assert (fault.subject, fault.location) == (module, (str(folder / "shop/assets.py"), 2))
    assert fault.sentence.startswith(f"is imported but not packaged: {reason}")
    assert set(sys.modules) == modules


def test_unpackaged_modules_are_reported_with_other_faults(tmp_path: Path) -> None:
    broken = "from servo import asset\nfrom tests.data import ROWS\n\n@asset\ndef x(y):\n    return y\n"
    answer = servo(
        "build", project(tmp_path, {"a.py": broken, "b.py": "import servo, ghost\n", "tests/data.py": "ROWS = 1"})
    )
    assert answer.returncode == 2
    lines = answer.stderr.splitlines()
    for place, part in [
        ("a.py:2", "tests.data: is imported but not packaged: tests is left out like everything called tests; give"),
        ("a.py:4", "the parameter `y` names no asset"),
        ("b.py:1", "b: cannot be imported: ModuleNotFoundError: No module named 'ghost'"),
    ]:
        assert any(place in line and part in line for line in lines), (place, answer.stderr)
    assert len(lines) == 3
    assert not (tmp_path / ".servo").exists()


def test_installed_packages_inside_the_project_need_no_packaging(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = tmp_path / ".venv/lib/site-packages"
    project(installed, {"installed_thing.py": ""})
    monkeypatch.setattr(sys, "path", [*sys.path, str(installed)])
    project(tmp_path, {"a.py": f"from servo import asset\nimport installed_thing{ONE_ASSET}"})
    assert list(entry_points(build(tmp_path))) == ["default/x"]


@pytest.mark.parametrize(
    "line",
    [
        "import os, servo",
        "import os as system, servo as s",
        "import os, \\\n    servo",
        "import os; import servo",
        "if True: import servo",
        "import servo.define.asset",
        "from servo.define.asset import asset",
    ],
)
def test_every_module_that_imports_servo_is_scanned(tmp_path: Path, line: str) -> None:
    code = f"{line}\nfrom lib import defined\nx = defined()\n"
    lib = "def defined():\n    from servo import asset\n    return asset(name='x')(lambda: 1)\n"
    words = '"""\nimport servo\n"""\n# import servo\nraise RuntimeError(\'it only speaks of servo\')\n'
    near = "from .servo import y\nraise RuntimeError('this is another servo')\n"
    project(
        tmp_path, {"things.py": code, "lib.py": lib, "words.py": words, "near/a.py": near, "near/servo.py": "y = 1"}
    )
    assert entry_points(build(tmp_path)) == {"default/x": ("things", "x")}


def test_source_io_must_be_importable_by_a_worker(tmp_path: Path) -> None:
    load = "class Feed:\n    def load(self, partition):\n        return 1\n"
    sources = f"from servo import source\n\n{load}\nfeed = source('feed', io=Feed)\n"
    reader = "from servo import asset\n{more}\n@asset\ndef clean(feed):\n    return feed\n"
    found = project(tmp_path / "found", {"a.py": sources, "b.py": reader.format(more="from a import feed")})
    assert {each.key: each.io for each in build(found).manifest.assets}["default/feed"] == "a.Feed"
    untracked = project(tmp_path / "lost", {"a.py": sources, "b.py": reader.format(more="")})
    with pytest.raises(ManifestInvalid, match=r"b.py:3: default/clean: .* worker looks for in `b`; import it there"):
        build(untracked)


@pytest.mark.parametrize(
    ("files", "part"),
    [
        ({}, "there is no asset in this project"),
        ({"servo.toml": "[project]\nmodule = 'x'\n"}, "project.module is not known; did you mean `modules`?"),
        ({"servo.toml": "[project]\nmodules = 'x'\n"}, "project.modules is a list of texts"),
        ({"servo.toml": "[project\n"}, "servo.toml: "),
        ({"servo.toml": "[project]\nsource = 'lib'\n"}, "project.source"),
        ({"servo.toml": "[project]\nmodules = ['ghost']\n"}, "ghost: cannot be imported: ModuleNotFoundError"),
    ],
)
def test_wrong_settings_name_the_remedy(tmp_path: Path, files: dict[str, str], part: str) -> None:
    answer = servo("build", project(tmp_path, files))
    assert answer.returncode == 2
    assert part in answer.stderr
    assert "Traceback" not in answer.stderr


def test_settings_select_modules_and_exclude_files(tmp_path: Path) -> None:
    project(tmp_path, {"servo.toml": "[project]\nsource = 'lib'\nmodules = ['one']\nexclude = ['*.csv', 'old/*']\n"})
    project(tmp_path / "lib", {"one.py": "from servo import asset\n\n@asset\ndef x():\n    return 1\n"})
    project(tmp_path / "lib", {"two.py": "import servo\nraise RuntimeError\n", "a.csv": "", "old/b.txt": ""})
    summary = json.loads(servo("build", tmp_path, "--json").stdout)
    with zipfile.ZipFile(tmp_path / f".servo/build/{summary['archive']}.zip") as zipped:
        assert zipped.namelist() == ["one.py", "requirements.lock", "two.py"]


@pytest.mark.parametrize(
    "line", ["polars", "polars>=1", "-r other.txt", "-e .", "git+https://x/y", "a==1.*", "a==1 b==2"]
)
def test_unlocked_requirements_are_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "requirements.txt"
    file.write_text(f"fine==1\n{line}\n")
    locked, faults = lock(file)
    assert [(fault.subject, fault.location.line if fault.location else 0) for fault in faults] == [(line, 2)]
    assert locked == "fine==1\n"


def test_canonical_json_round_trips(tmp_path: Path) -> None:
    from google.protobuf.json_format import Parse

    summary = json.loads(servo("build", shop(tmp_path), "--json").stdout)
    read = Parse((tmp_path / f".servo/build/{summary['manifest']}.json").read_text(), Manifest())
    assert canonical.digest(read) == summary["manifest"]
