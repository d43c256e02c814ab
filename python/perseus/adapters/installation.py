"""What all adapters share: wraps functions of a framework with the client's hooks, starts the client, watches for silence.

Input:   an owner (an object, class or module of the framework) and the names of its callables. A name that this version of
         the framework lacks is logged once and skipped.
Copies:  what install() leaves in an object pickles to nothing, and a copy of the object runs as if there were no Perseus.
Places:  when ranks, degrees or the number of processes change (a restart within the process, an elastic job), the client
         registers anew. Each time it waits for twice as many steps at the new place, since places may alternate.
Silence: if no training step comes, or comes any more while an optimizer steps, one line says so, and what to look at.
One job: a process has one client. It follows the model, engine or pipeline that trains first, or that replaces it; another
         one beside it is not measured.
Errors:  if a hook or this module fails, the framework's function still runs, with its own arguments, result and
         exceptions. What the program's handler of a signal raises passes (perseus/signals.py).
"""

import collections
import functools
import inspect
import itertools
import logging
import os
import sys
import threading
import time
import types
import weakref

from perseus import client, job_id, signals
from perseus import options as option_values

_MARK = "_perseus_installation"
_HOOK = "_perseus_hook"
_ORDERS = ("schedule", "action_table")
_MOST_SHAPES = 1000
_MOST_PATIENCE = 1024  # steps
_SILENCE_S, _SILENCE_COUNT = 60, 20

_ticks = itertools.count()  # of installations and training steps
_followed = (None, None, 0)  # the client, a reference to what it follows, the tick of its last step
_open_step = None  # the installation whose step runs
_BESIDE = object()  # in place of it, while a step of another installation runs within that step
_registered = (None, None)  # the client, and the place where it is registered
_moves, _elsewhere = 0, (None, 0)  # registrations at another place; a new place, and its steps in a row
_listeners = ()  # to steps of optimizers


def checks_arguments(function):
    """Wraps an adapter's install(): arguments that do not fit its parameters are refused as wrong options are."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def install(*arguments, **options):
        try:
            signature.bind(*arguments, **options)
        except TypeError as error:
            return client.refuse(TypeError(f"{function.__module__}.install(): {error}"))
        return function(*arguments, **options)

    return install


def install(find, options, wrap):
    """What each adapter's install() does. find(): what is to be followed; wrap(owner, options): its installation, unless
    there is one, which then gets the options. Returns the installation; None if the owner cannot be followed.

    With PERSEUS_STRICT=1, raises what is wrong with the options; nothing else."""
    owner = None
    try:
        options = option_values.given(options, remark=client.say_once)
    except Exception as error:
        signals.pass_on(error)
        return client.refuse(error)
    try:
        owner = find()
        existing = installed(owner)
        if existing is None:
            return wrap(owner, options)
        existing.again(options)
        return existing
    except ImportError as error:
        client.say_once("nothing is measured or planned: %s", error)
    except Exception as error:
        shown = repr(owner) if type(owner) in (str, int, float, type(None)) else _name(owner)
        client.ignore(error, "%s cannot be followed, nothing is measured or planned: %r", shown, error)
    uninstall(lambda: owner)
    return None


def uninstall(find):
    try:
        existing = installed(find())
    except (ImportError, AttributeError):
        return
    if existing is not None:
        existing.uninstall()


class Installation:
    def __init__(self, owner, options, look_at, shape, place=lambda *_: {}, start=None):
        """options: those of install(); look_at: what to look for if no training step comes. shape(args, kwargs) and
        place(args, kwargs): what the framework knows before the first step: microbatches and order of computations, ranks
        and degrees. start: called in place of client.start()."""
        self._owner, self._options, self._shape, self._place, self._start_by = weakref_to(owner), options, shape, place, start
        self._replaced = []
        self._asked_to_start, self._client, self._shapes = False, None, set()
        self._born = next(_ticks)
        self.watch = _Watch(self._owner, _name(owner), look_at)
        _set(owner, _MARK, self)

    def __reduce__(self):
        return type(None), ()

    def is_of(self, owner):
        return self._owner() is owner

    def again(self, options):
        """A second install(): its options hold from the next training step on."""
        changed = {name: value for name, value in options.items() if self._options.get(name) != value}
        self._options.update(changed)
        if client.current() is None:  # not started, or stopped by the program
            self._asked_to_start = False
        if not changed or not self._asked_to_start:
            return
        if self._client is not None and self._client is client.current():
            client.stop()
            self._asked_to_start = False
        else:
            client.say_once("install() again with another %s: ignored, the running client stays", ", ".join(changed))

    def put(self, owner, name, replacement):
        """Sets owner.name until uninstall()."""
        self._replaced.append((weakref_to(owner), name, vars(owner).get(name), replacement))
        _set(owner, name, replacement)

    def replace(self, owner, name, wrapped, needed=True):
        """Sets owner.name = wrapped(owner.name) until uninstall()."""
        original = getattr(owner, name, None)
        if not callable(original):
            if needed:
                client.say_once("%s has no %s in this version: not measured, not planned", _name(owner), name)
            return
        hook = getattr(original, _HOOK, None)
        if hook is not None:  # already wrapped: two schedules share the stage
            hook.users.append(self)
            self._replaced.append(hook.entry)
            return
        replacement = function = functools.wraps(original)(wrapped(original))
        if not isinstance(owner, (type, types.ModuleType)):
            function = _of_owner(owner, name, original, replacement)
            replacement = types.MethodType(function, owner)
        hook = types.SimpleNamespace(users=[self])
        setattr(function, _HOOK, hook)
        self.put(owner, name, replacement)
        hook.entry = self._replaced[-1]

    def replace_entry(self, table, key, wrapped):
        replacement = functools.wraps(table[key])(wrapped(table[key]))
        self._replaced.append((lambda: table, key, table[key], replacement))
        table[key] = replacement

    def step(self, original, kind_of, prepare=None, subject_of=None, microbatches_of=None):
        """Returns `original` as one iteration; within another one it is none. kind_of(args, kwargs): "train" or "evaluate";
        prepare(args, kwargs) runs before it; subject_of(args): what trains, by default the owner; microbatches_of(args,
        kwargs): of this step."""

        def step(*args, **kwargs):
            global _open_step
            if _open_step is not None:
                return self._within(original, args, kwargs)
            kind, microbatches = "train", 0
            try:
                kind = kind_of(args, kwargs)
                if prepare is not None:
                    prepare(args, kwargs)
                if kind == "train" and not self.trains(subject_of(args) if subject_of else self._owner(), args, kwargs):
                    kind = "evaluate"
                if kind == "train" and microbatches_of is not None:
                    microbatches = self._note_shape(microbatches_of(args, kwargs), args, kwargs)
            except client.Refused:
                raise
            except Exception as error:
                client.ignore(error, "before a step of %s: %r", _name(self._owner()), error)
            client.on_step_begin(kind, microbatches)
            try:
                _open_step = self
                return original(*args, **kwargs)
            finally:
                _open_step = None
                client.on_step_end()

        return step

    def _within(self, original, args, kwargs):
        """Runs a step within another one: with the step of another installation, nothing is measured meanwhile."""
        global _open_step
        outer = _open_step
        if outer is not self and outer is not _BESIDE:
            self.watch.seen()
            client.say_once("%s runs within a step of another: it is not measured", _name(self._owner()))
            _open_step = _BESIDE
        try:
            return original(*args, **kwargs)
        finally:
            _open_step = outer

    def is_open(self):
        return _open_step is self

    def around(self, original, computation_of, ended=lambda computation: client.on_instruction_end(*computation)):
        """Returns `original` as one computation.

        computation_of(args, kwargs): (instruction, microbatch, chunk), or None if the call is no computation.
        ended(computation) runs after `original` returns; if `original` raises, the computation ends at once."""

        def computation(*args, **kwargs):
            if _open_step is None:
                self.watch.count("computations outside of a step")
            if _open_step is None or _open_step is _BESIDE:
                return original(*args, **kwargs)
            try:
                computation = computation_of(args, kwargs)
            except Exception as error:
                computation = None
                client.ignore(error, "%s has unexpected arguments, this call is not measured: %r", _name(original), error)
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

    def trains(self, subject, args=(), kwargs=None):
        """Before each training step of the subject: the first one starts the client. Returns whether the client follows it."""
        global _followed, _latest
        self.watch.seen()
        if not self._asked_to_start:
            self._asked_to_start = True
            if client.current() is None:
                self._start(args, kwargs or {})
        self._realign(args, kwargs or {})
        running = client.current()
        of, reference, last = _followed
        followed = reference() if running is not None and of is running else None
        if followed is not None and followed is not subject and last > self._born:
            client.say_once("another %s trains, too: it is not measured, the client follows the first", _name(subject))
            return False
        _latest = self.watch
        _followed = running, reference if followed is subject else weakref_to(subject), next(_ticks)
        return True

    def _place_now(self, args, kwargs):
        """Returns None while the framework is being set up."""
        try:
            return self._place(args, kwargs), in_world()
        except Exception as error:
            signals.pass_on(error)
            return None

    def _realign(self, args, kwargs):
        global _moves, _elsewhere
        of, before = _registered
        if of is None or of is not client.current():
            return
        now = self._place_now(args, kwargs)
        if now is None or now == before or now[0].keys() != before[0].keys():
            _elsewhere = (None, 0)
            return
        place, steps = _elsewhere
        _elsewhere = now, steps + 1 if now == place else 1
        if _elsewhere[1] < min(2**_moves, _MOST_PATIENCE):  # the same in all ranks
            return
        _moves, _elsewhere = _moves + 1, (None, 0)
        client.guarded_log.log(logging.INFO, "this process is another rank now (%s, it was %s): the client registers anew", now, before)
        client.stop()
        self._start(args, kwargs)

    def _note_shape(self, microbatches, args, kwargs):
        """Before a step: the library needs the action table of each number of microbatches, if the schedule is one."""
        if (client.current(), microbatches) not in self._shapes:
            is_option = self._client is not None and self._client is client.current() and not self._shapes
            table = None if is_option else self._shape(args, kwargs).get("action_table")
            if table:
                client.step_table(microbatches, table)
            if len(self._shapes) < _MOST_SHAPES:
                self._shapes.add((client.current(), microbatches))
        return microbatches

    def _start(self, args, kwargs):
        global _registered
        self._shapes.clear()
        known, errors = {}, []
        for read in (self._shape, self._place):
            try:
                known.update(read(args, kwargs))
            except Exception as error:
                signals.pass_on(error)
                errors.append(f"{error!r}: ")
        options = merged(known, self._options)
        missing = [] if "pp_degree" in known else option_values.undetermined_degrees(options)
        if not any(name in options for name in _ORDERS):
            missing.append("schedule or action_table")
        if missing:
            client.say_once(
                "%s is measured only, no job is registered: %sinstall() needs %s",
                _name(self._owner()),
                "".join(errors),
                ", ".join(missing),
            )
            options["server"] = ""
        try:
            (self._start_by or client.start)(**options)
        except BaseException as error:
            if signals.from_handler(error):  # the client starts all the same, or at the next step
                self._asked_to_start = client.current() is not None
            raise
        finally:
            self._client = client.current()
        place = self._place_now(args, kwargs)
        _registered = (self._client, place) if place is not None else (None, None)

    def uninstall(self, is_freed=False):
        """Restores all originals, except functions that other code has wrapped since: those hooks stay and do no harm."""
        if not is_freed:  # then a copy may train on
            self.watch.end()
        for owner_of, name, original, replacement in reversed(self._replaced):
            owner, hook = owner_of(), getattr(replacement, _HOOK, None)
            if hook is not None:
                hook.users.remove(self)
                if hook.users:
                    continue
            if isinstance(owner, dict):
                if owner.get(name) is replacement:
                    owner[name] = original
            elif owner is not None and vars(owner).get(name) is replacement:
                _set(owner, name, original)
        self._replaced.clear()
        owner = self._owner()
        if owner is not None and installed(owner) is self:
            _set(owner, _MARK, None)


class _Watch:
    """Logs one line, in rank 0, if after install() no training step comes for a minute, in some steps of an optimizer, or
    beside some computations that belong to no step; later, if an optimizer steps without one."""

    def __init__(self, owner, name, look_at):
        self._owner, self._name, self._look_at = owner, name, look_at
        self._counts, self._seen = collections.Counter(), False
        self._over = option_values.is_set("PERSEUS_DISABLE") or option_values.whole(os.environ, "RANK") not in (None, 0)
        if not self._over:
            self.until_s = time.monotonic() + _SILENCE_S
            _watches.append(self)
            _set_timer()
            after_optimizer_steps(lambda optimizer: self.count("optimizer steps", optimizer))

    def count(self, what, by=None):
        """Returns whether the watch is over."""
        if self._over:
            return True
        if self._seen and self is not _latest:
            return self._owner() is None
        if self._seen and (by is None or client.current() is None):
            return False
        self._counts[what, id(by)] += 1
        if self._counts[what, id(by)] == _SILENCE_COUNT:
            self.say(f"{_SILENCE_COUNT} {what}")
        return self._over

    def say(self, since):
        seen = self._seen
        self.end()
        if seen:
            client.say_once(
                "no training step of %s was seen in the last %s: what trains now is neither measured nor planned. If it is a "
                "copy or another model, install() on it",
                self._name,
                since,
            )
            return
        client.say_once(
            "no training step of %s was seen in %s since install(): nothing is measured or planned. If it trains, look for %s",
            self._name,
            since,
            self._look_at,
        )

    def seen(self):
        """A training step was seen."""
        self._counts.clear()
        if not self._seen:
            self._seen = True
            self._leave()

    def end(self):
        self._over = True
        self._leave()

    def _leave(self):
        global _timer
        if self in _watches:
            _watches.remove(self)
        timer = _timer
        if not _watches and timer is not None:
            _timer = None
            timer.cancel()


_latest = None  # that of the latest training step which the client followed
_watches = []  # that wait for their first training step, the oldest first
_timer = None  # one for all of them: a program may follow many models


def _set_timer():
    global _timer
    if _timer is not None or not _watches:
        return
    timer = threading.Timer(max(_watches[0].until_s - time.monotonic(), 0), _end_of_time)
    timer.daemon = True
    try:
        timer.start()
    except RuntimeError:  # no more threads: the steps of optimizers are counted all the same
        return
    _timer = timer


def _end_of_time():
    global _timer
    _timer = None
    for watch in list(_watches):
        if watch.until_s <= time.monotonic():
            watch.say(f"{_SILENCE_S} s")
    _set_timer()


def after_optimizer_steps(function):
    """Calls function(optimizer) after each step of any optimizer of torch, until it returns True."""
    global _listeners
    if not _listeners:
        register = getattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_post_hook", None)
        if register is None:  # no torch, or one before 2.0
            return
        if not hasattr(register, _HOOK):
            # For good: torch must not find its hooks changed while it runs them.
            setattr(register, _HOOK, register(outside_of_graphs(_after_optimizer_step)))
    _listeners += (function,)


def _after_optimizer_step(optimizer, *_):
    global _listeners
    ended = [listener for listener in _listeners if listener(optimizer)]
    if ended:
        _listeners = tuple(listener for listener in _listeners if listener not in ended)


def outside_of_graphs(function):
    """Returns `function` for torch to call: torch.compile does not compile it, and leaves it out of a graph that calls it."""
    run = as_it_is(function)
    is_compiling = getattr(getattr(sys.modules.get("torch"), "compiler", None), "is_compiling", None)
    if is_compiling is None:
        return run

    def hook(*args):
        return None if is_compiling() else run(*args)

    not_compiled(hook.__code__)
    return hook


def as_it_is(function):
    """Returns `function` as torch.compile neither compiles it nor what it calls."""
    try:
        return sys.modules["torch"].compiler.disable(function)
    except Exception:  # torch before 2.1, or a compiler that cannot be imported
        return function


def not_compiled(code):
    """Lets torch.compile run this code as it is, and look for work in what it calls."""
    skip = getattr(sys.modules.get("torch._dynamo.eval_frame"), "skip_code", None)
    if skip is not None:
        skip(code)


def in_world():
    """Returns this process's rank and the number of processes, if torch.distributed knows them."""
    distributed = job_id.distributed()
    return (distributed.get_rank(), distributed.get_world_size()) if distributed is not None else None


def replica(number, replicas, options):
    """Returns the place of a pipeline among all. Those of one replica, tp_degree (default 1), are next to each other."""
    tp = options.get("tp_degree", 1)
    return {"dp_rank": number // tp, "tp_rank": number % tp, "dp_degree": replicas // tp}


def installed(owner):
    try:
        found = vars(owner).get(_MARK)
    except Exception:  # it has no attributes
        return None
    return found if found is not None and found.is_of(owner) else None  # not that of a shallow copy's original


def argument(args, kwargs, position, name, otherwise=-1):
    return args[position] if len(args) > position else kwargs.get(name, otherwise)


def merged(known, given):
    """Merges options: those given to install() take precedence over the framework's; facts are merged one by one."""
    if any(name in given for name in _ORDERS):
        known = {name: value for name, value in known.items() if name not in _ORDERS}
    options = {**known, **given}
    if "facts" in known and "facts" in given:
        options["facts"] = {**known["facts"], **dict(line.partition("=")[::2] for line in given["facts"].splitlines())}
    return options


def weakref_to(subject):
    try:
        return weakref.ref(subject)
    except TypeError:
        return lambda: subject


def _of_owner(owner, name, original, followed):
    """Returns `followed` as a method. A copy of the owner has it, too: there it is the method of the copy's class."""
    owner = weakref_to(owner)

    @functools.wraps(original)
    def method(self, *args, **kwargs):
        return followed(*args, **kwargs) if self is owner() else getattr(type(self), name)(self, *args, **kwargs)

    method.__wrapped__ = getattr(original, "__func__", method)
    return method


def _set(owner, name, value):
    """Sets the attribute past the owner's own __setattr__; None: removes it."""
    if isinstance(owner, type):
        setattr(owner, name, value) if value is not None else delattr(owner, name)
    elif value is not None:
        vars(owner)[name] = value
    else:
        vars(owner).pop(name, None)


def _name(owner):
    try:
        return getattr(owner, "__qualname__", None) or getattr(owner, "__name__", None) or type(owner).__name__
    except Exception:
        return type(owner).__name__
