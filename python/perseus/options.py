"""Collects the options of a client: arguments, then PERSEUS_... variables, then torchrun's, then the library's defaults.

Input:   the fields of perseus_options by name (PERSEUS_SERVER, ... in the environment): facts and labels as a dict or text,
         action_table as text (in the environment: a file); advice_only, no_energy, synchronous and paces in place of flags.
         Missing ranks and degrees follow from RANK and WORLD_SIZE, with pipeline stages outermost and tensor parallel
         ranks innermost (the order of Megatron, DeepSpeed and torchtitan).
Output:  the struct perseus_options, filled in.
Errors:  TypeError or ValueError with the option and its value. On request, a wrong variable is only ignored.
"""

import math
import operator
import os
import re
from ctypes import c_char_p, c_double, c_int

from perseus import library

_KIND = {c_char_p: "text", c_int: "whole number", c_double: "number"}
KINDS = {name: _KIND[type_] for name, type_, *_ in library.Options._fields_ if type_ in _KIND}
FLAGS = {
    "advice_only": library.ADVICE_ONLY,
    "no_energy": library.NO_ENERGY,
    "synchronous": library.SYNCHRONOUS,
    "paces": library.PACES,
}
_DEGREES = ("dp_degree", "pp_degree", "tp_degree")
_SEPARATORS = {"facts": "\n", "labels": ","}  # of options that may be dicts
_FILES = ("action_table",)  # the environment variable names a file
_OF_THE_LIBRARY = ("plan_tolerance", "domain", "least_rate", "priority")  # the library reads these variables itself
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")
_LARGEST = 2**31 - 1  # of a C int


def collect(arguments, environment=os.environ, remark=None):
    """Returns given(), with the place of this rank among all."""
    options = given(arguments, environment, remark)
    _place(options, environment, remark)
    return options


def given(arguments, environment=os.environ, remark=None):
    """Returns the given options as a dict of Python values; None counts as not given.

    A wrong variable raises, as a wrong argument does. With `remark`, and without PERSEUS_STRICT=1, the variable counts as
    not set, and remark() gets a sentence about it.
    """
    unknown = sorted(set(arguments) - set(KINDS) - set(FLAGS) - {"world_size"})
    if unknown:
        raise TypeError(f"unknown option: {', '.join(unknown)}; allowed: {', '.join([*KINDS, *FLAGS])}")
    options = {name: _value(name, value) for name, value in arguments.items() if value is not None}
    for name in [*KINDS, *FLAGS]:
        text = environment.get("PERSEUS_" + name.upper())
        if text and name not in options and name not in _OF_THE_LIBRARY:
            try:
                options[name] = _read(name, text) if name in _FILES else _value(name, text)
            except (TypeError, ValueError) as error:
                if remark is None or is_set("PERSEUS_STRICT", environment):
                    raise
                remark(f"PERSEUS_{name.upper()} is {_without_user(text)!r}, ignored: {error}")
    return options


def is_set(name, environment=os.environ):
    """Of PERSEUS_DISABLE, PERSEUS_STRICT."""
    return environment.get(name, "").lower() not in _FALSE


def undetermined_degrees(options, environment=os.environ):
    """Returns the degrees without which options and the number of ranks leave the place of a rank open."""
    missing = [name for name in _DEGREES if name not in options]
    world = options.get("world_size") or whole(environment, "WORLD_SIZE")
    if world is None:
        return missing if "pp_degree" in missing else []
    return missing if len(missing) > 1 and math.prod(options.get(name, 1) for name in _DEGREES) != world else []


def fill(struct, options):
    for name, value in options.items():
        if name in FLAGS:
            struct.flags |= FLAGS[name] if value else 0
        elif name in KINDS:
            setattr(struct, name, value.encode() if KINDS[name] == "text" else value)


def _value(name, value):
    value = _of_kind(name, value)
    if name == "server" and value and not all(_is_url(url) for url in _urls(value)):
        raise ValueError(f"option server: {_without_user(value)!r} is no URL; allowed: http://HOST:PORT, https://HOST:PORT, "
                         "several with commas between")
    if name in _DEGREES and value < 1:
        raise ValueError(f"option {name}: {value} is below 1")
    return value


def _of_kind(name, value):
    try:
        if name in FLAGS:
            return _flag(value) if isinstance(value, str) else bool(value)
        kind = KINDS.get(name, "whole number")
        if kind == "text":
            if name in _SEPARATORS and isinstance(value, dict):
                value = _SEPARATORS[name].join(f"{key}={part}" for key, part in value.items())
            value = os.fspath(value)
            if not isinstance(value, str) or "\0" in value:
                raise TypeError
            return value
        if kind == "number":
            return float(value)
        value = int(value) if isinstance(value, str) else operator.index(value)
        if abs(value) > _LARGEST:
            raise ValueError
        return value
    except (TypeError, ValueError):
        allowed = f"one of {', '.join(_TRUE + _FALSE[:-1])}" if name in FLAGS else KINDS.get(name, "whole number")
        if allowed == "whole number":
            allowed += f" of at most {_LARGEST}"
        raise TypeError(f"option {name}: {value!r} is no {allowed}") from None


def _is_url(text):
    """As the library reads it; the port may be missing, a path may follow."""
    match = re.fullmatch(r"https?://(?:[^/]*@)?(?:\[[^][/\s]+\]|[^][:/@\s]+)(?::(\d{1,5}))?(?:/.*)?", text)
    return match is not None and int(match[1] or 0) < 2**16


def _urls(text):
    """A comma may also be part of a password or a path."""
    return re.split(r",(?=https?://)", text)


def _without_user(text):
    """The part of a URL before '@' may be a token."""
    return re.sub(r"(?<=://)[^/]*?@", "", text) if "," not in text else ",".join(map(_without_user, _urls(text)))


def _flag(text):
    if text.lower() not in _TRUE + _FALSE:
        raise ValueError
    return text.lower() in _TRUE


def _read(name, path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeError) as error:
        raise ValueError(f"option {name}: {path}: {error}") from None


def _place(options, environment, remark):
    """Completes ranks and degrees from each other and from RANK and WORLD_SIZE."""
    for name in ("RANK", "WORLD_SIZE") if remark is not None else ():
        if environment.get(name) and whole(environment, name) is None:
            remark(f"{name} is {environment[name]!r}, ignored: no whole number")
    world = options.pop("world_size", None) or whole(environment, "WORLD_SIZE") or None
    if "rank" not in options and whole(environment, "RANK") is not None:
        options["rank"] = whole(environment, "RANK")
    if world is not None:
        # A missing pp_degree is the remaining factor of the world's size; if pp_degree is given, dp_degree is.
        for degree, others in (("pp_degree", ("dp_degree", "tp_degree")), ("dp_degree", ("pp_degree", "tp_degree"))):
            product = options.get(others[0], 1) * options.get(others[1], 1)
            if degree not in options and world % product == 0:
                options[degree] = world // product
    dp, pp, tp = (options.setdefault(degree, 1) for degree in _DEGREES)
    if world is not None and dp * pp * tp != world:
        raise ValueError(f"dp_degree {dp} x pp_degree {pp} x tp_degree {tp} is not the world's size, {world}")
    rank = options.get("rank", 0)
    if not 0 <= rank < dp * pp * tp:
        raise ValueError(f"option rank: {rank} is not below dp_degree x pp_degree x tp_degree, {dp * pp * tp}")
    options.setdefault("tp_rank", rank % tp)
    options.setdefault("dp_rank", rank // tp % dp)
    options.setdefault("pp_rank", rank // (tp * dp))


def whole(environment, name):
    """Of a variable of torchrun; None: not set, or no number."""
    text = environment.get(name, "")
    return int(text) if text.isdecimal() else None
