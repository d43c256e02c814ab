"""Loads libperseus and declares the functions and structs of include/perseus/perseus.h for ctypes.

A test compares the declarations with the header.

Errors:  LibraryUnusable with the reason; no other exception.
Threads: load() from any thread.
"""

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from pathlib import Path

ABI_VERSION = 1
_PACKAGED = Path(__file__).parent / "lib" / "libperseus.so"

# In the order of enum perseus_instruction.
INSTRUCTIONS = (
    "forward",
    "backward",
    "input_gradient",
    "weight_gradient",
    "recompute",
    "pure_backward",
    "load",
    "all_reduce",
    "optimizer_step",
)
TRAIN, EVALUATE = 0, 1
ADVICE_ONLY, NO_ENERGY, SYNCHRONOUS, PACES = 1, 2, 4, 8
STATES = ("starting", "maximum_clock", "profiling", "planned", "ceiling")

LogFunction = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)
ClockFunction = ctypes.CFUNCTYPE(c_uint64, c_void_p)


class Options(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("server", c_char_p),
        ("token", c_char_p),
        ("ca_file", c_char_p),
        ("job", c_char_p),
        ("job_name", c_char_p),
        ("facts", c_char_p),
        ("profile", c_char_p),
        ("schedule", c_char_p),
        ("action_table", c_char_p),
        ("microbatches", c_int),
        ("chunks", c_int),
        ("rank", c_int),
        ("dp_rank", c_int),
        ("pp_rank", c_int),
        ("tp_rank", c_int),
        ("dp_degree", c_int),
        ("pp_degree", c_int),
        ("tp_degree", c_int),
        ("device", c_char_p),
        ("accelerator", c_char_p),
        ("helper", c_char_p),
        ("blocking_power_w", c_double),
        ("transfer_latency_s", c_double),
        ("start_limit_s", c_double),
        ("report_interval_s", c_double),
        ("flags", c_uint32),
        ("log", LogFunction),
        ("log_context", c_void_p),
        ("plan_tolerance", c_double),
        ("switch_latency_s", c_double),
        ("labels", c_char_p),
        ("domain", c_char_p),
        ("least_rate", c_double),
        ("priority", c_double),
    ]


class OptionsOfAnyVersion(ctypes.Structure):
    """Reserves space for fields that perseus_options_init() of a later library sets and this file does not declare."""

    _fields_ = [("options", Options), ("later_fields", ctypes.c_char * 1024)]


class Statistics(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("state", c_int),
        ("iteration", c_int64),
        ("plan_version", c_int64),
        ("plan_from_iteration", c_int64),
        ("planned_iteration_time_s", c_double),
        ("last_iteration_time_s", c_double),
        ("last_iteration_energy_j", c_double),
        ("energy_total_j", c_double),
        ("blocking_power_w", c_double),
        ("clocks_requested", c_int64),
        ("clocks_applied", c_int64),
        ("clocks_superseded", c_int64),
        ("clocks_failed", c_int64),
        ("request_to_device_p50_s", c_double),
        ("request_to_device_p99_s", c_double),
        ("begin_end_ns", c_double),
        ("set_speed_ns", c_double),
        ("client_cpu_s", c_double),
        ("samples", c_int64),
        ("samples_throttled", c_int64),
        ("samples_rejected", c_int64),
        ("server_failures", c_int64),
        ("controls_clock", c_int32),
        ("server_reached", c_int32),
        ("computations_mixed", c_int64),
        ("computations_unsure", c_int64),
        ("helper_restarts", c_int64),
        ("plans_dropped", c_int64),
        ("lease_left_s", c_double),
        ("ceiling_mhz", c_int32),
        ("paced_s", c_double),
    ]


_CALL = [c_void_p, c_int, c_int, c_int]

# name: (result, arguments)
FUNCTIONS = {
    "perseus_options_init": (None, [POINTER(Options)]),
    "perseus_abi_version": (c_int, []),
    "perseus_version": (c_char_p, []),
    "perseus_instruction_named": (c_int, [c_char_p]),
    "perseus_start": (c_void_p, [POINTER(Options)]),
    "perseus_stop": (None, [c_void_p]),
    "perseus_job": (c_char_p, [c_void_p]),
    "perseus_step_begin": (None, [c_void_p, c_int]),
    "perseus_step_begin_of": (None, [c_void_p, c_int, c_int]),
    "perseus_step_table": (None, [c_void_p, c_int, c_char_p]),
    "perseus_step_end": (None, [c_void_p]),
    "perseus_begin": (None, _CALL),
    "perseus_end": (None, _CALL),
    "perseus_set_speed": (None, _CALL),
    "perseus_time_with_cuda": (c_int, [c_void_p, c_void_p]),
    "perseus_time_with": (None, [c_void_p, ClockFunction, c_void_p]),
    "perseus_statistics_get": (None, [c_void_p, POINTER(Statistics)]),
    "perseus_status": (c_size_t, [c_void_p, c_char_p, c_size_t]),
}

# These run between computations and take 100 ns, so they keep the interpreter's lock: releasing it can cost 5 ms when a
# data loader's thread takes it. They declare no argument types: ctypes passes the prepared arguments of
# prepared_pointer() and prepared_int() unchanged, which takes a third of the time.
_QUICK = ("perseus_begin", "perseus_end", "perseus_set_speed")


class LibraryUnusable(Exception):
    pass


class Library:
    """A loaded libperseus: the functions of FUNCTIONS as attributes, without the prefix "perseus_"."""

    def __init__(self, path):
        try:
            library, quick = ctypes.CDLL(path), ctypes.PyDLL(path)
        except OSError as error:
            raise LibraryUnusable(str(error)) from None
        self.path = path
        for name, (result, arguments) in FUNCTIONS.items():
            try:
                function = getattr(quick if name in _QUICK else library, name)
            except AttributeError:
                raise LibraryUnusable(f"{path} has no {name}: it is not libperseus, or an older one") from None
            function.restype = result
            if name not in _QUICK:
                function.argtypes = arguments
            setattr(self, name[len("perseus_") :], function)
            if name == "perseus_abi_version" and function() != ABI_VERSION:
                raise LibraryUnusable(f"{path} has ABI version {function()}, this package is for {ABI_VERSION}")


def prepared_pointer(address):
    return c_void_p.from_param(address)


def prepared_int(value):
    return c_int.from_param(value)


def missing():
    """Returns why load() will find no library; "" if it finds a file, which load() may still reject."""
    chosen = os.environ.get("PERSEUS_LIBRARY")
    if chosen:
        return "" if os.path.exists(chosen) or "/" not in chosen else f"PERSEUS_LIBRARY names {chosen}, which does not exist"
    if _PACKAGED.exists():
        return ""
    try:
        ctypes.CDLL("libperseus.so")
        return ""
    except OSError:
        return (
            "libperseus.so is not installed. This package was installed without it: install the wheel that "
            "`cmake --build BUILD --target perseus_wheel` makes, or set PERSEUS_LIBRARY to the library's path"
        )


def load():
    """Loads $PERSEUS_LIBRARY if set; else perseus/lib/libperseus.so of this package; else the loader's libperseus.so."""
    chosen = os.environ.get("PERSEUS_LIBRARY")
    if chosen:
        return Library(chosen)
    if _PACKAGED.exists():
        return Library(str(_PACKAGED))
    try:
        return Library("libperseus.so")
    except LibraryUnusable as error:
        raise LibraryUnusable(f"{error}; neither is there {_PACKAGED}, and PERSEUS_LIBRARY is not set") from None
