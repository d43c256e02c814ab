// The work of transformer layers: GPT-3, Bloom, BERT, Llama, Qwen, Mixtral, DeepSeek, and T5's encoder and decoder.
//
// Errors:  none, all shapes come from the model zoo.
// Threads: pure functions.
// Source:  counting rules in docs/partition.md.
#pragma once

#include <vector>

#include "planning/partitioner/layer_work.h"
#include "planning/partitioner/model_zoo.h"

namespace perseus::partitioner {

/// Memory passes of element-wise operations, per element (a read or a write is one pass).
struct Passes {
  double hidden = 0;      ///< over tokens * hidden: normalizations, residuals, dropouts, copies
  double activation = 0;  ///< over tokens * ffn
  double scores = 0;      ///< over heads * sequence^2; 0: fused attention, which keeps them on the chip
  int launches = 0;       ///< kernels of a layer besides its matrix products
};

struct TransformerShape {
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_size = 0, ffn = 0, vocabulary = 0;
  Passes passes;
  bool gated = false;           ///< three matrices in the MLP instead of two
  bool causal = true;           ///< if so, fused attention skips the upper half
  bool head_transform = false;  ///< BERT: one more hidden x hidden layer before the vocabulary
  bool shifted_labels = false;  ///< the loss copies the logits to shift them
  bool tied_embedding = true;
  int positions = 0;  ///< learned position embeddings
  // Mixture of experts, in all layers but the first `dense_layers`.
  int experts = 0, active_experts = 0, expert_ffn = 0, shared_experts = 0, dense_layers = 0;
  int expert_nodes = 1 << 20;  ///< at most as many nodes have the experts of a token
  // Multi-head latent attention (DeepSeek): ranks of the compressed queries and keys, size of the rotary part.
  int q_rank = 0, kv_rank = 0, rope_size = 0;
  int mtp_layers = 0;
};

/// Encoder layers, then decoder layers (`layers` of each), then the head.
struct EncoderDecoderShape {
  TransformerShape layer;
};

std::vector<LayerWork> work_of(const TransformerShape& shape, const Workload& workload);
std::vector<LayerWork> work_of(const EncoderDecoderShape& shape, const Workload& workload);

}  // namespace perseus::partitioner
