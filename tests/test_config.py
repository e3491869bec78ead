"""Layers, origins and one-line errors of the configuration."""

import math
from pathlib import Path
from typing import Any

import pytest

from harness.config import Config, resolve
from harness.errors import UserError
from harness.models.interface import Role
from policies.contract import Budget
from sandbox.interface import Limits

ROOT = Path(__file__).parent.parent


@pytest.fixture
def write(tmp_path: Any) -> Any:
    def build(text: Any) -> Any:
        file = tmp_path / "harness.toml"
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        return file

    return build


def fault(*layers: Any) -> str:
    with pytest.raises(UserError) as caught:
        resolve(*layers)
    text = str(caught.value)
    assert "\n" not in text and "\x1b" not in text and len(text) < 1000
    return text


def test_defaults() -> None:
    config = resolve({}, {}, None)
    assert config.run.iterations == 50
    assert (config.run.parent, config.run.profile, config.run.sandbox) == ("v00", "offline", "auto")
    assert config.budget == Budget() and config.limits == Limits()
    assert config.promotion.model_dump() == {"eta": 0.01, "alpha": 0.05, "epsilon": 0.02, "saving": 0.1}
    assert (config.gate.smoke_questions, config.author.attempts, config.author.form) == (5, 3, "function")
    assert config.caps.dollars == 10
    assert all(config.role(role) is None and config.key(role) is None for role in Role)
    assert {row.origin for row in config.explain()} == {"default"}


def test_file_under_environment_under_flags(write: Any) -> None:
    file = write('[run]\niterations = 1\nseed = 1\nparent = "v01"\n[budget]\nreads = 9\n')
    env = {
        "HARNESS_ITERATIONS": "2",
        "HARNESS_SEED": "2",
        "HARNESS_LIMITS_MEMORY_MB": "512",
        "HARNESS_GATE_REVIEWER": "off",
    }
    config = resolve({"iterations": 3, "name": None, "caps.dollars": "2.5"}, env, file)
    assert (config.run.iterations, config.run.seed, config.run.parent) == (3, 2, "v01")
    assert (config.budget, config.limits) == (Budget(reads=9), Limits(memory_mb=512))
    assert config.gate.reviewer is False
    rows = {row.name: (row.value, row.origin) for row in config.explain()}
    assert rows["run.iterations"] == ("3", "--iterations")
    assert rows["run.seed"] == ("2", "environment variable HARNESS_SEED")
    assert rows["run.parent"] == ("v01", str(file))
    assert rows["budget.reads"] == ("9", str(file))
    assert rows["budget.frames"] == ("4", "default")
    assert rows["limits.memory_mb"] == ("512", "environment variable HARNESS_LIMITS_MEMORY_MB")
    assert rows["caps.dollars"] == ("2.5", "--caps.dollars")
    assert rows["run.name"] == ("", "default")


def test_every_plain_setting_has_a_variable_and_a_flag() -> None:
    names = [row.name for row in resolve({}, {}, None).explain()]
    for name in names:
        variable = "HARNESS_" + name.removeprefix("run.").replace(".", "_").upper()
        probe = {
            "run.sandbox": "docker",
            "author.form": "file",
            "author.protocol": "text",
            "author.window": "4000",
            "author.reply": "500",
            "author.correctness": "yes",
            "gate.reviewer": "no",
            "gate.review": "change",
            "gate.checks": "none",
            "author.team": "single",
            "memory.kind": "none",
            "promotion.alpha": "0.25",
        }.get(name, "1")
        expect = {"gate.reviewer": False, "author.correctness": True}.get(name, probe)
        if name == "run.profile":
            continue
        for config in (resolve({}, {variable: probe}, None), resolve({name: probe}, {}, None)):
            section, field = name.split(".")
            assert str(getattr(getattr(config, section), field)) in (str(expect), f"{probe}.0")
            assert config.origin(name) != "default"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[run]\niteration = 5", ["harness.toml", "unknown key run.iteration", "did you mean run.iterations"]),
        ("[budget]\nread = 5", ["unknown key budget.read", "budget.reads"]),
        ("[limit]\nx = 5", ["unknown key limit", "did you mean limits"]),
        ("run = 5", ["harness.toml", "run: input should be an object"]),
        ("[run]\niterations = '50'", ["run.iterations: input should be a valid integer"]),
        ("[run]\niterations = true", ["run.iterations: input should be a valid integer"]),
        ("[run]\niterations = -1", ["run.iterations: input should be greater than or equal to 0"]),
        ("[run]\nseed = 2024-01-01", ["run.seed: input should be a valid integer"]),
        ("[run]\nsandbox = 'none'", ["run.sandbox: input should be 'auto', 'docker' or 'bubblewrap'"]),
        ("[budget]\nreads = -1", ["budget.reads is out of range: -1"]),
        ("[limits]\npids = 0", ["limits.pids is out of range: 0"]),
        ("[limits]\ncpus = nan", ["limits.cpus"]),
        ("[caps.roles.reader]\ndollars = 1", ["caps.roles.reader", "'researcher', 'implementer'"]),
        ("[prices.m]\ninput = 1", ["prices.m.output is missing"]),
        ("[prices.m]\ninput = -1\noutput = 1", ["prices.m.input"]),
        ("[profiles.a.roles.answer]\nbase_url = 'http://x/v1'", ["profiles.a.roles.answer.model is missing"]),
        ("[profiles.a.roles.answer]\nmodel = 'm'\nbase_url = 'x'", ["base_url must be an http or https address"]),
        ("[profiles.a.roles.answer]\nmodel = 'm'\nkey = 'sk-1'", ["unknown key profiles.a.roles.answer.key"]),
        ("[profiles.a.roles.answer]\nmodel = 'm'\nbase_url = 'https://u:p@h/v1'", ["must not hold a password"]),
        ("[profiles.a.roles.answer]\nmodel = 'm'\nkey_env = 'A'\nkey_file = 'b'", ["not both"]),
        ("[profiles.a]\ndefault = 5", ["unknown key profiles.a.default"]),
        ("profiles = 5\n[run]\nseed = 1", ["profiles"]),
        ("[profiles.offline.roles.answer]\nmodel = 'm'", ["profiles.offline has no models"]),
        ("[run]\nprofile = 'mine'\n[profiles.mine]", ["there is no profile mine with a model", "offline"]),
        ('[run]\n"a\\u001b[31m\\n" = 5', ["unknown key"]),
        ("[run\n", ["is not TOML"]),
        (b"\xff\xfe", ["is not UTF-8"]),
        ("x = " + "[" * 5_000, ["is not TOML"]),
    ],
)
def test_bad_files_are_one_line(write: Any, text: Any, words: Any) -> None:
    file = write(text)
    message = fault({}, {}, file)
    assert all(word in message for word in [str(file), *words]), message


def test_a_missing_file_is_one_line(tmp_path: Any) -> None:
    assert "cannot be read" in fault({}, {}, tmp_path / "none.toml")
    assert "cannot be read" in fault({}, {}, tmp_path)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"HARNESS_ITERATION": "5"}, ["variable HARNESS_ITERATION is unknown", "did you mean HARNESS_ITERATIONS"]),
        ({"HARNESS_ITERATIONS": "many"}, ["HARNESS_ITERATIONS: input should be a valid integer", "not 'many'"]),
        ({"HARNESS_BUDGET_READS": "-1"}, ["HARNESS_BUDGET_READS: budget.reads is out of range: -1"]),
        ({"HARNESS_ITERATIONS": "-1"}, ["HARNESS_ITERATIONS: run.iterations: input should be greater"]),
        ({"HARNESS_SANDBOX": "none"}, ["HARNESS_SANDBOX: input should be 'auto'"]),
        ({"HARNESS_PROFILE": "openai"}, ["HARNESS_PROFILE: profile openai has no model: set HARNESS_MODEL"]),
        ({"HARNESS_PROFILE": "x\x1b[0m"}, ["HARNESS_PROFILE: there is no profile"]),
    ],
)
def test_bad_variables_are_one_line(env: Any, words: Any) -> None:
    message = fault({}, env, None)
    assert all(word in message for word in words), message


def test_bad_flags_are_one_line() -> None:
    assert "--iterations: input should be a valid integer" in fault({"iterations": "x"}, {}, None)
    assert "--iteration: there is no setting of that name; did you mean run.iterations" in fault(
        {"iteration": 5}, {}, None
    )


def test_the_easy_path() -> None:
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:8190/v1", "OPENAI_API_KEY": "local", "HARNESS_MODEL": "local"}
    config = resolve({"profile": "openai"}, env, None)
    for role in Role:
        model = config.role(role)
        if role in (Role.EMBEDDER, Role.TRANSCRIBER):
            assert model is None
            continue
        assert model is not None
        assert (model.model, model.base_url, config.key(role)) == ("local", env["OPENAI_BASE_URL"], "local")
    assert config.origin("profiles.openai.roles.answer.model") == "environment variable HARNESS_MODEL"
    embedding = resolve({"profile": "openai"}, env | {"HARNESS_EMBED_MODEL": "e"}, None).role(Role.EMBEDDER)
    assert embedding is not None and (embedding.model, embedding.base_url) == ("e", env["OPENAI_BASE_URL"])
    hearing = resolve({"profile": "openai"}, env | {"HARNESS_TRANSCRIBE_MODEL": "t"}, None).role(Role.TRANSCRIBER)
    assert hearing is not None and (hearing.model, hearing.base_url) == ("t", env["OPENAI_BASE_URL"])


def test_nothing_is_sent_unless_the_profile_names_a_model() -> None:
    env = {"OPENAI_API_KEY": "sk-1", "HARNESS_MODEL": "m"}
    assert all(resolve({}, env, None).role(role) is None for role in Role)


def test_roles_inherit_the_profile_s_default(write: Any) -> None:
    text = """
    [run]
    profile = "p"
    [profiles.p.default]
    model = "small"
    base_url = "https://one.example/v1"
    key_env = "ONE_KEY"
    timeout = 30
    [profiles.p.roles.reviewer]
    model = "large"
    [profiles.p.roles.answer]
    base_url = "https://two.example/v1"
    """
    file = write(text)
    config = resolve({}, {"ONE_KEY": "k1"}, file)
    reviewer, answer = config.role(Role.REVIEWER), config.role(Role.ANSWER)
    assert reviewer is not None and answer is not None
    assert (reviewer.model, reviewer.base_url, reviewer.timeout) == ("large", "https://one.example/v1", 30)
    assert config.key(Role.REVIEWER) == "k1"
    assert (answer.model, answer.base_url) == ("small", "https://two.example/v1")
    assert config.key(Role.ANSWER) is None, "a key never goes to a host that it was not named for"
    assert config.role(Role.EMBEDDER) is None
    assert config.origin("profiles.p.roles.reviewer.timeout") == str(file)
    assert config.origin("profiles.p.roles.reviewer.deadline") == "default"


ONE = "[run]\nprofile = 'p'\n[profiles.p.roles.answer]\nmodel = 'm'\n"


@pytest.mark.parametrize(
    ("text", "env", "words"),
    [
        (ONE, {}, "environment variable OPENAI_API_KEY is not set or empty"),
        (ONE + "key_env = 'MY_KEY'", {"OPENAI_API_KEY": "k"}, "environment variable MY_KEY is not set"),
        (ONE + "key_env = 'MY_KEY'", {"MY_KEY": "  "}, "MY_KEY is not set or empty"),
        (ONE + "key_env = 'MY_KEY'", {"MY_KEY": "a b"}, "characters that no key has"),
        (ONE + "key_env = 'MY_KEY'", {"MY_KEY": "schlüssel"}, "characters that no key has"),
        (ONE + "key_file = '/nowhere/key'", {}, "key_file /nowhere/key cannot be read"),
    ],
)
def test_a_missing_key_names_its_variable(write: Any, text: Any, env: Any, words: Any) -> None:
    config = resolve({}, env, write(text))
    with pytest.raises(UserError) as caught:
        config.key(Role.ANSWER)
    assert words in str(caught.value)
    assert "profile p, role answer" in str(caught.value)


def test_keys_are_never_shown_or_stored(write: Any, tmp_path: Any) -> None:
    (tmp_path / "key").write_text("sk-from-file\n")
    text = ONE + f"key_file = '{tmp_path / 'key'}'\n[profiles.p.roles.reviewer]\nmodel = 'm'\n"
    config = resolve({}, {"OPENAI_API_KEY": "sk-from-env"}, write(text))
    assert (config.key(Role.ANSWER), config.key(Role.REVIEWER)) == ("sk-from-file", "sk-from-env")
    shown = repr(config) + str(config) + config.model_dump_json() + str(config.explain())
    assert "sk-from" not in shown
    rows = {row.name: (row.value, row.origin) for row in config.explain()}
    assert rows["profiles.p.roles.answer.key"] == ("set (hidden)", str(tmp_path / "key"))
    assert rows["profiles.p.roles.reviewer.key"] == ("set (hidden)", "OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("url", "loopback"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://localhost/v1", True),
        ("http://[::1]:8/v1", True),
        ("http://127.evil.example/v1", False),
        ("http://localhost.evil.example/v1", False),
        ("https://api.openai.com/v1", False),
        ("http://10.0.0.1/v1", False),
    ],
)
def test_what_counts_as_this_machine(write: Any, url: Any, loopback: Any) -> None:
    model = resolve({}, {}, write(ONE + f"base_url = '{url}'")).role(Role.ANSWER)
    assert model is not None and model.loopback is loopback


def test_a_dollar_cap_can_be_lifted(write: Any) -> None:
    assert math.isinf(resolve({}, {}, write("[caps]\ndollars = inf")).caps.dollars or 0)
    assert math.isinf(resolve({"caps.dollars": "inf"}, {}, None).caps.dollars or 0)


def test_a_stored_configuration_reads_back(write: Any) -> None:
    config = resolve({"iterations": 7}, {"OPENAI_API_KEY": "k"}, write(ONE))
    assert Config.model_validate_json(config.model_dump_json()).model_dump() == config.model_dump()


def test_the_example_holds_every_setting_with_its_default(write: Any) -> None:
    text = (ROOT / "harness.toml.example").read_text("utf-8")
    plain = "\n".join(line.removeprefix("#: ") for line in text.splitlines())
    config = resolve({}, {}, write(plain))
    defaults = resolve({}, {}, None)
    given = {row.name: row.value for row in config.explain()}
    for row in defaults.explain():
        assert given[row.name] == row.value, row
        assert config.origin(row.name) != "default" or row.value == "none", f"{row.name} is not in the example"
    assert resolve({}, {}, write(text)).model_dump() == defaults.model_dump()
