"""Trains a small GPT with Megatron Core, one pipeline stage per rank, and prints what a plan saves.

It measures 20 steps without a server, trains with Perseus until there is a plan, and measures 20 steps under the plan.

    perseus serve --listen 0.0.0.0:7787 --data /var/lib/perseus
    torchrun --nproc-per-node 4 examples/megatron_gpt.py http://localhost:7787 [PROFILE]

PROFILE is the name of a profile that the server has; without it, the job is profiled while it trains. Each rank needs a GPU
and the right to set its clock (`perseus doctor`). Without GPUs, see tests/frameworks/on_simulated_gpu.py.
"""

import os
import sys
from statistics import median

import torch
from megatron.core import parallel_state
from megatron.core.models.gpt import GPTModel
from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec
from megatron.core.pipeline_parallel import get_forward_backward_func
from megatron.core.tensor_parallel import model_parallel_cuda_manual_seed
from megatron.core.transformer.transformer_config import TransformerConfig

from perseus import client
from perseus.adapters import megatron

MICROBATCHES, SEQUENCE, VOCABULARY, MEASURED, LIMIT = 4, 16, 64, 20, 1000
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
torch.distributed.init_process_group()
ranks = torch.distributed.get_world_size()
parallel_state.initialize_model_parallel(pipeline_model_parallel_size=ranks)
model_parallel_cuda_manual_seed(1)
config = TransformerConfig(
    num_layers=2 * ranks, hidden_size=32, num_attention_heads=4, pipeline_model_parallel_size=ranks,
    pipeline_dtype=torch.float32, masked_softmax_fusion=False, batch_p2p_comm=True,
)  # fmt: skip
first, last = parallel_state.is_pipeline_first_stage(), parallel_state.is_pipeline_last_stage()
model = GPTModel(
    config, get_gpt_layer_local_spec(), VOCABULARY, SEQUENCE, pre_process=first, post_process=last,
    share_embeddings_and_output_weights=False,
).cuda()  # fmt: skip
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
positions = torch.arange(SEQUENCE, device="cuda").unsqueeze(0)
later = torch.ones(1, 1, SEQUENCE, SEQUENCE, dtype=torch.bool, device="cuda").triu(1)


def forward_step(data, model):
    tokens = next(data)
    output = model(tokens[:, :-1], positions, later, labels=tokens[:, 1:])
    return output, lambda losses: (losses.mean(), {"loss": losses.mean().detach()})


def batches():
    numbers = torch.arange(SEQUENCE + 1, device="cuda").unsqueeze(0)
    return iter([(3 * numbers + start) % VOCABULARY for start in range(MICROBATCHES)])


def train(steps, until=lambda: False):
    """Returns the median energy of a step (J, all ranks), the median time of a step (s, slowest rank), and the steps run."""
    joules, seconds = [], []
    for step in range(1, steps + 1):
        get_forward_backward_func()(
            forward_step_func=forward_step, data_iterator=batches(), model=model, num_microbatches=MICROBATCHES,
            seq_length=SEQUENCE, micro_batch_size=1,
        )  # fmt: skip
        optimizer.step()
        optimizer.zero_grad()
        statistics = client.current().statistics()
        joules.append(statistics["last_iteration_energy_j"])
        seconds.append(statistics["last_iteration_time_s"])
        if step % 5 == 0:  # not every step: the check waits for the GPU
            done = torch.tensor([float(until())], device="cuda")
            torch.distributed.all_reduce(done, torch.distributed.ReduceOp.MIN)
            if done:
                break
    figures = torch.tensor([median(joules), median(seconds)], device="cuda")
    torch.distributed.all_reduce(figures[:1])
    torch.distributed.all_reduce(figures[1:], torch.distributed.ReduceOp.MAX)
    return *figures.tolist(), step


def planned():
    return client.current().statistics()["state"] == "planned"


megatron.install()  # without a server, the client only measures
train(5)
joules, seconds, _ = train(MEASURED)
megatron.uninstall()
client.stop()
profile = sys.argv[2] if len(sys.argv) > 2 else None
megatron.install(server=sys.argv[1], profile=profile, facts={"model": "small GPT"})
*_, steps = train(LIMIT, until=planned)
train(5)
joules_now, seconds_now, _ = train(MEASURED)
if torch.distributed.get_rank() == 0:
    print(f"planned after {steps} steps, job {client.current().job}")
    print(f"{joules:.1f} J and {seconds:.3f} s a step before, {joules_now:.1f} J and {seconds_now:.3f} s under the plan:")
    print(f"saved {100 * (1 - joules_now / joules):.2f} % of energy, {100 * (seconds_now / seconds - 1):.2f} % slower")
torch.distributed.barrier()
client.stop()
torch.distributed.destroy_process_group()
