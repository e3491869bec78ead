"""The resolved configuration: ``harness.toml`` < environment < flags, each value with where it came from."""

from __future__ import annotations

import dataclasses
import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import PrivateAttr, TypeAdapter, ValidationError

from harness.display import visible
from harness.errors import UserError
from harness.models.interface import Role
from harness.settings import CHAT_ROLES, RoleModel, Section, Settings

Tree = dict[str, Any]
PREFIX = "HARNESS_"
MODEL_VARIABLES = {
    "HARNESS_MODEL": "profiles.openai.default.model",
    "OPENAI_BASE_URL": "profiles.openai.default.base_url",
    "HARNESS_EMBED_MODEL": "profiles.openai.roles.embedder.model",
    "HARNESS_TRANSCRIBE_MODEL": "profiles.openai.roles.transcriber.model",
}


class Row(NamedTuple):
    """One resolved value, for display."""

    name: str
    """Dotted, for example ``caps.dollars``."""
    value: str
    origin: str
    """``default``, the file, an environment variable, or a flag."""


class Config(Settings):
    """All settings of a run. ``model_dump`` holds no key: keys are read only when a role's key is asked for."""

    _origins: dict[str, str] = PrivateAttr(default_factory=dict)
    _environment: dict[str, str] = PrivateAttr(default_factory=dict)

    def role(self, role: Role) -> RoleModel | None:
        """The chosen profile's model for ``role``, or None."""
        profile = self.profiles.get(self.run.profile)
        return profile.roles.get(role) if profile else None

    def key(self, role: Role) -> str | None:
        """The key for the role's endpoint; None where none is named. Raises UserError where a named one is missing."""
        model = self.role(role)
        if model is None or model.packaged:
            return None
        where = f"profile {self.run.profile}, role {role}"
        if model.key_file:
            key, source = _read_key(Path(model.key_file), where), f"file {model.key_file}"
        elif model.key_variable:
            key, source = self._environment.get(model.key_variable, ""), f"environment variable {model.key_variable}"
        else:
            return None
        key = key.strip()
        if not key:
            raise UserError(f"{where}: no key for {model.base_url}: {source} is not set or empty")
        if not key.isascii() or not key.isprintable() or " " in key:
            raise UserError(f"{where}: the key in {source} holds characters that no key has; set it again")
        return key

    def explain(self) -> tuple[Row, ...]:
        """Every resolved value with its origin; a key is shown only as set or missing."""
        rows = [
            Row(name, "none" if value is None else str(value), self.origin(name))
            for name, value in _leaves(self.model_dump(mode="json"))
        ]
        for role in Role:
            model = self.role(role)
            if model is not None and (source := model.key_file or model.key_variable):
                try:
                    state = "set (hidden)" if self.key(role) else "none"
                except UserError:
                    state = "missing"
                rows.append(Row(f"profiles.{self.run.profile}.roles.{role}.key", state, source))
        return tuple(rows)

    def origin(self, name: str) -> str:
        """Where the value of a dotted name came from; ``default`` where nothing set it."""
        return self._origins.get(name, "default")


def resolve(flags: Mapping[str, object], env: Mapping[str, str], file: Path | None) -> Config:
    """Merge the layers and check them.

    Args:
        flags: by name: a field of ``[run]`` (``iterations``) or a dotted name (``caps.dollars``); None is "not given".
        env: the environment. ``HARNESS_<FIELD>`` for ``[run]``, ``HARNESS_<SECTION>_<FIELD>`` for the other sections;
            ``HARNESS_MODEL``, ``HARNESS_EMBED_MODEL``, ``HARNESS_TRANSCRIBE_MODEL``, ``OPENAI_BASE_URL`` and
            ``OPENAI_API_KEY`` make profile ``openai``.
        file: a ``harness.toml``, or None for none.

    Raises:
        UserError: an unknown key, a wrong type or an unknown profile, in one line that names file, variable or flag.
    """
    tree: Tree = {}
    origins: dict[str, str] = {}
    if file is not None:
        _merge(tree, origins, _read_toml(file), str(file))
    for name, value, variable in _from_environment(env, "openai" in _table(tree, "profiles")):
        _put(tree, origins, name, value, variable)
    for name, value, flag in _from_flags(flags):
        _put(tree, origins, name, value, flag)
    _fill_in_default_roles(tree, origins)
    try:
        config = Config.model_validate_json(json.dumps(tree, default=str), strict=True)
    except ValidationError as error:
        raise UserError(_one_line(error, origins, file)) from None
    config._origins, config._environment = origins, dict(env)
    _check_profile(config)
    return config


def recorded(values: Mapping[str, Any], env: Mapping[str, str]) -> Config:
    """The configuration as a run recorded it; keys come from ``env``. Raises UserError."""
    try:
        config = Config.model_validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        raise UserError(f"{_one_line(error, {}, None)}; use the version of the harness that made the run") from None
    config._environment = dict(env)
    return config


def _check_profile(config: Config) -> None:
    name = config.run.profile
    if name == "offline" or (name in config.profiles and config.profiles[name].roles):
        return
    where = config.origin("run.profile")
    if name == "openai":
        raise UserError(
            f"{where}: profile openai has no model: set HARNESS_MODEL (and OPENAI_BASE_URL, OPENAI_API_KEY)"
        )
    known = ", ".join(sorted({"offline", *config.profiles}))
    raise UserError(f"{where}: there is no profile {visible(name, 80)} with a model; known: {known}")


# ---------------------------------------------------------------- layers


def _read_toml(file: Path) -> Tree:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{file}: is not UTF-8 text") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UserError(f"{file}: is not TOML: {error}") from None


def _from_environment(env: Mapping[str, str], has_openai: bool) -> Iterator[tuple[str, object, str]]:
    names = {PREFIX + _variable(name): name for name in _static()}
    for variable in sorted(env):
        label = f"environment variable {variable}"
        if variable in names:
            yield names[variable], _typed(names[variable], env[variable], label), label
        elif variable.startswith(PREFIX) and variable not in MODEL_VARIABLES:
            raise UserError(f"{label} is unknown{_hint(variable, [*names, *MODEL_VARIABLES])}")
    if not (env.get("HARNESS_MODEL") or has_openai):
        return
    for variable, name in MODEL_VARIABLES.items():
        if env.get(variable):
            yield name, env[variable], f"environment variable {variable}"
    if env.get("OPENAI_BASE_URL") and env.get("OPENAI_API_KEY"):
        yield "profiles.openai.default.key_env", "OPENAI_API_KEY", "environment variable OPENAI_API_KEY"


def _from_flags(flags: Mapping[str, object]) -> Iterator[tuple[str, object, str]]:
    static = _static()
    for flag, value in flags.items():
        if value is None:
            continue
        label = "--" + flag.replace("_", "-")
        name = flag if "." in flag else f"run.{flag}"
        if name not in static:
            raise UserError(f"{label}: there is no setting of that name{_hint(name, list(static))}")
        yield name, _typed(name, value, label), label


def _static() -> dict[str, Any]:
    """Type by dotted name of every field outside the tables that the user names (profiles, prices, roles)."""
    found: dict[str, Any] = {}
    for section, field in Settings.model_fields.items():
        kind = field.annotation
        if dataclasses.is_dataclass(kind):
            found |= {f"{section}.{item.name}": type(item.default) for item in dataclasses.fields(kind)}
        elif isinstance(kind, type) and issubclass(kind, Section):
            found |= {
                f"{section}.{name}": item.annotation for name, item in kind.model_fields.items() if name != "roles"
            }
    return found


def _variable(name: str) -> str:
    return name.removeprefix("run.").replace(".", "_").upper()


def _typed(name: str, value: object, label: str) -> object:
    """Text to the field's type; the bounds are checked later, with everything else."""
    try:
        return TypeAdapter(_static()[name]).validate_python(value)
    except ValidationError as error:
        raise UserError(f"{label}: {_lower(error.errors()[0]['msg'])}, not {str(value)[:80]!r}") from None


def _fill_in_default_roles(tree: Tree, origins: dict[str, str]) -> None:
    """Fill ``[profiles.NAME.default]`` into the chat roles, and into embedder and transcriber where they are named."""
    for profile, content in _table(tree, "profiles").items():
        if not isinstance(content, dict) or not isinstance(content.get("default"), dict):
            continue
        default = content.pop("default")
        roles = content.setdefault("roles", {})
        if not isinstance(roles, dict):
            continue
        named = [role for role in roles if role not in CHAT_ROLES]
        for role in (*map(str, CHAT_ROLES), *named):
            own = roles.setdefault(role, {})
            if not isinstance(own, dict):
                continue
            elsewhere = not {"key_env", "key_file", "base_url"}.isdisjoint(own)
            for key, value in default.items():
                if key in own or (elsewhere and key in ("key_env", "key_file")):
                    continue  # a role with its own endpoint or key does not take the default's key
                own[key] = value
                source = f"profiles.{profile}.default.{key}"
                origins[f"profiles.{profile}.roles.{role}.{key}"] = origins.get(source, "default")


# ---------------------------------------------------------------- trees


def _table(tree: Tree, name: str) -> Tree:
    found = tree.get(name)
    return found if isinstance(found, dict) else {}


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _merge(tree: Tree, origins: dict[str, str], layer: Tree, origin: str) -> None:
    tree.update(layer)
    origins.update({name: origin for name, _ in _leaves(layer)})


def _put(tree: Tree, origins: dict[str, str], name: str, value: object, origin: str) -> None:
    *path, last = name.split(".")
    for part in path:
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            raise UserError(f"{origins.get(part, origin)}: {part} must be a table")
    tree[last] = value
    origins[name] = origin


# ---------------------------------------------------------------- messages


def _lower(message: str) -> str:
    message = message.removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _hint(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ""


def _one_line(error: ValidationError, origins: Mapping[str, str], file: Path | None) -> str:
    """The first problem as one line: where it was set, which name, what is wrong."""
    problem = error.errors()[0]
    name = ".".join(str(part) for part in problem["loc"] if part != "[key]")
    named = {name, *problem["msg"].split()}  # a check over several values names the one in its message
    inside = next((origin for key, origin in origins.items() if key in named or key.startswith(f"{name}.")), None)
    where = inside or (str(file) if file else "configuration")
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"{where}: unknown key {visible(name, 200)}{_hint(name, [*_static(), *_all_tables()])}"
    if problem["type"] == "missing":
        return f"{where}: {visible(name, 200)} is missing"
    return visible(f"{where}: {name + ': ' if name else ''}{_lower(problem['msg'])}", 600)


def _all_tables() -> list[str]:
    return list(Settings.model_fields)


def _read_key(path: Path, where: str) -> str:
    try:
        return path.expanduser().read_text("utf-8")[:10_000]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise UserError(f"{where}: key_file {path} cannot be read: {reason}") from None
