"""One rank of torchtitan's Trainer: trains a small Llama 3 with pipeline parallelism, and prints its computations.

usage: torchtitan_rank.py SCHEDULE...    with torchrun's variables in the environment and torchtitan on PYTHONPATH
Each schedule trains three times: "without" Perseus; "recorded": the client's calls are recorded; "failing": each
raises.
An optimizer's step accumulates the gradients of two steps of the schedule. Every row of the data begins with the number of
its microbatch, by which the model knows what it computes: torchtitan gives every stage the rows.
Output: JSON: for each schedule and time, losses, weights (a digest); if recorded, the computations, what is wrong with them,
the options.
"""

import hashlib
import json
import os
import sys
import tempfile

import torchtitan_on_cpu

torchtitan_on_cpu.install()

import recorded_client  # noqa: E402
import torch  # noqa: E402
import torch.distributed  # noqa: E402
import witness  # noqa: E402
from real_schedules import keep_transfers_alive  # noqa: E402
from torchtitan.config_manager import JobConfig  # noqa: E402
from torchtitan.distributed import utils as dist_utils  # noqa: E402
from torchtitan.models.llama3 import (  # noqa: E402
    Transformer,
    TransformerModelArgs,
    parallelize_llama,
    pipeline_llama,
)
from torchtitan.components.loss import build_cross_entropy_loss  # noqa: E402
from torchtitan.components.lr_scheduler import build_lr_schedulers  # noqa: E402
from torchtitan.components.optimizer import build_optimizers  # noqa: E402
from torchtitan.protocols.train_spec import TrainSpec, register_train_spec  # noqa: E402
from torchtitan.train import Trainer  # noqa: E402

from perseus.adapters import torch_pipelining  # noqa: E402

MICROBATCHES, ACCUMULATED, STEPS = 4, 2, 2
LENGTH, VOCABULARY = 8, 32
log = []


class WitnessedLinear(torch.nn.Linear):
    """Marks its input and its weight, for the microbatch and stage that its model computes."""

    def forward(self, tensor):
        return torch.nn.functional.linear(self._mark(tensor, "activation"), self._mark(self.weight, "weight"), self.bias)

    def _mark(self, tensor, kind):
        microbatch, stage = WitnessedLlama.computes
        return witness._Mark.apply(tensor, lambda: log.append(("ran", kind, microbatch, stage)))


class WitnessedLlama(Transformer):
    computes, stage_index = None, None

    def __init__(self, arguments):
        super().__init__(arguments)
        for layer in self.layers.values():
            layer.feed_forward.w1.__class__ = WitnessedLinear

    def forward(self, tokens, input_batch):
        WitnessedLlama.computes = (int(input_batch[0, 0]), self.stage_index)
        if torch.is_grad_enabled():  # torch infers shapes by a forward without, before the first microbatch
            log.append(("ran", "forward", *WitnessedLlama.computes))
        return super().forward(tokens, input_batch)


class Tokenizer:
    n_words, eos_id = VOCABULARY, 0


class Data:
    """Batches of rows; labels are the rows shifted by none, so that they begin with the number as well."""

    def __init__(self, dp_world_size, dp_rank, tokenizer, job_config):
        self.generator = torch.Generator().manual_seed(dp_rank)

    def __iter__(self):
        while True:
            rows = torch.randint(VOCABULARY, (MICROBATCHES, LENGTH), generator=self.generator)
            rows[:, 0] = torch.arange(MICROBATCHES)
            yield {"input": rows}, rows.clone()

    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass


def build_loss(job_config):
    loss = build_cross_entropy_loss(job_config)

    def witnessed_loss(output, labels):
        log.append(("ran", "forward", int(labels[0, 0]), Trained.last_stage))
        return loss(output, labels)

    return witnessed_loss


register_train_spec(
    TrainSpec(
        name="witnessed",
        cls=WitnessedLlama,
        config={"small": TransformerModelArgs(dim=16, n_layers=6, n_heads=2, multiple_of=16)},
        parallelize_fn=parallelize_llama,
        pipelining_fn=pipeline_llama,
        build_optimizers_fn=build_optimizers,
        build_lr_schedulers_fn=build_lr_schedulers,
        build_dataloader_fn=Data,
        build_tokenizer_fn=lambda job_config: Tokenizer(),
        build_loss_fn=build_loss,
    )
)


class Trained(Trainer):
    """Keeps the losses of the schedule's steps."""

    last_stage = None

    def forward_backward_step(self, *args):
        loss = super().forward_backward_step(*args)
        self.losses.append(loss.item().hex())
        return loss


def config(schedule, ranks):
    made = JobConfig()
    made.job.dump_folder = tempfile.mkdtemp(prefix="perseus_frameworks.")
    made.model.name, made.model.flavor = "witnessed", "small"
    made.training.local_batch_size, made.training.global_batch_size = MICROBATCHES, ACCUMULATED * MICROBATCHES
    made.training.seq_len, made.training.steps, made.training.seed = LENGTH, STEPS, 1
    made.optimizer.implementation = "foreach"
    made.lr_scheduler.warmup_steps = 1
    made.parallelism.pipeline_parallel_degree = ranks
    made.parallelism.pipeline_parallel_schedule = schedule
    made.activation_checkpoint.mode = "none"
    made.metrics.log_freq = 1
    return made


def train(schedule, mode):
    log.clear()
    options = {}
    trainer = Trained(config(schedule, int(os.environ["WORLD_SIZE"])))
    trainer.losses = []
    stages = getattr(trainer.pp_schedule, "_stages", None) or [trainer.pp_schedule._stage]
    for stage in stages:
        stage.submod.stage_index = stage.stage_index
    Trained.last_stage = stages[0].num_stages - 1
    if mode == "without":
        trainer.train()
    else:
        with recorded_client.replaced(mode, log, options):
            torch_pipelining.install(trainer.pp_schedule)
            trainer.train()
    weights = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for m in trainer.model_parts for p in m.parameters()))
    said = {"losses": trainer.losses, "weights": weights.hexdigest()}
    if mode == "failing":
        said["failures"] = log.count(("failed",))
    if mode == "recorded":
        chunk_of = {index: chunk for chunk, index in enumerate(sorted(stage.stage_index for stage in stages))}
        said["steps"] = [kind for verb, kind, *_ in log if verb == "step"]
        said["computations"], said["wrong"] = witness.compared([entry for entry in log if entry[0] != "step"], chunk_of)
        said["options"] = {key: value for key, value in options.items() if key != "facts"}
    trainer.close()
    dist_utils.init_distributed = lambda job_config: None  # the next trainer uses the same process group
    return said


def main(*schedules):
    os.environ["LOCAL_RANK"] = "0"  # every rank's device is cpu:0
    torch.set_num_threads(1)
    keep_transfers_alive()
    said = {schedule: {mode: train(schedule, mode) for mode in ("without", "recorded", "failing")} for schedule in schedules}
    print(json.dumps(said), flush=True)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
