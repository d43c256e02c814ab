"""What the adapter adds to a computation of Megatron Core: prints microseconds, by the process's CPU time.

usage: run.sh BUILD megatron_overhead.py    with PERSEUS_MEGATRON = a checkout
A client without a server, device or plan; the least of several runs without and with it, on a model that computes nothing.
"""

import sys
import time

sys.path.insert(0, "/megatron")

import cuda_on_cpu  # noqa: E402

cuda_on_cpu.install()

import torch  # noqa: E402
import torch.distributed  # noqa: E402

from megatron.core import parallel_state  # noqa: E402
from megatron.core.enums import ModelType  # noqa: E402
from megatron.core.pipeline_parallel import get_forward_backward_func  # noqa: E402
from megatron.core.transformer.module import MegatronModule  # noqa: E402
from megatron.core.transformer.transformer_config import TransformerConfig  # noqa: E402
from perseus import client  # noqa: E402
from perseus.adapters import megatron  # noqa: E402

MICROBATCHES, RUNS = 500, 15


class Nothing(MegatronModule):
    def __init__(self):
        super().__init__(TransformerConfig(num_layers=1, hidden_size=2, num_attention_heads=1))
        self.model_type, self.weight = ModelType.encoder_or_decoder, torch.nn.Parameter(torch.ones(1))

    def set_input_tensor(self, _):
        pass


def run(model):
    function = get_forward_backward_func()
    began = time.process_time()
    function(
        forward_step_func=lambda data, model: (model.weight, lambda output: (output.sum(), {})),
        data_iterator=None, model=model, num_microbatches=MICROBATCHES, seq_length=1, micro_batch_size=1,
    )  # fmt: skip
    return (time.process_time() - began) / (2 * MICROBATCHES)


def main():
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    parallel_state.initialize_model_parallel()
    model = Nothing()
    without, with_it = [], []
    for _ in range(RUNS):
        without.append(run(model))
        megatron.install(device="none")
        with_it.append(run(model))
        megatron.uninstall()
    client.stop()
    print(f"{1e6 * (min(with_it) - min(without)):.1f} us of {1e6 * min(without):.1f} us a computation")


if __name__ == "__main__":
    main()
