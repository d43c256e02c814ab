"""One rank of jobs of Megatron Core: trains an instrumented model by each schedule, prints its computations.

usage: megatron_rank.py    with torchrun's variables in the environment and Megatron Core on PYTHONPATH
Each case trains three times: "without" Perseus; "recorded": the client's calls are recorded; "failing": each raises.
Output: JSON: for each case and time, losses, weights (a digest); if recorded, the computations, what is wrong with them,
the options. A case that this version cannot run: {"skipped": why}.
"""

import contextlib
import dataclasses
import faulthandler
import hashlib
import inspect
import json
import sys

import cuda_on_cpu

cuda_on_cpu.install()

import recorded_client  # noqa: E402
import torch  # noqa: E402
import torch.distributed  # noqa: E402
import witness  # noqa: E402
from megatron_cases import CASES  # noqa: E402

from megatron.core import parallel_state, tensor_parallel  # noqa: E402
from megatron.core.enums import ModelType  # noqa: E402
from megatron.core.pipeline_parallel import schedules  # noqa: E402
from megatron.core.transformer.module import MegatronModule  # noqa: E402
from megatron.core.transformer.transformer_config import TransformerConfig  # noqa: E402
from perseus.adapters import megatron  # noqa: E402

ITERATIONS, SIZE = 3, 2


class CannotRun(Exception):
    pass


class WitnessedChunk(MegatronModule):
    """A stage of the witness as a chunk of Megatron's: the schedule gives it its input by set_input_tensor()."""

    def __init__(self, config, index, vp_stage, log, recompute):
        super().__init__(config)
        self.stage, self.recompute, self.vp_stage = witness.Stage(index, log), recompute, vp_stage
        self.model_type, self.share_embeddings_and_output_weights = ModelType.encoder_or_decoder, False
        self.pre_process, self.post_process = False, False  # no word embeddings
        self.received = None

    def set_input_tensor(self, tensor):
        self.received = tensor[0] if isinstance(tensor, list) else tensor

    def forward(self, tensor):
        tensor = tensor if self.received is None else self.received
        if self.recompute:
            if tensor.is_leaf:  # as what an embedding gives: checkpoint() has a backward only then
                tensor.requires_grad_(torch.is_grad_enabled())
            if torch.is_grad_enabled():  # it is not in what checkpoint() runs first
                self.stage.log.append(("ran", "forward", int(tensor.flatten()[witness.WIDTH]), self.stage.index))
            return tensor_parallel.checkpoint(self._compute, False, tensor)
        return self._compute(tensor)

    def _compute(self, tensor):
        """The stage computes on rows; one more column makes the width even, for two attention heads. The output is no
        view: the schedule frees it."""
        rows = tensor.reshape(SIZE, -1)
        output = torch.cat([self.stage(rows[:, :-1]), rows[:, -1:].detach()], 1)
        return output.reshape(SIZE, 1, -1).clone()


def make_config(case, **more):
    known = inspect.signature(TransformerConfig).parameters
    for name in case.config:
        if name not in known:
            raise CannotRun(f"TransformerConfig has no {name}")
    given = {
        "num_layers": 2 * case.pp * (case.chunks or 1),
        "hidden_size": witness.WIDTH + 2,
        "num_attention_heads": 2,
        "pipeline_dtype": torch.float32,
        "tensor_model_parallel_size": case.tp,
        "pipeline_model_parallel_size": case.pp,
        "virtual_pipeline_model_parallel_size": case.chunks,
        "context_parallel_size": case.cp,
        "deallocate_pipeline_outputs": True,
        "batch_p2p_comm": True,
        **case.config,
        **more,
    }
    if given.get("overlap_p2p_comm"):
        given["batch_p2p_comm"] = False
    return TransformerConfig(**{name: value for name, value in given.items() if name in known})


def make_model(case, log):
    """The chunks of this rank, perhaps with data parallelism around them, and a function that makes an optimizer step."""
    config = make_config(case)
    ranks, rank = case.pp, parallel_state.get_pipeline_model_parallel_rank()
    chunks = []
    for chunk in range(case.chunks or 1):
        vp_stage = chunk if case.chunks else None
        chunks.append(WitnessedChunk(config, chunk * ranks + rank, vp_stage, log, case.recompute))
    if not case.distributed_optimizer:
        parameters = [parameter for chunk in chunks for parameter in chunk.parameters()]
        optimizer = torch.optim.SGD(parameters, lr=0.1, momentum=0.9)

        def step():
            optimizer.step()
            optimizer.zero_grad()

        return config, chunks, step
    return (config, *with_distributed_optimizer(config, chunks))


def with_distributed_optimizer(config, chunks):
    from megatron.core.distributed import DistributedDataParallel, finalize_model_grads
    from megatron.core.optimizer import OptimizerConfig, get_megatron_optimizer

    try:
        from megatron.core.distributed import DistributedDataParallelConfig
    except ImportError:
        raise CannotRun("no DistributedDataParallelConfig") from None
    ddp = DistributedDataParallelConfig(use_distributed_optimizer=True, overlap_grad_reduce=True)
    chunks = [DistributedDataParallel(config, ddp, chunk) for chunk in chunks]
    try:
        optimizer = get_megatron_optimizer(
            OptimizerConfig(optimizer="adam", lr=0.01, use_distributed_optimizer=True), chunks
        )
    except AssertionError as error:  # before 0.9 without Transformer Engine
        raise CannotRun(str(error)) from None
    config.no_sync_func = [chunk.no_sync for chunk in chunks] if len(chunks) > 1 else chunks[0].no_sync
    config.finalize_model_grads_func = finalize_model_grads

    def step():
        try:
            optimizer.step()
        except RuntimeError as error:  # 0.12 and 0.13 without Transformer Engine
            raise CannotRun(str(error)) from None
        for chunk in chunks:
            chunk.zero_grad_buffer()
        optimizer.zero_grad()

    return chunks, step


def train(case, mode):
    log, options, losses = [], {}, []
    torch.manual_seed(0)
    config, chunks, optimizer_step = make_model(case, log)
    group = getattr(config, "microbatch_group_size_per_vp_stage", None)
    forward_backward = schedules.get_forward_backward_func()

    def iterate(step, forward_only):
        inputs, targets = witness.batch(step, case.microbatches, SIZE)
        inputs = torch.cat([inputs, inputs[:, -1:]], 1)
        rows = inputs.view(case.microbatches, SIZE, 1, -1).unbind(0)
        targets = targets.view(case.microbatches, SIZE, -1)

        def forward_step(data, model):
            output = model(next(data))

            def loss_of(output):
                microbatch = int(output.flatten()[witness.WIDTH])
                if not forward_only:
                    log.append(("ran", "forward", microbatch, case.pp * (case.chunks or 1) - 1))
                loss = torch.nn.functional.mse_loss(output[:, 0, : witness.WIDTH], targets[microbatch])
                return loss, {"loss": loss.detach().clone()}

            return output, loss_of

        return forward_backward(
            forward_step_func=forward_step,
            data_iterator=[iter(rows) for _ in chunks] if case.chunks else iter(rows),
            model=chunks if case.chunks else chunks[0],
            num_microbatches=case.microbatches,
            seq_length=SIZE * case.cp,
            micro_batch_size=1,
            forward_only=forward_only,
        )

    with contextlib.ExitStack() as stack:
        if mode != "without":
            stack.enter_context(recorded_client.replaced(mode, log, options))
            megatron.install()
            stack.callback(megatron.uninstall)
            forward_backward = schedules.get_forward_backward_func()
        for step in range(ITERATIONS):
            losses += [entry["loss"].item().hex() for entry in iterate(step, forward_only=False)]
            optimizer_step()
            if case.evaluates:
                with torch.no_grad():
                    losses += [entry["loss"].item().hex() for entry in iterate(100 + step, forward_only=True)]
    weights = hashlib.sha256()
    for chunk in chunks:
        for parameter in chunk.parameters():
            weights.update(parameter.detach().numpy().tobytes())
    said = {"losses": losses, "weights": weights.hexdigest()}
    if mode == "failing":
        said["failures"] = log.count(("failed",))
    if mode == "recorded":
        chunk_of = {index: index // case.pp for index in range(case.pp * (case.chunks or 1))}
        steps = [entry[1] for entry in log if entry[0] == "step"]
        said["computations"], said["wrong"] = witness.compared([e for e in log if e[0] != "step"], chunk_of)
        said["steps"] = steps
        said["options"] = {key: value for key, value in options.items() if key != "facts"}
        said["group"] = group
    return said


def run(case):
    names = set(inspect.signature(parallel_state.initialize_model_parallel).parameters)
    degrees = {
        "tensor_model_parallel_size": case.tp,
        "pipeline_model_parallel_size": case.pp,
        "virtual_pipeline_model_parallel_size": case.chunks,
        "context_parallel_size": case.cp,
    }
    parallel_state.initialize_model_parallel(**{name: value for name, value in degrees.items() if name in names})
    tensor_parallel.model_parallel_cuda_manual_seed(1)
    try:
        said = {mode: train(case, mode) for mode in ("without", "recorded", "failing")}
        said["case"] = dataclasses.asdict(case)
        return said
    except CannotRun as reason:
        return {"skipped": str(reason)}
    finally:
        parallel_state.destroy_model_parallel()


def main():
    faulthandler.dump_traceback_later(360)
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    ranks = torch.distributed.get_world_size()
    wanted = sys.argv[1:]
    said = {}
    for name, case in CASES.items():
        if case.ranks == ranks and (not wanted or name in wanted):
            said[name] = run(case)
    print(json.dumps(said), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
