"""A policy as a package: without harness and sandbox it answers what was recorded, and making it executes nothing."""

from __future__ import annotations

import ast
import http.server
import importlib.metadata
import json
import os
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.cli import cli
from harness.data.native import load
from harness.errors import UserError
from harness.evaluation.prompts import render_read
from harness.export.policy import PIN, export_policy
from harness.outcomes import Measured, TakenIn
from harness.state.manifest import RunManifest
from harness.state.store import RunStore
from policies.contract import Read
from sandbox.bundle import make_bundle
from sandbox.runtime import LOCK
from tests.report.conftest import HOSTILE, STORABLE, make_run

MARK = "/tmp/exported-candidate-was-executed"
ASKING = """
import importlib.util, json, sys
given = json.load(sys.stdin)
sys.path += [given["folder"], given["site"]]
assert not [name for name in ("harness", "sandbox", "policies", "click", "pydantic") if importlib.util.find_spec(name)]
package = __import__(given["package"])
windows = {path: package.read_windows(path) for path in given["windows"].values()}
for q in given["questions"]:
    query = package.Query("x", q["type"], q["question"], q["choices"], q["time"])
    found = package.answer(windows[given["windows"][q["video"]]], query)
    print(json.dumps([q["id"], found.choice, found.route, list(found.evidence)]))
"""


@pytest.fixture(scope="module")
def exported(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("package") / "deep" / "out"
    done = CliRunner().invoke(cli, ["export", "policy", "0", "--run", str(finished), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "without the sandbox" in done.output and "not language-model results" in done.output
    return out


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the pinned packages and nothing else."""
    folder = tmp_path_factory.mktemp("site")
    for pin in PIN.findall(LOCK.read_text()):
        found = importlib.metadata.distribution(pin.partition("==")[0])
        for top in {file.parts[0] for file in found.files or () if file.parts[0] != ".."}:
            if not (folder / top).exists():
                (folder / top).symlink_to(Path(str(found.locate_file(top))))
    return folder


def python(*arguments: str, given: str = "", **more: str) -> subprocess.CompletedProcess[str]:
    """Neither the checkout nor the installed packages are on its path."""
    env = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "HOME": os.environ.get("HOME", "/"), **more}
    return subprocess.run(
        [sys.executable, "-s", "-S", *arguments],
        input=given, env=env, capture_output=True, text=True, timeout=120, check=False,
        cwd=more.get("PWD", "/"),
    )  # fmt: skip


def test_it_answers_as_recorded_without_harness_and_sandbox(
    finished: Path, exported: Path, site: Path, few_data: Path
) -> None:
    data = load(few_data)
    asked = {q.id: q for split in ("development", "validation") for q in data.questions(split)}
    with RunStore.open(finished, write=False) as store:
        measured = [store.stage(0, name, Measured) for name in ("develop", "validate")]
        taken = store.stage(0, "intake", TakenIn)
        assert taken is not None
        recorded_files = store.lineage.read(taken.tree)
    items = [item for found in measured if found for item in found.evaluation.items]
    fields = ("id", "video", "type", "question", "choices", "time")
    given = {
        "folder": str(exported),
        "site": str(site),
        "package": "policy_0000",
        "windows": {video: str(few_data / "windows" / f"{video}.jsonl") for video in data.videos},
        "questions": [{name: getattr(asked[i.question], name) for name in fields} for i in items],
    }
    given["questions"] = [{**q, "choices": dict(q["choices"])} for q in given["questions"]]  # type: ignore[union-attr]
    done = python("-c", ASKING, given=json.dumps(given))
    assert done.returncode == 0, done.stderr
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        [i.question, i.choice, i.route, list(i.evidence)] for i in items
    ]
    assert len({i.choice for i in items}) > 1 and any(i.evidence for i in items)
    written = {path.name: path.read_bytes() for path in (exported / "policy_0000" / "candidate").iterdir()}
    assert written == recorded_files and "settings.json" in written


def test_it_answers_on_the_command_line(exported: Path, site: Path, few_data: Path) -> None:
    data = load(few_data)
    question = data.questions("development")[0]
    choices = [part for text in question.choices.values() for part in ("--choice", text)]
    line = ["-m", "policy_0000", question.question, "--at", str(question.time), *choices]
    file = few_data / "windows" / f"{question.video}.jsonl"
    where = {"PYTHONPATH": f"{exported}{os.pathsep}{site}", "PYTHONHASHSEED": "random"}
    done = python(*line, "--data", str(file), "--json", **where)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["choice"] in question.choices and found["reader"] == "lexical reader, no language model"
    assert all(window["end"] <= question.time for window in found["evidence"])
    for wrong in (["--data", "/nowhere"], ["--data", str(exported / "README.md")]):
        done = python(*line, *wrong, **where)
        assert done.returncode == 2 and "Traceback" not in done.stderr and wrong[1] in done.stderr


def test_nothing_of_ours_is_needed_and_all_is_told(exported: Path, finished: Path) -> None:
    for path in exported.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                assert (node.module or "").split(".")[0] not in ("harness", "sandbox"), path
    names = {path.name for path in (exported / "policy_0000" / "runtime" / "policies" / "blocks").iterdir()}
    assert {"bm25.py", "lemmas.py", "lemma_index.json"} <= names and "README.md" not in names
    told = json.loads((exported / "provenance.json").read_text())
    with RunStore.open(finished, write=False) as store:
        taken, measured = store.stage(0, "intake", TakenIn), store.stage(0, "develop", Measured)
        assert taken and measured
        assert (told["tree"], told["commit"], told["bundle_digest"]) == (taken.tree, taken.commit, taken.bundle)
        assert told["runtime_digest"] == store.manifest.runtime_digest
        assert told["data"]["digest"] == store.manifest.data.digest
    figures = told["figures"]["development"]
    assert figures["accuracy"] == measured.evaluation.accuracy and figures["reader"] == measured.evaluation.reader
    readme = (exported / "README.md").read_text()
    assert "It runs without the sandbox" in readme and "not language-model results" in readme
    assert "Build, Generate, Embed, Frames" in readme, "what V49 and its blocks may ask for"
    assert "Apache License" in (exported / "LICENSE").read_text()
    project = tomllib.loads((exported / "pyproject.toml").read_text())["project"]
    assert project["name"] == "lvmh-policy-0000" and any(d.startswith("numpy==") for d in project["dependencies"])


def test_the_best_of_the_frontier_is_the_default(finished: Path, tmp_path: Path) -> None:
    with RunStore.open(finished, write=False) as store:
        done = export_policy(store, None, tmp_path / "out")
    assert done.outcome == "on the frontier" and (tmp_path / "out" / done.package / "candidate" / "policy.py").is_file()


def test_what_cannot_be_exported_says_why(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with RunStore.open(finished, write=False) as store:
        for name in ("there", "dangling"):
            with pytest.raises(UserError, match="is there already"):
                export_policy(store, 0, tmp_path / name)
        store.manifest = store.manifest.model_copy(update={"runtime_digest": "0" * 64})
        with pytest.raises(UserError, match="runtime"):
            export_policy(store, 0, tmp_path / "out")
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    with RunStore.open(copy, write=False) as store:
        taken = store.stage(0, "intake", TakenIn)
        assert taken is not None
        blobs = {entry.path: entry.oid for entry in store.lineage.entries(taken.tree)}
    objects = copy / "lineage.git" / "objects"
    one, other = (objects / blobs[name][:2] / blobs[name][2:] for name in ("policy.py", "settings.json"))
    one.chmod(0o644)
    one.write_bytes(other.read_bytes())
    with RunStore.open(copy, write=False) as store, pytest.raises(UserError, match="restore a copy"):
        export_policy(store, 0, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"there", "dangling", "copy"}


def test_a_hostile_candidate_is_data(finished: Path, tmp_path: Path) -> None:
    """Its code, its title and its run's name: nothing is executed, shown raw, or a path."""
    with RunStore.open(finished, write=False) as store:
        original = store.manifest
    run = tmp_path / "run"
    shutil.copytree(finished / "h0", run / "h0")
    code = f"import os\nopen({MARK!r}, 'w')\nclass Policy:\n    pass\n"
    name = HOSTILE.replace("\ud800", "")
    made = RunManifest.model_validate({**original.model_dump(), "name": name, "parent": STORABLE})
    files = {"policy.py": code.encode(), "deep.py": b"x = " + b"(" * 5_000 + b"\n", "broken.py": b"def\n"}
    with RunStore.create(run, made) as store:
        tree = store.lineage.intake(files)
        commit = store.lineage.commit(tree, (), HOSTILE, {"Iteration": "0"}, 1.0)
        refs = {"refs/heads/main": commit}
        taken = TakenIn(
            summary=HOSTILE, refs=refs, tree=tree, commit=commit, branch="main", bundle=make_bundle(files).digest
        )
        store.commit_stage(0, "intake", taken, summary=HOSTILE, refs=refs)
    out = tmp_path / "out"
    done = CliRunner().invoke(cli, ["export", "policy", "0", "--run", str(run), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert not Path(MARK).exists()
    for text in (done.output, (out / "README.md").read_text(), (out / "provenance.json").read_text()):
        assert not set(text) & set("\x1b\x07\u202e\u2066\u2028\u200b\x00")
    assert "It was never measured." in (out / "README.md").read_text()
    assert json.loads((out / "provenance.json").read_text())["run"]["name"] == name
    best = CliRunner().invoke(cli, ["export", "policy", "--run", str(run), "--out", str(tmp_path / "best")])
    assert isinstance(best.exception, UserError) and "measured no policy" in str(best.exception)


def test_a_record_that_does_not_fit_its_tree_is_not_exported(tmp_path: Path) -> None:
    with RunStore.open(make_run(tmp_path), write=False) as store, pytest.raises(UserError, match="taken in"):
        export_policy(store, 1, tmp_path / "out")


# ---------------------------------------------------------------- the optional endpoint

text = st.text(st.characters(blacklist_categories=["Cs"]), max_size=40)


@settings(max_examples=60, deadline=None)
@given(text, st.lists(text, min_size=2, max_size=5), text, text)
def test_the_model_is_asked_in_the_words_of_the_measurement(
    question: str, choices: list[str], context: str, instructions: str
) -> None:
    read = Read(question, dict(zip("ABCDE", choices, strict=False)), context, instructions)
    assert PROMPT(read) == tuple(message.content for message in render_read(read))


def _prompt() -> Any:
    """The module that goes along, as the harness has it: importing its package would look for a candidate."""
    import importlib.util

    path = Path(__file__).resolve().parents[2] / "harness" / "export" / "package" / "endpoint.py"
    spec = importlib.util.spec_from_file_location("exported_endpoint", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.prompt


PROMPT = _prompt()


@pytest.fixture
def server() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    asked: list[dict[str, Any]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append({"path": self.path, "key": self.headers["Authorization"], **body})
            reply = json.dumps({"choices": [{"message": {"content": "The answer is B."}}]}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *arguments: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}/v1", asked
        made.shutdown()


def test_an_endpoint_answers_where_one_is_named(
    exported: Path, site: Path, few_data: Path, server: tuple[str, list[dict[str, Any]]]
) -> None:
    url, asked = server
    question = load(few_data).questions("development")[0]
    choices = [part for text in question.choices.values() for part in ("--choice", text)]
    file = few_data / "windows" / f"{question.video}.jsonl"
    line = ["-m", "policy_0000", question.question, "--at", str(question.time), *choices, "--data", str(file)]
    where = {"PYTHONPATH": f"{exported}{os.pathsep}{site}", "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k"}
    done = python(*line, "--json", **where)
    assert done.returncode == 0 and asked == [], "an address alone sends nothing"
    done = python(*line, "--json", "--model", "m", **where)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["choice"] == "B" and json.loads(done.stdout)["reader"] == "m"
    assert {(a["path"], a["key"], a["model"]) for a in asked} == {("/v1/chat/completions", "Bearer k", "m")}
    assert question.question in asked[0]["messages"][1]["content"]
