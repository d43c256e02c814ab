"""The parts of megatron.core.pipeline_parallel.schedules that an adapter uses: names, arguments and order of calls.

Written from Megatron-Core 0.12 and later. `ran` is what one rank ran; nothing is sent.
"""

from megatron.core import parallel_state

ran = []


def get_model_config(model):
    return model.config


def get_schedule_table(num_microbatches, num_model_chunks, microbatch_group_size_per_vp_stage):
    table = []
    for first in range(0, num_microbatches, microbatch_group_size_per_vp_stage):
        group = range(first, min(first + microbatch_group_size_per_vp_stage, num_microbatches))
        table += [(microbatch, chunk) for chunk in range(num_model_chunks) for microbatch in group]
    return table


def forward_step(
    forward_step_func,
    data_iterator,
    model,
    num_microbatches,
    input_tensor,
    forward_data_store,
    config,
    cp_group_size,
    collect_non_loss_data=False,
    checkpoint_activations_microbatch=None,
    is_first_microbatch=False,
    current_microbatch=None,
    vp_stage=None,
    is_last_stage=True,
):
    ran.append(("forward", current_microbatch, vp_stage or 0))
    return forward_step_func(data_iterator, model), 0


def backward_step(input_tensor, output_tensor, output_tensor_grad, config):
    ran.append(("backward",))


def get_forward_backward_func():
    if parallel_state.get_pipeline_model_parallel_world_size() == 1:
        return forward_backward_no_pipelining
    return forward_backward_pipelining_without_interleaving


def _pipeline(groups):
    """(rank, size)"""
    if groups is not None:
        return groups.pp.rank(), groups.pp.size()
    return parallel_state.get_pipeline_model_parallel_rank(), parallel_state.get_pipeline_model_parallel_world_size()


def _forward(forward_step_func, model, microbatches, microbatch, config, chunk=None):
    forward_step(
        forward_step_func,
        None,
        model,
        microbatches,
        None,
        [],
        config,
        cp_group_size=1,
        is_first_microbatch=microbatch == 0,
        current_microbatch=microbatch,
        vp_stage=chunk,
    )


def forward_backward_no_pipelining(*, forward_step_func, model, num_microbatches, forward_only=False, **_):
    return _1f1b(forward_step_func, model, num_microbatches, forward_only, 0, 1)


def forward_backward_pipelining_without_interleaving(
    *, forward_step_func, model, num_microbatches, forward_only=False, pg_collection=None, **_
):
    return _1f1b(forward_step_func, model, num_microbatches, forward_only, *_pipeline(pg_collection))


def _1f1b(forward_step_func, model, num_microbatches, forward_only, rank, ranks):
    model = model[0] if isinstance(model, list) else model
    ahead = min(ranks - 1 - rank, num_microbatches)
    for i in range(num_microbatches):
        _forward(forward_step_func, model, num_microbatches, i, model.config)
        if not forward_only and i >= ahead:
            backward_step(None, None, None, model.config)
    for _ in range(0 if forward_only else ahead):
        backward_step(None, None, None, model.config)
    return "losses"


def forward_backward_pipelining_with_interleaving(
    *, forward_step_func, model, num_microbatches, forward_only=False, pg_collection=None, **_
):
    config, (rank, ranks) = model[0].config, _pipeline(pg_collection)
    group = config.microbatch_group_size_per_vp_stage or ranks
    table = get_schedule_table(num_microbatches, len(model), group)
    ahead = (ranks - 1 - rank) * 2 + (len(model) - 1) * group
    ahead = len(table) if forward_only else min(ahead, len(table))

    def forward(k):
        microbatch, chunk = table[k]
        _forward(forward_step_func, model[chunk], num_microbatches, microbatch, config, chunk)

    for k in range(ahead):
        forward(k)
    for k in range(len(table) - ahead):
        forward(ahead + k)
        backward_step(None, None, None, config)
    for _ in range(0 if forward_only else ahead):
        backward_step(None, None, None, config)
    return "losses"
