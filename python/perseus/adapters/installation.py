"""Wraps functions of a framework with the client's hooks, and unwraps them again.

Input:   an owner (an object, class or module of the framework) and the names of its callables. A second installation
         changes nothing. A name that this version of the framework lacks is logged once and skipped.
Errors:  if a hook or this module fails, the framework's function still runs, with its own arguments, result and
         exceptions.
"""

import functools

from perseus import client

_MARK = "_perseus_installation"
_HOOK = "_perseus_hook"


class Installation:
    def __init__(self, owner, options_of):
        """options_of(args, kwargs): the options (perseus_options) that the framework provides, read before the first step."""
        self._owner, self._options_of = owner, options_of
        self._replaced = []
        self._asked_to_start = False
        setattr(owner, _MARK, self)

    def replace(self, owner, name, wrapped, needed=True):
        """Sets owner.name = wrapped(owner.name) until uninstall()."""
        original = getattr(owner, name, None)
        if not callable(original):
            if needed:
                client.say_once("%s has no %s in this version: not measured, not planned", _name(owner), name)
            return
        if getattr(original, _HOOK, False):  # already wrapped: two schedules share the stage
            return
        replacement = functools.wraps(original)(wrapped(original))
        setattr(replacement, _HOOK, True)
        self._replaced.append((owner, name, vars(owner).get(name), replacement))
        setattr(owner, name, replacement)

    def replace_entry(self, table, key, wrapped):
        replacement = functools.wraps(table[key])(wrapped(table[key]))
        self._replaced.append((table, key, table[key], replacement))
        table[key] = replacement

    def step(self, original, kind_of, prepare=None):
        """Returns `original` as one iteration. kind_of(args, kwargs): "train" or "evaluate"; prepare(args, kwargs) runs
        before it."""

        def step(*args, **kwargs):
            kind = "train"
            try:
                kind = kind_of(args, kwargs)
                if prepare is not None:
                    prepare(args, kwargs)
                if kind == "train" and not self._asked_to_start:
                    self._start(args, kwargs)
            except Exception as error:
                client.say_once("before a step of %s: %r", _name(self._owner), error)
            client.on_step_begin(kind)
            try:
                return original(*args, **kwargs)
            finally:
                client.on_step_end()

        return step

    def _start(self, args, kwargs):
        self._asked_to_start = True
        if client.current() is not None:
            return
        options = {}
        try:
            options = self._options_of(args, kwargs)
        except Exception as error:
            client.say_once("the options of %s cannot be read, pass them to perseus.client.start(): %r", _name(self._owner), error)
        client.start(**options)

    def uninstall(self):
        """Restores all originals, except functions that other code has wrapped since: those hooks stay and do no harm."""
        for owner, name, original, replacement in reversed(self._replaced):
            if isinstance(owner, dict):
                if owner.get(name) is replacement:
                    owner[name] = original
            elif vars(owner).get(name) is replacement:
                if original is None:  # the object inherited it from its class
                    delattr(owner, name)
                else:
                    setattr(owner, name, original)
        self._replaced.clear()
        if getattr(self._owner, _MARK, None) is self:
            delattr(self._owner, _MARK)


def installed(owner):
    return vars(owner).get(_MARK)


def around(original, computation_of, ended=lambda computation: client.on_instruction_end(*computation)):
    """Returns `original` as one computation.

    computation_of(args, kwargs): (instruction, microbatch, chunk), or None if the call is no computation.
    ended(computation) runs after `original` returns; if `original` raises, the computation ends at once."""

    def computation(*args, **kwargs):
        try:
            computation = computation_of(args, kwargs)
        except Exception as error:
            computation = None
            client.say_once("%s has unexpected arguments, this call is not measured: %r", _name(original), error)
        if computation is None:
            return original(*args, **kwargs)
        client.on_instruction_begin(*computation)
        try:
            result = original(*args, **kwargs)
        except BaseException:
            client.on_instruction_end(*computation)
            raise
        ended(computation)
        return result

    return computation


def argument(args, kwargs, position, name, otherwise=-1):
    return args[position] if len(args) > position else kwargs.get(name, otherwise)


def merged(known, given):
    """Merges options: those given to install() take precedence over the framework's; facts are merged one by one."""
    options = {**known, **given}
    if isinstance(known.get("facts"), dict) and isinstance(given.get("facts"), dict):
        options["facts"] = {**known["facts"], **given["facts"]}
    return options


def _name(owner):
    return getattr(owner, "__qualname__", None) or getattr(owner, "__name__", None) or type(owner).__name__
