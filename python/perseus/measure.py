"""Measures time and energy of a training loop, without a server: no clock is set, no helper process starts.

    from perseus import measure
    measure.loop(model, microbatches=1)      # then train as before; a table and a timeline are printed at the end

A loop that calls the client itself (client.on_step_begin(), profiler.begin("forward"), ...) calls measure.start() instead.
measure.report() returns the text at any time, measure.summary() the figures as a dict.

Input:   options of perseus.client.start(), except the server.
Output:  per kind of work and clock: time, power and energy with one standard deviation; the last iteration as a line of text.
Errors:  none reach the loop; the report says what could not be measured, and why.
"""

import atexit
import os
import sys

from perseus import client

_COLUMNS = 100  # of the timeline
_LETTERS = {"forward": "F", "backward": "B", "input_gradient": "I", "weight_gradient": "W", "recompute": "R"}
_KNOWN = 0.3  # a power with a larger relative standard deviation is not shown

_last = None  # the summary of a client that has ended
_waits_in = 0  # the process in which a loop waits for its first training step


def start(**options):
    """Starts the client for measuring alone. Returns it."""
    global _waits_in
    _waits_in = 0
    if options.get("server"):
        client.say_once("measure.start(): the server is ignored; use client.start()")
    started = client.start(**{**options, "server": "", "advice_only": True})
    started.before_stop = _print  # also at exit
    return started


def loop(model, microbatches=1, **options):
    """Measures a loop over `model`, see perseus/adapters/plain.py. The first training step starts the client: by then the
    program uses its GPU."""
    from perseus.adapters import plain

    global _waits_in
    _waits_in = os.getpid() if client.current() is None else 0
    atexit.unregister(_print_that_none_came)
    atexit.register(_print_that_none_came)
    return plain.install(model, microbatches, start, **options)


def summary():
    """Returns the client's status, perseus_status() as a dict; after client.stop(), the last one."""
    running = client.current()
    if running is not None:
        return running.status()
    return _last or {"error": "no training step came, or measure.start() was not called"}


def report():
    """Returns the table and the timeline as text."""
    return text_of(summary())


def text_of(status):
    """The report of a status, as text."""
    if "error" in status:
        return f"perseus: nothing was measured: {status['error']}\n"
    lines = [_headline(status)]
    energy_known = status["counter_period_s"] > 0
    rows = [("work", "clock", "runs", "time", "power", "energy")]
    rows += [_row(work, energy_known) for work in status["profile"]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    if len(rows) > 1:
        lines += ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
    lines += _timeline(status.get("last_step"))
    lines += [f"{problem['cause']}: {problem['message']}" for problem in status["wrong"]]
    return "\n".join(lines) + "\n"


def _headline(status):
    if "last_step" not in status:
        return f"perseus: rank {status['rank']}: no whole iteration was measured"
    text = f"perseus: rank {status['rank']}: {status['iteration']} iterations, the last {status['last_step']['time_s']:.4g} s"
    if status["last_iteration_energy_j"] >= 0:
        text += f", {status['last_iteration_energy_j']:.4g} J"
    return text


def _row(work, energy_known):
    name = work["work"] if work["chunk"] == 0 else f"{work['work']} of chunk {work['chunk']}"
    power, deviation, seconds = work["power_w"], work["power_stddev_w"], work["time_s"]
    known = energy_known and 0 < power and deviation < _KNOWN * power
    return (
        name,
        f"{work['clock_mhz']} MHz" if work["clock_mhz"] > 0 else "",
        str(work["samples"]) if work["samples"] else "",
        f"{1000 * seconds:.4g} ms" if seconds > 0 else "",
        f"{power:.1f} +- {deviation:.1f} W" if known else "unknown",
        f"{power * seconds:.4g} +- {deviation * seconds:.2g} J" if known and seconds > 0 else "",
    )


def _timeline(step):
    """The iteration as one line: a letter per hundredth of its time, '.' where the GPU waits."""
    if not step or not step["computations"] or step["time_s"] <= 0:
        return []
    cells = ["."] * _COLUMNS
    for computation in step["computations"]:
        begin = int(_COLUMNS * computation["begin_s"] / step["time_s"])
        end = max(begin + 1, round(_COLUMNS * computation["end_s"] / step["time_s"]))
        for cell in range(begin, min(end, _COLUMNS)):
            cells[cell] = _LETTERS.get(computation["instruction"], "x")
    shown = {computation["instruction"] for computation in step["computations"]}
    legend = ", ".join(f"{letter} {name}" for name, letter in _LETTERS.items() if name in shown)
    other = ", x other" if shown - set(_LETTERS) else ""
    return [f"iteration {step['iteration']}: {legend}{other}, . waiting", "".join(cells)]


def _print():
    global _last
    try:
        _last = summary()
        print(text_of(_last), end="", file=sys.stderr)
    except Exception as error:
        client.ignore(error, "the report of the measurement failed: %r", error)


def _print_that_none_came():
    if client.current() is None and _waits_in == os.getpid():
        _print()
