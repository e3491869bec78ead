"""What can be configured: the sections of ``harness.toml``, their defaults and their bounds."""

from __future__ import annotations

import dataclasses
import ipaddress
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.models.interface import Role
from policies.contract import Budget
from sandbox.interface import Limits

OPENAI_URL = "https://api.openai.com/v1"
PACKAGED_EMBEDDER = "packaged:minilm"
"""The embedder's model that runs in this process, from the extra ``minilm`` (``harness.models.embedder``)."""
CHAT_ROLES = tuple(role for role in Role if role not in (Role.EMBEDDER, Role.TRANSCRIBER))

Count = Annotated[int, Field(ge=0, le=2**53)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=True)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class Section(BaseModel):
    """Frozen base of all sections: an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Run(Section):
    """``[run]``: what one run is."""

    iterations: Count = 50
    """Total number of iterations; a resumed run goes on to this number."""
    seed: Count = 0
    """Every random draw is a function of it."""
    parent: str = "v00"
    """Library policy that the search starts from."""
    profile: str = "offline"
    """Which ``[profiles.NAME]`` supplies the models; ``offline`` has none."""
    sandbox: Literal["auto", "docker", "bubblewrap"] = "auto"
    """``auto``: Docker where an engine answers, else bubblewrap."""
    name: str = ""
    """Name of the run's folder; empty: chosen by the command."""
    data: str = ""
    """Data set folder; empty: the bundled life-log."""
    workers: Count = 0
    """Containers at work at the same time; 0: one per core."""


class Promotion(Section):
    """``[promotion]``: when a candidate is better."""

    eta: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Least gain in accuracy, as a share."""
    alpha: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    """Largest paired p for a gain."""
    epsilon: Annotated[float, Field(ge=0, le=1)] = 0.02
    """What "not worse" may lose, as a share. Ten questions won and ten lost of 420 leave a lower bound of -1.9
    points: a tighter bound would let no saving pass on splits of that size."""
    saving: Annotated[float, Field(gt=0, le=1)] = 0.10
    """Least saving in tokens or latency, as a share."""


class Gate(Section):
    """``[gate]``: checks before a candidate is measured."""

    checks: Literal["all", "none"] = "all"
    """``none``, for the ablation of the harness: no rules, repeats, dynamic tests, reviewer, audit of the result or
    development bar. The smoke run, the sandbox and the budgets stay."""
    reviewer: bool = True
    """Whether a reviewer model judges candidates (where the profile names one)."""
    review: Literal["whole", "change"] = "whole"
    """What it is shown: whole files and the constitution, or, for small models, the change and the rules it decides."""
    revisions: Annotated[int, Field(ge=0, le=5)] = 1
    """Times that its author may revise a candidate that did not run, or, with ``whole``, as the reviewer asks."""
    smoke_questions: Annotated[int, Field(ge=1, le=1000)] = 5
    """Questions of the smoke run: one of each type where the data has five."""


class AuthorSettings(Section):
    """``[author]``: how a model hands in a candidate."""

    form: Literal["function", "file", "tools"] = "function"
    """``function``: the new body of one named function (small models manage this); ``file``: a whole file in one call;
    ``tools``: researcher and implementer in conversations of their own, with tools."""
    team: Literal["separate", "single"] = "separate"
    """With tools: researcher and implementer apart, or ``single``, one conversation that does it all."""
    candidates: Annotated[int, Field(ge=1, le=10)] = 1
    """Attempts in a row that are made on what was known before the first of them."""
    attempts: Annotated[int, Field(ge=1, le=20)] = 3
    """Times that a malformed answer goes back with its error, the first included; not with tools."""
    protocol: Literal["tools", "text"] = "tools"
    """How tools are called: by the endpoint's tool interface (by text where it refuses that), or by text."""
    steps: Annotated[int, Field(ge=1, le=1_000)] = 40
    """With tools: replies of one conversation."""
    tokens: Annotated[int, Field(ge=1, le=2**53)] = 400_000
    """Prompt and completion tokens of one conversation."""
    seconds: Seconds = 3_600.0
    """Inside the calls of one conversation."""
    dollars: Annotated[float, Field(ge=0, allow_inf_nan=True)] = 2.0
    """US dollars of one conversation; no call is made after they are spent."""
    window: Annotated[int, Field(ge=2_000, le=10_000_000)] = 32_000
    """Tokens of one request with its reply; older results are left out of a longer conversation."""
    reply: Annotated[int, Field(ge=100, le=1_000_000)] = 6_000
    """Tokens of one reply."""
    runs: Annotated[int, Field(ge=0, le=100)] = 3
    """Runs on the whole development split in one proposal; three times as many on a few questions."""
    traces: Annotated[int, Field(ge=0, le=1_000)] = 12
    """Development questions that each role may look at in one proposal."""
    correctness: bool = False
    """Whether a trace tells if the answer was right. It leaks labels over many runs; the run's record says so."""


class MemorySettings(Section):
    """``[memory]``: what the search remembers of its attempts."""

    kind: Literal["records", "summary", "none"] = "records"
    """``records``: lessons are recalled by similarity, and a repeat of a failed idea is refused; ``summary``: authors
    are shown one line an attempt, the newest ones, and nothing is refused but identical files; ``none``: not even
    that is shown."""
    tokens: Annotated[int, Field(ge=0, le=1_000_000)] = 2_000
    """Token budget of the attempts that an author is shown. Not given by the source."""
    source: str = ""
    """An earlier run, by name or folder, whose lessons and failed ideas the search begins with; empty: none."""


class Cap(Section):
    """Upper bounds; a call that could pass one is not sent. Absent: no bound."""

    dollars: Amount | None = None
    """US dollars."""
    tokens: Count | None = None
    """Prompt plus completion tokens."""
    requests: Count | None = None
    """Calls answered or lost in flight."""
    seconds: Amount | None = None
    """Seconds inside model calls, waits included, added up over parallel calls."""


class Caps(Cap):
    """``[caps]``: bounds of the whole run, and ``[caps.roles.ROLE]`` of one role."""

    dollars: Amount | None = 10.0
    """US dollars; ``inf`` lifts the bound."""
    roles: dict[Role, Cap] = {}


class Price(Section):
    """``[prices."MODEL"]``: US dollars per million tokens."""

    input: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    cached_input: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """Absent: as ``input``."""
    output: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Reasoning tokens included."""
    minute: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """US dollars per minute of audio, for a transcriber that is priced so."""


class RoleModel(Section):
    """``[profiles.NAME.roles.ROLE]``: the model of one role."""

    model: Annotated[str, Field(min_length=1)]
    base_url: str = OPENAI_URL
    """Any endpoint that speaks the OpenAI protocol, with its ``/v1``."""
    key_env: str = ""
    """Environment variable that holds the key. At api.openai.com the default is OPENAI_API_KEY; elsewhere no key
    is sent unless one is named, so that a key never goes to a host it was not meant for."""
    key_file: str = ""
    """File that holds the key, instead."""
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    """Replaces what the harness asks for."""
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Replaces what the harness asks for; a model that reasons needs room for it."""
    seed: Count | None = None
    """Replaces what the harness asks for."""
    timeout: Seconds = 120.0
    """Seconds for one attempt."""
    deadline: Seconds = 600.0
    """Seconds for one call, all attempts and waits together."""
    attempts: Annotated[int, Field(ge=1, le=50)] = 8
    """Attempts of one call, the first included."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"base_url must be an http or https address, not {self.base_url[:200]!r}")
        if parts.username or parts.password:
            raise ValueError("base_url must not hold a password; name the key with key_env or key_file")
        if self.key_env and self.key_file:
            raise ValueError("give key_env or key_file, not both")
        return self

    @property
    def packaged(self) -> bool:
        """Whether it is the embedding model that comes as a package; address and key then count for nothing."""
        return self.model == PACKAGED_EMBEDDER

    @property
    def place(self) -> str:
        """Where it is served, for records and for people."""
        return "this process" if self.packaged else self.base_url

    @property
    def loopback(self) -> bool:
        """Whether the endpoint is on this machine."""
        if self.packaged:
            return True
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @property
    def key_variable(self) -> str:
        """The environment variable that the key is read from, or empty."""
        if self.packaged:
            return ""
        if self.key_env or self.key_file:
            return self.key_env
        return "OPENAI_API_KEY" if self.at_openai else ""

    @property
    def at_openai(self) -> bool:
        """Whether the endpoint is OpenAI's own."""
        return urlsplit(self.base_url).hostname == urlsplit(OPENAI_URL).hostname


class Profile(Section):
    """``[profiles.NAME]``: a model for each role. ``[profiles.NAME.default]`` is filled into the chat roles."""

    roles: dict[Role, RoleModel] = {}


class Settings(Section):
    """All sections."""

    run: Run = Run()
    budget: Budget = Budget()
    limits: Limits = Limits()
    promotion: Promotion = Promotion()
    gate: Gate = Gate()
    author: AuthorSettings = AuthorSettings()
    memory: MemorySettings = MemorySettings()
    caps: Caps = Caps()
    prices: dict[str, Price] = {}
    profiles: dict[str, Profile] = {}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for section, least in (("budget", 0), ("limits", 1e-9)):
            values = getattr(self, section)
            for field in dataclasses.fields(values):
                if not least <= getattr(values, field.name) < 2**53:
                    raise ValueError(f"{section}.{field.name} is out of range: {getattr(values, field.name)}")
        for name, profile in self.profiles.items():
            for role, model in profile.roles.items():
                if model.packaged and role is not Role.EMBEDDER:
                    raise ValueError(f"profiles.{name}.roles.{role}: {PACKAGED_EMBEDDER} embeds and does nothing else")
        if "offline" in self.profiles and self.profiles["offline"].roles:
            raise ValueError("profiles.offline has no models by definition; give the profile another name")
        return self
