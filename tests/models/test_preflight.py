"""What a run checks before it writes anything."""

from pathlib import Path
from typing import Any

import pytest

from harness.config import resolve
from harness.errors import UserError
from harness.models.preflight import preflight

LIST = {"object": "list", "data": [{"id": "m", "object": "model"}, {"id": "other\x1b[0m", "object": "model"}]}


@pytest.fixture
def profile(server: Any, tmp_path: Path) -> Any:
    def build(model: str = "m", url: str = "", more: str = "") -> Any:
        file = tmp_path / "harness.toml"
        file.write_text(
            f'[run]\nprofile = "p"\n[profiles.p.default]\nmodel = "{model}"\nbase_url = "{url or server.url}"\n{more}'
        )
        return resolve({}, {"KEY": "sk-test-123"}, file)

    return build


def fault(config: Any) -> str:
    with pytest.raises(UserError) as caught:
        preflight(config)
    assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)
    return str(caught.value)


def test_a_listed_model_passes_with_one_look_for_all_roles(profile: Any, server: Any, raw: Any) -> None:
    server.pages["/v1/models"] = raw(body=LIST)
    preflight(profile())
    assert server.looked_up == ["/v1/models"]
    assert server.requests == [], "nothing is bought"


def test_an_unknown_model_is_named_with_what_there_is(profile: Any, server: Any, raw: Any) -> None:
    server.pages["/v1/models"] = raw(body=LIST)
    message = fault(profile("wrong"))
    assert "profile p, role researcher: model wrong at http://127.0.0.1" in message
    assert "there is no such model; the endpoint lists m, other" in message


def test_an_alias_that_is_not_listed_but_known_passes(profile: Any, server: Any, raw: Any) -> None:
    server.pages["/v1/models"] = raw(body=LIST)
    server.pages["/v1/models/alias"] = raw(body={"id": "m:latest"})
    preflight(profile("alias"))


@pytest.mark.parametrize("body", [None, [], {"data": []}, {"data": [1]}, b"nonsense"])
def test_without_a_list_nothing_is_concluded(profile: Any, server: Any, raw: Any, body: Any) -> None:
    server.pages["/v1/models"] = raw(body=body)
    preflight(profile("anything"))
    del server.pages["/v1/models"]
    preflight(profile("anything"))


def test_a_refused_key_is_said(profile: Any, server: Any, refuse: Any) -> None:
    server.pages["/v1/models"] = refuse("Incorrect API key provided: sk-test-123", status=401)
    message = fault(profile(more='key_env = "KEY"'))
    assert "sk-test" not in message
    assert "the key was refused (401)" in message and "check KEY" in message


def test_an_endpoint_that_is_down_is_said(profile: Any, server: Any) -> None:
    server.close()
    assert "no connection" in fault(profile())


def test_a_missing_key_or_price_is_said_without_a_look(profile: Any, server: Any) -> None:
    assert "environment variable NONE is not set" in fault(profile(more='key_env = "NONE"'))
    assert '[prices."m"]' in fault(profile(url="https://elsewhere.example/v1"))
    assert server.looked_up == []


def test_offline_needs_nothing() -> None:
    preflight(resolve({}, {}, None))
