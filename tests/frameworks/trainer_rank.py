"""One rank of a trainer with its own loop: trains an instrumented model, and prints its computations.

usage: trainer_rank.py TRAINER    TRAINER: lightning, transformers, accelerate; torchrun's variables in the environment
Trains without Perseus, with its calls recorded, and with each raising: two epochs, the gradients of MICROBATCHES batches
accumulated. Lightning and Accelerate also step the optimizer after the last batch of an epoch, which is one alone.
Output: JSON: of each mode, losses, weights (a digest); if recorded, the computations and optimizer steps in order, what is
wrong with them, the options.
"""

import hashlib
import json
import os
import sys
import tempfile

import recorded_client
import torch
import torch.distributed
import torch.utils.data
import witness
from torch.optim.optimizer import register_optimizer_step_post_hook

MICROBATCHES, EPOCHS, SIZE = 2, 2, 2
RANKS = int(os.environ["WORLD_SIZE"])


class Model(torch.nn.Module):
    def __init__(self, log):
        super().__init__()
        self.stage, self.losses = witness.Stage(0, log), []

    def forward(self, input, labels):
        output = self.stage(input)
        loss = torch.nn.functional.mse_loss(output[:, : witness.WIDTH], labels)
        if self.training:
            self.losses.append(loss.item().hex())
        return {"loss": loss, "output": output}


class Rows(torch.utils.data.Dataset):
    """Rows of the witness. Ranks take batches in turns, so all of a turn have the same number."""

    def __init__(self, batches):
        generator = torch.Generator().manual_seed(1)
        values = torch.randn(batches * RANKS * SIZE, 2 * witness.WIDTH, generator=generator)
        numbers = (torch.arange(batches) % MICROBATCHES).repeat_interleave(RANKS * SIZE).unsqueeze(1)
        self.input, self.labels = torch.cat([values[:, : witness.WIDTH], numbers], 1), values[:, witness.WIDTH :]

    def __len__(self):
        return len(self.input)

    def __getitem__(self, index):
        return {"input": self.input[index], "labels": self.labels[index]}


def optimizer_of(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train_by_lightning(model, perseus):
    from lightning.pytorch import LightningModule, Trainer

    class Lightning(LightningModule):
        def __init__(self):
            super().__init__()
            self.model = model

        def training_step(self, batch, index):
            return self.model(**batch)["loss"]

        def validation_step(self, batch, index):
            self.model(**batch)

        def configure_optimizers(self):
            return optimizer_of(self)

    callbacks = []
    if perseus:
        from perseus.adapters.lightning import PerseusCallback

        callbacks = [PerseusCallback(job_name="test")]
    rank = int(os.environ["RANK"])
    rows = Rows(5)
    mine = [i for i in range(len(rows)) if i // SIZE % RANKS == rank]
    batches = torch.utils.data.DataLoader(torch.utils.data.Subset(rows, mine), batch_size=SIZE)
    Trainer(
        accelerator="cpu", devices=RANKS, strategy="ddp" if RANKS > 1 else "auto", max_epochs=EPOCHS, logger=False,
        accumulate_grad_batches=MICROBATCHES, callbacks=callbacks, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, use_distributed_sampler=False,
    ).fit(Lightning(), batches, batches)  # fmt: skip


def train_by_transformers(model, perseus):
    import tokenizers_absent

    tokenizers_absent.install()
    from transformers import Trainer, TrainingArguments

    class InOrder(Trainer):
        def _get_train_sampler(self, *_):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    callbacks = []
    if perseus:
        from perseus.adapters.transformers import PerseusCallback

        callbacks = [PerseusCallback(job_name="test")]
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(prefix="perseus_frameworks."), use_cpu=True, report_to=[], save_strategy="no",
        ddp_backend="gloo",
        gradient_accumulation_steps=MICROBATCHES, per_device_train_batch_size=SIZE, num_train_epochs=EPOCHS,
        per_device_eval_batch_size=SIZE, eval_strategy="epoch", disable_tqdm=True, seed=1,
    )  # fmt: skip
    rows, optimizer = Rows(6), optimizer_of(model)
    constant = torch.optim.lr_scheduler.ConstantLR(optimizer, 1)
    InOrder(
        model=model, args=arguments, train_dataset=rows, eval_dataset=rows, callbacks=callbacks,
        optimizers=(optimizer, constant),
    ).train()  # fmt: skip


def train_by_accelerate(model, perseus):
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=MICROBATCHES)
    batches = torch.utils.data.DataLoader(Rows(5), batch_size=SIZE)
    model, optimizer, batches = accelerator.prepare(model, optimizer_of(model), batches)
    if perseus:
        from perseus.adapters import plain

        plain.install(model, microbatches=accelerator.gradient_accumulation_steps, job_name="test")
    for _ in range(EPOCHS):
        for batch in batches:
            with accelerator.accumulate(model):
                accelerator.backward(model(**batch)["loss"])
                optimizer.step()
                optimizer.zero_grad()


def train(trainer, mode):
    log, options = [], {}
    model = Model(log)
    watch = register_optimizer_step_post_hook(lambda *_: log.append(("optimizer",)))
    by = {"lightning": train_by_lightning, "transformers": train_by_transformers, "accelerate": train_by_accelerate}[trainer]
    if mode == "without":
        by(model, False)
    else:
        with recorded_client.replaced(mode, log, options):
            by(model, True)
    watch.remove()
    weights = hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters()))
    said = {"losses": model.losses, "weights": weights.hexdigest(), "failures": log.count(("failed",))}
    if mode == "recorded":
        said["order"] = [entry for entry in log if entry[0] in ("begin", "step", "optimizer")]
        computations = [entry for entry in log if entry[0] not in ("step", "optimizer")]
        said["computations"], said["wrong"] = witness.compared(computations, {0: 0})
        said["options"] = options
    return said


def main(trainer):
    torch.set_num_threads(1)
    if RANKS > 1:
        torch.distributed.init_process_group("gloo")  # Accelerate would take MPI, which Debian's PyTorch has
    said = {mode: train(trainer, mode) for mode in ("without", "recorded", "failing")}
    print(json.dumps(said), flush=True)
    if torch.distributed.is_initialized():
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
