"""Tables of actions: the server's, as its program prints them, and the output of its reader for a table."""

import os
import subprocess

from perseus.adapters.torch_pipelining import _INSTRUCTIONS, _computations


def table_of(name, ranks, microbatches, chunks=1):
    return _run(name, str(ranks), str(microbatches), str(chunks))


def as_read_by_the_server(table):
    return _run("-", input=table)


def computations(table, rank):
    """A row as (instruction, microbatch, chunk) in order; overlapped ones one after the other."""
    cells = table.splitlines()[rank].split(",")
    found = [computation for cell in cells for computation in _computations(cell.strip())]
    chunks = {stage: chunk for chunk, stage in enumerate(sorted({stage for stage, _, _ in found}))}
    return [(_INSTRUCTIONS[kind], microbatch, chunks[stage]) for stage, kind, microbatch in found]


def _run(*arguments, input=None):
    command = [os.environ["PERSEUS_ACTION_TABLE_PROGRAM"], *arguments]
    result = subprocess.run(command, input=input, capture_output=True, text=True)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return result.stdout
