"""The card: what is measured and how it is reached. Load, check, resolve, hash.

A card is one JSON object; `load_card` turns it into a `Card` or raises a `CardError` that names the
file, every wrong field and the nearest known name. Relative paths in a card are relative to it.
"""

import ipaddress
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn
from urllib.parse import urlsplit

from pydantic import (
    Field,
    FiniteFloat,
    JsonValue,
    ValidationError,
    field_validator,
    model_validator,
)

from qualeval.errors import CardError, did_you_mean
from qualeval.masking import holds_secret, mask
from qualeval.records import PART_NAMES, Json, Record, ThinkingMode, canonical, sha256_of

Dialect = Literal["vllm", "sglang", "llama.cpp", "openai"]
Positive = Annotated[int, Field(gt=0, strict=True)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]

EMBEDDED_MODELS = ("smollm2-135m-instruct",)

OURS = frozenset(
    ("messages", "model", "max_tokens", "max_completion_tokens", "seed", "n", "stream")
    + ("stream_options", "cache_prompt", "cache_salt", "stop", "tools", "logprobs")
)
"""Request fields that the method sets (or leaves out) itself; a card cannot."""

MADE_PARTS = ("ruler",)
"""Parts whose texts are made, of `lengths` and `per_task`; all others are of a list."""

SECRET_NAMES = frozenset(
    ("api_key", "apikey", "key", "token", "api_token", "access_token", "authorization", "auth")
    + ("password", "passwd", "secret", "bearer", "hf_token", "credentials", "headers")
)


class Endpoint(Record):
    """One server of several that serve the same model; its slots are its own."""

    base_url: str
    slots: Positive | None = None

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, url: str) -> str:
        return checked_url(url)


class Server(Record):
    """Where the model is: exactly one of `base_url`, `endpoints`, `embedded`."""

    base_url: str | None = None
    endpoints: tuple[Endpoint, ...] | None = None
    embedded: str | None = None
    model: str | None = None
    dialect: Dialect = "openai"
    slots: Positive | None = None
    slots_source: str | None = None
    context_tokens: Positive | None = None
    context_source: str | None = None
    api_key_env: str | None = None
    engine_version_file: str | None = None

    @field_validator("base_url")
    @classmethod
    def _plain_url(cls, url: str | None) -> str | None:
        return None if url is None else checked_url(url)

    @field_validator("api_key_env")
    @classmethod
    def _name_of_a_variable(cls, name: str | None) -> str | None:
        if name is not None and (holds_secret(name) or not name.isidentifier() or len(name) > 100):
            raise ValueError("must be the name of an environment variable, not a key")
        return name

    @model_validator(mode="before")
    @classmethod
    def _embedded_defaults(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("embedded"):
            own = {"model": data["embedded"], "dialect": "llama.cpp", "slots": 4}
            own |= {"context_tokens": 4096, "slots_source": "embedded server"}
            given = {n: v for n, v in data.items() if v is not None or n not in own}
            return own | given
        return data

    @model_validator(mode="after")
    def _one_place(self) -> "Server":
        given = [n for n in ("base_url", "endpoints", "embedded") if getattr(self, n)]
        if len(given) != 1:
            said = " and ".join(given) if given else "none of them"
            raise ValueError(f"give exactly one of base_url, endpoints, embedded (given: {said})")
        if self.embedded and self.embedded not in EMBEDDED_MODELS:
            hint = did_you_mean(self.embedded, EMBEDDED_MODELS)
            raise ValueError(f"unknown embedded model '{self.embedded}'{hint}")
        if not self.model:
            raise ValueError("model is missing: the name that the server lists at /v1/models")
        if self.endpoints and self.slots:
            raise ValueError("with endpoints, give slots for each endpoint, not for the server")
        return self

    def places(self) -> tuple[Endpoint, ...]:
        """The endpoints as given; a single base_url is one endpoint with the server's slots."""
        if self.endpoints:
            return self.endpoints
        return (Endpoint(base_url=self.base_url or "http://127.0.0.1/v1", slots=self.slots),)


class ModelSetup(Record):
    """Which weights are served."""

    repo: str | None = None
    revision: str | None = None
    quantization: str | None = None
    kv_dtype: str | None = None


class EngineSetup(Record):
    """Which engine serves them."""

    name: str | None = None
    version: str | None = None
    base: str | None = None
    image: str | None = None


class RecipeSetup(Record):
    """The recipe the server was started by."""

    name: str | None = None
    release: str | None = None
    commit: str | None = None
    author: str | None = None


class Deviation(Record):
    """One place where the server differs from its recipe."""

    what: str
    recipe_says: str | None = None
    here: str | None = None
    source: str | None = None


class Setup(Record):
    """What runs where, for the reader of the page; unknown stays null."""

    hardware: str | None = None
    model: ModelSetup | None = None
    engine: EngineSetup | None = None
    recipe: RecipeSetup | None = None
    speculative: str | None = None
    start_command: str | None = None
    credits: tuple[str, ...] = ()
    deviations: tuple[Deviation, ...] = ()


class Reference(Record):
    """A figure that others published: shown as published, never compared."""

    label: str
    value: FiniteFloat
    unit: str | None = None
    date: str | None = None
    method: str | None = None
    source: str | None = None


class PartSettings(Record):
    """What a card may set for one part; None is the method's own value."""

    list: str = "official"
    max_tokens: Positive | None = None
    limit: Positive | None = None
    lengths: tuple[Positive, ...] | None = None
    per_task: Positive | None = None
    repeats: Positive = 1


class Thinking(Record):
    """The object merged into each request to switch thinking off or on; None sends nothing."""

    off: Json | None = None
    on: Json | None = None

    @field_validator("off", "on")
    @classmethod
    def _no_own_fields(cls, switch: Json | None) -> Json | None:
        refuse_own_fields(switch or {})
        return switch

    def of(self, mode: ThinkingMode) -> Json | None:
        """The switch for one mode."""
        return self.off if mode == "off" else self.on


class Timeouts(Record):
    """Seconds. `idle` counts from the first byte of a stream; `total` None is set by the part."""

    connect: Seconds = 10.0
    idle: Seconds = 300.0
    total: Seconds | None = None

    def total_for(self, max_tokens: int) -> float:
        """Half an hour of queue and prompt, and 2 tokens a second after that."""
        return self.total if self.total is not None else 1800.0 + max_tokens / 2


class Retries(Record):
    """How often one request is sent at most, and the longest wait in seconds, for a single retry
    (a Retry-After header included) as for a server that went away.
    """

    attempts: Positive = 5
    max_wait: Seconds = 60.0


class Gate(Record):
    """How much worse `compare` may find a part, in points."""

    margin_points: Annotated[float, Field(gt=0, lt=100)]


class Card(Record):
    """A card with all defaults filled in."""

    label: Annotated[str, Field(min_length=1)]
    server: Server
    sampling: Json = {}
    sampling_source: str | None = None
    seed: Annotated[int, Field(strict=True, ge=0)] = 42
    thinking: Thinking = Thinking()
    tokenizer: str | None = None
    parts: dict[str, PartSettings] = {}
    timeouts: Timeouts = Timeouts()
    retries: Retries = Retries()
    setup: Setup | None = None
    references: tuple[Reference, ...] = ()
    notes: str | None = None
    gate: Gate | None = None

    @field_validator("parts")
    @classmethod
    def _known_parts(cls, parts: dict[str, PartSettings]) -> dict[str, PartSettings]:
        for name, part in parts.items():
            if name not in PART_NAMES:
                raise ValueError(f"unknown part '{name}'{did_you_mean(name, PART_NAMES)}")
            for field in ("lengths", "per_task"):
                if name not in MADE_PARTS and getattr(part, field) is not None:
                    made = ", ".join(MADE_PARTS)
                    raise ValueError(f"'{name}.{field}' is of no use: only {made} has {field}")
        return parts

    @field_validator("sampling")
    @classmethod
    def _no_own_fields(cls, sampling: Json) -> Json:
        refuse_own_fields(sampling)
        if {"off", "on"} & set(sampling):
            if not all(isinstance(sampling.get(mode), dict) for mode in ("off", "on")):
                raise ValueError("give either sampling fields, or an object for both off and on")
            if set(sampling) != {"off", "on"}:
                raise ValueError("beside off and on no other field can stand")
        return sampling

    @property
    def sha256(self) -> str:
        """Hash of the resolved card."""
        return sha256_of(self.model_dump(mode="json"))

    def sampling_for(self, mode: ThinkingMode) -> Json:
        """The sampling fields sent in this thinking mode, exactly as given."""
        chosen = self.sampling.get(mode, self.sampling)
        return dict(chosen) if isinstance(chosen, dict) else {}

    def part(self, name: str) -> PartSettings:
        """The settings of a part; the method's where the card names none."""
        return self.parts.get(name, PartSettings())


def refuse_own_fields(fields: Mapping[str, JsonValue], where: str = "") -> None:
    """Raise ValueError when a field of the request is named that the method sets itself."""
    for name, value in fields.items():
        if name == "extra_body":
            raise ValueError(
                "'extra_body' is a word of one client library; put its fields here directly"
            )
        if name in OURS:
            raise ValueError(f"'{where}{name}' is set by the method and cannot be given here")
        if name in ("off", "on") and isinstance(value, dict):
            refuse_own_fields(value, f"{name}.")


def checked_url(url: str) -> str:
    """A base URL without its trailing slash; ValueError when it is none or holds credentials."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise ValueError("is no URL; write it like http://127.0.0.1:8000/v1") from None
    if parts.username or parts.password or "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(
            "must hold no user, password or query; name the key's variable in api_key_env"
        )
    if not url.isprintable() or " " in url:
        raise ValueError("must hold no space and no control character")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must start with http:// or https://, like http://127.0.0.1:8000/v1")
    return url.rstrip("/")


def is_loopback(url: str) -> bool:
    """True for an address on this machine, which no proxy can reach."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def load_card(path: Path) -> Card:
    """The card at `path`. Raises CardError with one line for every fault found."""
    try:
        raw = json.loads(
            path.read_bytes().decode("utf-8"),
            object_pairs_hook=_no_double_names,
            parse_constant=_no_such_number,
            parse_float=_finite,
        )
    except OSError as error:
        raise CardError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CardError(f"{path}: is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise CardError(f"{path}: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise CardError(mask(f"{path}: {error}")) from None
    return parse_card(raw, str(path))


def parse_card(raw: object, where: str) -> Card:
    """The card that a decoded JSON object describes; `where` opens every message."""
    if not isinstance(raw, dict):
        raise CardError(f"{where}: a card is one JSON object, with at least label and server")
    try:
        secrets = [f"{where}: {fault}" for fault in _secrets_in(raw)]
        if secrets:
            raise CardError("\n".join(secrets))
        canonical(raw).encode()
        return Card.model_validate(raw)
    except RecursionError:
        raise CardError(f"{where}: is nested too deeply") from None
    except UnicodeEncodeError:
        half = "holds half of a surrogate pair (an escape such as \\ud835 alone), which is no text"
        raise CardError(f"{where}: {half}") from None
    except ValidationError as error:
        faults = [f"{where}: {_explain(fault)}" for fault in error.errors(include_url=False)]
        raise CardError("\n".join(dict.fromkeys(faults))) from None


def _secrets_in(value: object, path: str = "") -> Iterator[str]:
    """Faults for every key or password in clear, without the value."""
    if isinstance(value, dict):
        for name, inner in value.items():
            here = f"{path}.{name}" if path else str(name)
            if holds_secret(str(name)):
                yield f"{path or 'card'}: the name of a field holds a key or a password"
            elif str(name).lower().replace("-", "_") in SECRET_NAMES and inner:
                yield (
                    f"{here}: a key in clear text is refused; put it into an environment "
                    "variable and name that in server.api_key_env"
                )
            else:
                yield from _secrets_in(inner, here)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _secrets_in(inner, f"{path}[{index}]")
    elif isinstance(value, str) and holds_secret(value):
        yield f"{path}: holds a key or a password in clear text; take it out of the card"


def _explain(fault: Any) -> str:
    """One line for one fault that pydantic found: field, what is wrong, nearest known name."""
    location = list(fault["loc"])
    field = _path_text(location)
    if fault["type"] == "extra_forbidden":
        known = _fields_at(location[:-1])
        return f"{field}: unknown field{did_you_mean(str(location[-1]), known)}"
    if fault["type"] == "missing":
        return f"{field}: is missing"
    message = str(fault["msg"]).removeprefix("Value error, ").replace("Input should", "should")
    return f"{field}: {message}" if field else message


def _path_text(location: list[Any]) -> str:
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def _fields_at(location: list[Any]) -> list[str]:
    """Names of the fields that the record at this place of a card has."""
    record: Any = Card
    for step in location:
        if step in record.model_fields:
            record = _record_in(record.model_fields[step].annotation) or record
    return list(record.model_fields)


def _record_in(annotation: Any) -> Any:
    """The record inside an annotation such as `X | None`, `tuple[X, ...]` or `dict[str, X]`."""
    if hasattr(annotation, "model_fields"):
        return annotation
    return next(filter(None, map(_record_in, getattr(annotation, "__args__", ()))), None)


def _no_double_names(pairs: list[tuple[str, object]]) -> dict[str, object]:
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"field '{name}' is given twice")
    return dict(pairs)


def _finite(word: str) -> float:
    value = float(word)
    return value if math.isfinite(value) else _no_such_number(word)


def _no_such_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is not a number that JSON has")
