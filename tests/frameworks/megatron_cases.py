"""The jobs of Megatron Core that tests run: degrees, microbatches, options of its configuration."""

import dataclasses


@dataclasses.dataclass
class Case:
    ranks: int
    pp: int = 1
    tp: int = 1
    cp: int = 1
    chunks: int = None  # virtual_pipeline_model_parallel_size
    microbatches: int = 4
    config: dict = dataclasses.field(default_factory=dict)
    recompute: bool = False
    distributed_optimizer: bool = False
    evaluates: bool = True


# Megatron-LM refuses the interleaved schedule on two ranks without overlap: both are neighbors of each other twice.
_OVERLAP = {"overlap_p2p_comm": True}
_FLUSH = {**_OVERLAP, "overlap_p2p_comm_warmup_flush": True}

CASES = {
    "no pipeline": Case(ranks=2),
    "1F1B": Case(ranks=2, pp=2),
    "1F1B, recompute": Case(ranks=2, pp=2, recompute=True),
    "interleaved": Case(ranks=2, pp=2, chunks=2, config=_OVERLAP),
    "interleaved, groups of 3": Case(
        ranks=2, pp=2, chunks=2, microbatches=5, config={**_OVERLAP, "microbatch_group_size_per_vp_stage": 3}
    ),
    "interleaved, warm-up flush": Case(ranks=2, pp=2, chunks=2, config=_FLUSH),
    "interleaved, recompute": Case(ranks=2, pp=2, chunks=2, config=_OVERLAP, recompute=True),
    "tensor parallel": Case(ranks=2, tp=2),
    "context parallel": Case(ranks=2, cp=2),
    "distributed optimizer": Case(ranks=2, distributed_optimizer=True),
    "1F1B, 4 ranks": Case(ranks=4, pp=4, microbatches=6),
    "interleaved, 4 ranks": Case(ranks=4, pp=4, chunks=2, microbatches=8),
    "interleaved, 4 ranks, groups of 6": Case(
        ranks=4, pp=4, chunks=3, microbatches=12, config={"microbatch_group_size_per_vp_stage": 6}
    ),
    "interleaved, 4 ranks, overlap": Case(ranks=4, pp=4, chunks=2, microbatches=8, config=_OVERLAP),
    "1F1B, distributed optimizer": Case(ranks=4, pp=2, distributed_optimizer=True),
    "interleaved, distributed optimizer": Case(
        ranks=4, pp=2, chunks=2, config=_OVERLAP, distributed_optimizer=True
    ),
    "1F1B, tensor parallel": Case(ranks=4, pp=2, tp=2),
    "1F1B, context parallel": Case(ranks=4, pp=2, cp=2),
}
