"""One rank of jobs of DeepSpeed's pipeline engine: trains and evaluates an instrumented model, prints its
computations.

usage: deepspeed_rank.py [CASE...]    with torchrun's variables in the environment and DeepSpeed on PYTHONPATH
Each case trains three times: "without" Perseus; "recorded": the client's calls are recorded; "failing": each raises.
Output: JSON as megatron_rank.py prints.
"""

import dataclasses
import faulthandler
import hashlib
import json
import logging
import os
import sys

os.environ["DS_ACCELERATOR"] = "cpu"

import deepspeed_on_cpu  # noqa: E402  isort: skip
import deepspeed  # noqa: E402
import recorded_client  # noqa: E402
import torch  # noqa: E402
import witness  # noqa: E402
from deepspeed.pipe import PipelineModule  # noqa: E402
from deepspeed_cases import CASES  # noqa: E402

from perseus.adapters import deepspeed as adapter  # noqa: E402

ITERATIONS, SIZE = 3, 2


class WitnessedLayer(witness.Stage):
    """A layer that is a whole stage. Checkpointing runs it first without gradients."""

    def forward(self, tensor):
        if self.training and torch._C._current_graph_task_id() == -1:
            self.log.append(("ran", "forward", int(tensor[0, witness.WIDTH]), self.index))
        return super().forward(tensor)


def make_engine(case, log):
    layers = [WitnessedLayer(index, log) for index in range(case.stages)]
    last = case.stages - 1

    def loss(output, target):
        if layers[last].training:
            log.append(("ran", "forward", int(output[0, witness.WIDTH]), last))
        return torch.nn.functional.mse_loss(output[:, : witness.WIDTH], target)

    model = PipelineModule(layers=layers, num_stages=case.stages, loss_fn=loss, partition_method="uniform")
    config = {
        "train_micro_batch_size_per_gpu": SIZE,
        "gradient_accumulation_steps": case.microbatches,
        "optimizer": {"type": "Adam", "params": {"lr": 0.01, "torch_adam": True}},
        "zero_allow_untested_optimizer": True,
        "steps_per_print": 10**9,
        **case.config,
    }
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    return engine


def microbatches_of(step, case):
    inputs, targets = witness.batch(step, case.microbatches, SIZE)
    return iter(list(zip(inputs.split(SIZE), targets.split(SIZE))))


def train(case, mode):
    log, options, losses = [], {}, []
    engine = make_engine(case, log)

    def iterations():
        for step in range(ITERATIONS):
            losses.append(engine.train_batch(data_iter=microbatches_of(step, case)).item().hex())
            loss = engine.eval_batch(microbatches_of(100 + step, case))
            losses.append(loss.item().hex())

    if mode == "without":
        iterations()
    else:
        with recorded_client.replaced(mode, log, options):
            adapter.install()
            try:
                iterations()
            finally:
                adapter.uninstall()
    weights = hashlib.sha256()
    for parameter in engine.module.parameters():
        weights.update(parameter.detach().numpy().tobytes())
    said = {"losses": losses, "weights": weights.hexdigest()}
    if mode == "failing":
        said["failures"] = log.count(("failed",))
    if mode == "recorded":
        said["computations"], said["wrong"] = witness.compared(
            [entry for entry in log if entry[0] != "step"], dict.fromkeys(range(case.stages), 0)
        )
        said["steps"] = [entry[1] for entry in log if entry[0] == "step"]
        said["options"] = {key: value for key, value in options.items() if key != "facts"}
    return said


def run(case):
    try:
        said = {"without": train(case, "without")}
    except (AssertionError, RuntimeError) as error:  # 0.18.9's ZeRO-1 on Gloo, for one
        return {"skipped": f"it fails without Perseus: {str(error)[:100]}"}
    said.update({mode: train(case, mode) for mode in ("recorded", "failing")})
    said["case"] = dataclasses.asdict(case)
    return said


def main(wanted):
    faulthandler.dump_traceback_later(360)
    logging.getLogger("DeepSpeed").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    deepspeed_on_cpu.install()
    deepspeed_on_cpu.give_streams()
    deepspeed.init_distributed(dist_backend="gloo", verbose=False)
    ranks, said = torch.distributed.get_world_size(), {}
    for name, case in CASES.items():
        if case.ranks == ranks and (not wanted or name in wanted):
            said[name] = run(case)
    print(json.dumps(said), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1:])
