"""Degrees and ranks, which a test sets: ranks = {"tensor_model": (rank, size), ...}."""

ranks = {}


def _of(kind):
    return ranks.get(kind, (0, 1))


def get_pipeline_model_parallel_rank():
    return _of("pipeline_model")[0]


def get_pipeline_model_parallel_world_size():
    return _of("pipeline_model")[1]


def get_tensor_model_parallel_rank():
    return _of("tensor_model")[0]


def get_tensor_model_parallel_world_size():
    return _of("tensor_model")[1]


def get_context_parallel_rank():
    return _of("context")[0]


def get_context_parallel_world_size():
    return _of("context")[1]


def get_data_parallel_rank(with_context_parallel=False):
    return _of("data")[0]


def get_data_parallel_world_size(with_context_parallel=False):
    return _of("data")[1]
