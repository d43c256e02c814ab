"""Sets up a rank of an example: its GPU, real or simulated, and the report of the energy saved."""

import json
import os
import tempfile
import urllib.request
from pathlib import Path

import torch
import torch.distributed as dist

from perseus import client, simulated_gpu

STEPS_MEASURED = 30
PROFILE = Path(__file__).parents[2] / "data" / "sample_profile.csv"


class Setting:
    def __init__(self, ranks_differ=True, time_scale=0.5):
        """Initializes torch.distributed and this rank's device.

        ranks_differ: each simulated GPU has its own stage of the profile; otherwise all have the first stage.
        time_scale: factor of the profile's times, so large that a simulated GPU does not wait for this CPU."""
        self.on_gpus = torch.cuda.is_available()
        dist.init_process_group("nccl" if self.on_gpus else "gloo")
        self.rank, self.ranks = dist.get_rank(), dist.get_world_size()
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if self.on_gpus else torch.device("cpu")
        self.stage, self.simulated, self.planned = self.rank if ranks_differ else 0, None, []
        if self.on_gpus:
            torch.cuda.set_device(self.device)
            torch.zeros(1, device=self.device)  # creates the CUDA context in which Perseus measures time
            return
        folder = [tempfile.mkdtemp(prefix="perseus_example.") if self.rank == 0 else None]
        dist.broadcast_object_list(folder)
        kernels = simulated_gpu.kernels_of(PROFILE.read_text(), [self.stage], time_scale)
        self.simulated = simulated_gpu.SimulatedGpu(folder[0], self.rank, kernels)
        self.simulated.follow_transfers()
        dist.barrier()

    def run(self, module):
        """Returns the module on this rank's device; on a simulated GPU, its forward and backward take that GPU's time."""
        module = module.to(self.device)
        if self.simulated is not None:
            self.simulated.run(module, self.stage)
        return module

    def end_step(self):
        """Ends a step; returns whether all ranks have trained under a plan for more than STEPS_MEASURED steps."""
        if self.simulated is not None:
            self.simulated.meet(self.ranks)
            self.simulated.end_step()
        statistics = client.current().statistics() if client.current() else {}
        if statistics.get("state") == "planned" and statistics["iteration"] > statistics["plan_from_iteration"] + 2:
            self.planned.append(statistics["energy_total_j"])
        enough = torch.tensor(int(len(self.planned) > STEPS_MEASURED), device=self.device)
        dist.all_reduce(enough, dist.ReduceOp.MIN)
        return bool(enough)

    def say_what_was_saved(self):
        steps = max(1, len(self.planned) - 1)
        joules = torch.tensor([(self.planned[-1] - self.planned[0]) / steps if self.planned else 0.0], device=self.device)
        dist.all_reduce(joules)
        if self.rank == 0:
            gpus = "GPUs" if self.on_gpus else "simulated GPUs"
            with urllib.request.urlopen(f"{os.environ['PERSEUS_SERVER']}/v1/jobs/{client.current().job}") as answer:
                expected = json.load(answer)["savings"]["per_iteration"]
            said = f"{self.ranks} {gpus}: there was no plan, nothing was saved"
            if expected and self.planned:
                before, now = expected["all_max_energy_j"], joules.item()
                said = (f"{self.ranks} {gpus}: {before:.0f} J a step at the maximum clock; under the plan {now:.0f} J measured, "
                        f"{expected['energy_j']:.0f} J expected; {100 * (1 - now / before):.1f} % saved")  # fmt: skip
            print(said)
        client.stop()
        dist.barrier()
        dist.destroy_process_group()
