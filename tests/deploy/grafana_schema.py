"""Holds a dashboard against Grafana's published models: the package grafana-foundation-sdk, made from its schemas.

What one would get wrong: the package reads anything. A field that the schema does not have is dropped without a word
and a value of another type is kept, so `complaints` reads, writes again and compares, and holds every value against
the type that the model declares.
"""

import enum
import json
import sys
import types
import typing

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

register_default_plugins()


def complaints(dashboard):
    """What is wrong with a dashboard (a dict), as a list of texts; empty when it fits."""
    try:
        model = Dashboard.from_json(dashboard)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        return [f"dashboard: cannot be read ({type(error).__name__}: {error}); expected Grafana's classic model"]
    written = json.loads(json.dumps(model, cls=JSONEncoder))
    return [*_lost(dashboard, written, "dashboard"), *_mistyped(model, "dashboard")]


def _lost(ours, theirs, path):
    """What of `ours` the model did not keep."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name, value in ours.items():
            if name in theirs:
                yield from _lost(value, theirs[name], f"{path}.{name}")
            elif value is not None:
                yield f"{path}.{name}: no such field in Grafana's schema; expected one of {', '.join(sorted(theirs))}"
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (mine, other) in enumerate(zip(ours, theirs)):
            yield from _lost(mine, other, f"{path}[{number}]")
    elif ours != theirs:
        yield f"{path}: {ours!r} is read as {theirs!r}"


def _mistyped(value, path):
    """Values of a model's attributes that are not of the declared type."""
    hints = typing.get_type_hints(type(value), vars(sys.modules[type(value).__module__]))
    for name, hint in hints.items():
        if hasattr(value, name):
            yield from _check(getattr(value, name), hint, f"{path}.{name}")


def _check(value, hint, path):
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return
        found = [list(_check(value, choice, path)) for choice in arguments if choice is not type(None)]
        if all(found):
            yield from min(found, key=len)
    elif origin is list:
        if not isinstance(value, list):
            yield f"{path}: {value!r}; expected a list"
        else:
            for number, item in enumerate(value):
                yield from _check(item, arguments[0], f"{path}[{number}]")
    elif origin is dict:
        if not isinstance(value, dict):
            yield f"{path}: {value!r}; expected an object"
        else:
            for key, item in value.items():
                yield from _check(item, arguments[1], f"{path}.{key}")
    elif origin is typing.Literal:
        if value not in arguments:
            yield f"{path}: {value!r}; expected one of {arguments}"
    elif hint in (object, typing.Any):
        if hasattr(value, "to_json"):
            yield from _mistyped(value, path)
    elif isinstance(hint, type) and issubclass(hint, enum.Enum):
        if value not in [member.value for member in hint]:
            yield f"{path}: {value!r}; expected one of {[member.value for member in hint]}"
    elif hint is float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            yield f"{path}: {value!r}; expected a number"
    elif hint in (int, str, bool):
        if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
            yield f"{path}: {value!r}; expected {hint.__name__}"
    elif hasattr(value, "to_json"):
        if isinstance(hint, type) and not isinstance(value, hint):
            yield f"{path}: {type(value).__name__}; expected {hint.__name__}"
        yield from _mistyped(value, path)
    elif isinstance(hint, type) and hasattr(hint, "from_json") and isinstance(value, dict):
        # The package leaves links as they are.
        model = hint.from_json(value)
        written = json.loads(json.dumps(model, cls=JSONEncoder))
        yield from _lost(value, written, path)
        yield from _mistyped(model, path)
    else:
        yield f"{path}: {value!r}; expected {getattr(hint, '__name__', hint)}"
