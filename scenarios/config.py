"""What a run is: a scenario of ours or a person's TOML file, checked before anything starts."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from netsim.kernel import INBOX_MESSAGES
from netsim.network import PRESETS
from scenarios.quantities import BitsPerSecond, Nanoseconds

CATALOG = Path(__file__).parent / "catalog"
SCALES = ("smoke", "laptop", "paper")
_MAX_SEED = 2**32 - 1

Count = Annotated[int, Field(ge=1)]


class ConfigError(ValueError):
    """A configuration that cannot be run; names the file and key, and what is allowed."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StreamConfig(_Section):
    """Where a stream of the query comes from.

    Attributes
    ----------
    name
        As the query spells it; by default the streams of the query in their order.
    files
        Candidates: the first that is found is read, as given, or in one of the data folders.
    time
        Column or SQL expression of the event time; None looks for one.
    where
        SQL condition on the rows to take; None takes all.
    """

    name: str | None = None
    files: tuple[str, ...]
    time: str | None = None
    where: str | None = None


class LinkConfig(_Section):
    """One link that differs from the preset: between sites *a* and *b*."""

    a: str
    b: str
    latency: Nanoseconds | None = Field(default=None, ge=0)
    jitter: Nanoseconds | None = Field(default=None, ge=0)
    bandwidth: BitsPerSecond | None = Field(default=None, ge=1)


class NetworkConfig(_Section):
    """The network: a preset, and what differs from it.

    Attributes
    ----------
    preset
        Kind of network, see `netsim.network.PRESETS`.
    latency, bandwidth
        Of every link, in place of the preset's.
    jitter, latency_kind
        Spread of the latency, and its distribution.
    cores
        Of each site.
    inbox_messages
        Room of each actor's inbox.
    links
        Single links that differ.
    """

    preset: Literal[tuple(PRESETS)] = "rack"  # type: ignore[valid-type]
    latency: Nanoseconds | None = Field(default=None, ge=0)
    jitter: Nanoseconds | None = Field(default=None, ge=0)
    latency_kind: Literal["constant", "uniform", "normal", "pareto"] | None = None
    bandwidth: BitsPerSecond | None = Field(default=None, ge=1)
    cores: Count = 1
    inbox_messages: Count = INBOX_MESSAGES
    links: tuple[LinkConfig, ...] = ()


class FeedingConfig(_Section):
    """How streams are fed in: tuples a message, and tuples per virtual second (None: at most)."""

    batch_rows: Count = 500
    rate_tps: Count | None = None


class RunConfig(_Section):
    """One run, whole.

    Attributes
    ----------
    name, title, figure
        What it is called, one line about it, and which figure or table of a paper it belongs to.
    topology, parameters
        The system and what is set of it.
    query, bind
        The query's text, and values of its placeholders.
    streams
        Where the query's streams come from.
    rows
        Tuples taken of each stream; None takes all.
    feeding, network, profile
        How fast, over what, and what work costs.
    backend, processes, seed, pairs
        Where actors live, in how many processes, the run's seed, whether pairs are written.
    scales
        Per scale, what it changes of all this.
    """

    name: str = "custom"
    title: str = ""
    figure: str | None = None
    topology: str = "spo_join"
    parameters: dict[str, Any] = {}
    query: str
    bind: dict[str, str | int] = {}
    streams: tuple[StreamConfig, ...]
    rows: Count | None = None
    feeding: FeedingConfig = FeedingConfig()
    network: NetworkConfig = NetworkConfig()
    profile: str = "default"
    backend: Literal["inline", "ray"] = "inline"
    processes: Count = 2
    seed: int = Field(default=1, ge=0, le=_MAX_SEED)
    pairs: bool = False
    scales: dict[Literal[SCALES], dict[str, Any]] = {}  # type: ignore[valid-type]


def catalog() -> dict[str, Path]:
    """Return the files of our own scenarios by name."""
    return {path.stem: path for path in sorted(CATALOG.glob("*.toml"))}


def load(name_or_path: str, *, scale: str = "laptop") -> RunConfig:
    """Read a scenario by name, or a TOML file, at a scale.

    Raise :exc:`ConfigError` naming the scenarios there are, or the key that is wrong.
    """
    path = Path(name_or_path)
    if path.suffix != ".toml":
        path = _find(name_or_path)
    elif not path.is_file():
        raise ConfigError(f"there is no file {path}")
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    values.setdefault("name", path.stem)
    changes = values.get("scales", {}).get(scale, {})
    return build(_merge(values, changes), where=str(path))


def build(values: dict[str, Any], *, where: str) -> RunConfig:
    """Check *values* and return the configuration.

    Raise :exc:`ConfigError` that names *where* they come from and every key that is wrong.
    """
    try:
        return RunConfig.model_validate(values)
    except ValidationError as error:
        raise ConfigError(f"{where}: {explain(error, RunConfig)}") from None


def change(config: RunConfig, settings: dict[str, Any]) -> RunConfig:
    """Return *config* with *settings* changed, keys as on the command line.

    A key of the configuration, dotted inside a section (``network.preset``, ``bind.W``); any other
    key is a parameter of the topology.
    """
    values = config.model_dump()
    for key, value in settings.items():
        section, _, rest = key.partition(".")
        if rest:
            if not isinstance(values.get(section), dict):
                sections = sorted(k for k, v in values.items() if isinstance(v, dict))
                hint = _hint(section, sections)
                raise ConfigError(
                    f"--set {key}: there is no section {section!r}; {hint}there are "
                    f"{', '.join(sections)}"
                )
            values[section] = values[section] | {rest: value}
        elif key in values:
            values[key] = value
        else:
            values["parameters"] = values["parameters"] | {key: value}
    return build(values, where="settings")


def explain(error: ValidationError, model: type) -> str:
    """Say of each mistake which key of *model* is wrong, what it was, and what is allowed."""
    lines = []
    for mistake in error.errors():
        key = ".".join(str(part) for part in mistake["loc"])
        if mistake["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
            allowed = _keys(model, mistake["loc"][:-1])
            hint = _hint(str(mistake["loc"][-1]), allowed)
            lines.append(f"{key}: there is no such key; {hint}there are {', '.join(allowed)}")
        elif mistake["type"] == "missing":
            lines.append(f"{key}: is missing")
        else:
            message = mistake["msg"].removeprefix("Value error, ")
            lines.append(f"{key} = {mistake['input']!r}: {message[0].lower()}{message[1:]}")
    return "; ".join(lines)


def _keys(model: type, path: tuple[int | str, ...]) -> list[str]:
    """Return the keys of the section of *model* that *path* leads to."""
    for part in path:
        if isinstance(part, str):
            annotation = get_type_hints(model)[part]
            kinds = [k for k in (annotation, *get_args(annotation)) if isinstance(k, type)]
            model = next(kind for kind in kinds if issubclass(kind, BaseModel))
    if is_dataclass(model):
        return [field.name for field in fields(model)]
    return list(get_type_hints(model))


def _hint(name: str, allowed: Iterable[str]) -> str:
    near = get_close_matches(name, list(allowed), n=1)
    return f"did you mean {near[0]!r}? " if near else ""


def _find(name: str) -> Path:
    scenarios = catalog()
    if name in scenarios:
        return scenarios[name]
    raise ConfigError(
        f"no scenario is called {name!r}: {_hint(name, scenarios)}there are "
        f"{', '.join(scenarios)}; or give a TOML file"
    )


def _merge(values: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    merged = dict(values)
    for key, change_ in changes.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(change_, dict)
        merged[key] = _merge(old, change_) if both else change_  # type: ignore[arg-type]
    return merged
