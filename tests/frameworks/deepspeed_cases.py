"""The jobs of DeepSpeed's pipeline engine that tests run: stages, microbatches, its configuration."""

import dataclasses


@dataclasses.dataclass
class Case:
    ranks: int
    stages: int
    microbatches: int = 4
    config: dict = dataclasses.field(default_factory=dict)

    @property
    def data_parallel(self):
        return self.ranks // self.stages


_ZERO_1 = {"zero_optimization": {"stage": 1, "reduce_bucket_size": 100000}}
_CHECKPOINTS = {"pipeline": {"activation_checkpoint_interval": 1}}
_CHECKPOINTS_NOT_REENTRANT = {"pipeline": {"activation_checkpoint_interval": 1, "use_reentrant": False}}

CASES = {
    "2 stages": Case(ranks=2, stages=2),
    "1 stage": Case(ranks=2, stages=1),
    "2 stages, activation checkpoints": Case(ranks=2, stages=2, config=_CHECKPOINTS),
    "2 stages, activation checkpoints, not reentrant": Case(ranks=2, stages=2, config=_CHECKPOINTS_NOT_REENTRANT),
    "1 stage, ZeRO-1": Case(ranks=2, stages=1, config=_ZERO_1),
    "4 stages": Case(ranks=4, stages=4, microbatches=6),
    "2 stages, ZeRO-1": Case(ranks=4, stages=2, config=_ZERO_1),
}
