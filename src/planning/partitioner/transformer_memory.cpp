#include "planning/partitioner/transformer_memory.h"

#include <cstddef>

namespace perseus::partitioner {
namespace {

constexpr double kGib = 1024.0 * 1024 * 1024;
constexpr double kStateBytesPerParameter = 16;

}  // namespace

bool has_known_memory(const TransformerShape& shape) {
  return !shape.gated && shape.experts == 0 && shape.kv_rank == 0 && shape.mtp_layers == 0 &&
         shape.kv_heads == shape.heads && shape.passes.scores > 0;
}

std::vector<model::StageMemory> memory_of(const TransformerShape& shape, const Workload& workload,
                                          const std::vector<int>& layers_per_stage) {
  const double e = bytes_per_element(workload.precision), share = 1.0 / workload.tensor_parallel;
  const double b = workload.microbatch_size, s = workload.sequence_length, h = shape.hidden;
  const double attention_size = static_cast<double>(shape.heads) * shape.head_size;
  const double sbh = s * b * h;
  // Not divided by tensor parallelism: inputs of both normalizations, of QKV and of the MLP, two dropout masks.
  const double replicated = (4 * e + 2) * sbh;
  // Divided: queries, keys, values, the projection's input; input and output of the MLP's activation.
  const double divided = share * e * s * b * (4 * attention_size + 2 * static_cast<double>(shape.ffn));
  // Output of softmax and of dropout, and dropout's mask.
  const double scores = share * (2 * e + 1) * shape.heads * s * s * b;
  const double layer = replicated + divided + scores;
  const double logits = 4 * s * b * shape.vocabulary * share;
  const double head = 2 * e * sbh + logits;

  const std::vector<LayerWork> work = work_of(shape, workload);
  std::vector<model::StageMemory> stages;
  std::size_t next = 0;
  for (std::size_t stage = 0; stage < layers_per_stage.size(); ++stage) {
    const int layers = layers_per_stage[stage];
    const bool first = stage == 0, last = stage + 1 == layers_per_stage.size();
    double parameters = 0;
    for (int i = 0; i < layers; ++i) parameters += work[next++].parameters;
    if (last) parameters += work.back().parameters;
    if (last && !first && shape.tied_embedding) parameters += static_cast<double>(shape.vocabulary) * h;
    const double ends = (first ? sbh : 0) + (last ? head : 0);
    stages.push_back({kStateBytesPerParameter * parameters * share / kGib, (layers * layer + ends) / kGib,
                      (layers * e * sbh + ends) / kGib, layer / kGib});
  }
  return stages;
}

}  // namespace perseus::partitioner
