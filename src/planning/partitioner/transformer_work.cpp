#include "planning/partitioner/transformer_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace perseus::partitioner {
namespace {

constexpr double kGpusOfNode = 8;

/// Collects one layer's kernels. Counts are doubles: they are large, and only their ratios matter.
class LayerBuilder {
 public:
  LayerBuilder(const TransformerShape& shape, const Workload& workload)
      : shape_(shape),
        workload_(workload),
        tokens_(double(workload.microbatch_size) * workload.sequence_length),
        element_(bytes_per_element(workload.precision)) {}

  /// A linear layer: tokens x in times in x out, `share` of it on this GPU; there are `copies` of its weights.
  void linear(double in, double out, double share = 1, double rows_per_token = 1, double copies = 1) {
    const double rows = tokens_ * rows_per_token;
    work_.parameters += in * out * copies;
    const double weights = in * out * share * copies;
    const bool aligned = std::fmod(out * share * element_, 16) == 0;
    add({2 * rows * in * out * share, element_ * (rows * in + rows * out * share + weights), 0, 1,
         aligned ? 1 : kUnalignedSpeed},
        2);
  }

  /// `passes` reads or writes of `elements` per token.
  void elementwise(double passes, double elements) { add({0, element_ * passes * elements * tokens_, 0, 0}, 2); }
  void launches(int count) { add({0, 0, 0, count}, 2); }

  /// Attention scores and their product with the values, for these sizes of queries, keys and values per head.
  void attention(double heads, double query_size, double value_size, double passes, bool causal) {
    const double s = workload_.sequence_length;
    const double on_chip_heads = heads / workload_.tensor_parallel;
    const double scores = tokens_ * s * on_chip_heads;
    const double vectors = tokens_ * on_chip_heads * (2 * query_size + 2 * value_size);
    if (passes > 0) {
      add({2 * scores * query_size, element_ * (2 * tokens_ * on_chip_heads * query_size + scores)}, 2);
      add({0, element_ * passes * scores, 0, 0}, 2);
      add({2 * scores * value_size, element_ * (2 * tokens_ * on_chip_heads * value_size + scores)}, 2);
    } else {
      // The backward of fused attention computes the scores again: five products instead of two.
      add({2 * scores * (query_size + value_size) * (causal ? 0.5 : 1), element_ * vectors}, 2.5);
    }
  }

  /// The all-reduce after each half of a layer that is split over GPUs.
  void all_reduce() {
    const double n = workload_.tensor_parallel;
    if (n > 1) add({0, 0, 2 * (n - 1) / n * tokens_ * shape_.hidden * element_}, 1);
  }

  void self_attention() {
    const double tp = 1.0 / workload_.tensor_parallel;
    const double d = shape_.hidden;
    const double h = shape_.heads;
    if (shape_.kv_rank > 0) {
      const double rope = shape_.rope_size;
      linear(d, shape_.q_rank);
      linear(shape_.q_rank, h * (shape_.head_size + rope), tp);
      linear(d, shape_.kv_rank + rope);
      linear(shape_.kv_rank, h * 2 * shape_.head_size, tp);
      attention(h, shape_.head_size + rope, shape_.head_size, shape_.passes.scores, shape_.causal);
    } else {
      linear(d, (h + 2.0 * shape_.kv_heads) * shape_.head_size, tp);
      attention(h, shape_.head_size, shape_.head_size, shape_.passes.scores, shape_.causal);
    }
    linear(h * shape_.head_size, d, tp);
    all_reduce();
  }

  /// Cross-attention of T5's decoder: queries of the decoder, keys and values of the encoder's output (as many
  /// tokens).
  void cross_attention() {
    const double tp = 1.0 / workload_.tensor_parallel;
    const double size = double(shape_.heads) * shape_.head_size;
    linear(shape_.hidden, size, tp);
    linear(shape_.hidden, 2 * size, tp);
    attention(shape_.heads, shape_.head_size, shape_.head_size, shape_.passes.scores, false);
    linear(size, shape_.hidden, tp);
    all_reduce();
  }

  void mlp(double ffn, double rows_per_token = 1, double copies_here = 1) {
    const double tp = 1.0 / workload_.tensor_parallel;
    linear(shape_.hidden, (shape_.gated ? 2 : 1) * ffn, tp, rows_per_token, copies_here);
    elementwise(shape_.passes.activation * rows_per_token * tp, ffn);
    linear(ffn, shape_.hidden, tp, rows_per_token, copies_here);
  }

  /// Tokens to the GPUs of their experts, and the results back. A token's experts lie on `expert_nodes` nodes at most;
  /// to each it goes once through the network, and from there on within the node.
  void exchange() {
    const double gpus = workload_.expert_parallel, node = std::min(gpus, kGpusOfNode);
    const double vectors = 2 * tokens_ / workload_.tensor_parallel * shape_.hidden * element_;
    const double sent = std::min<double>(shape_.active_experts, gpus);
    const double nodes = std::min({sent, gpus / node, double(shape_.expert_nodes)});
    if (gpus > 1) { add({0, 0, vectors * sent * (node - 1) / node, 2, 1, vectors * nodes * (1 - node / gpus)}, 1); }
  }

  void experts() {
    linear(shape_.hidden, shape_.experts);
    exchange();
    // Sorts tokens by expert, and back.
    elementwise(4.0 * shape_.active_experts, shape_.hidden);
    const double before = work_.parameters;
    mlp(shape_.expert_ffn, shape_.active_experts, double(shape_.experts) / workload_.expert_parallel);
    work_.parameters = before + (work_.parameters - before) * workload_.expert_parallel;
    for (int i = 0; i < shape_.shared_experts; ++i) mlp(shape_.expert_ffn);
    all_reduce();
  }

  void dense_mlp() {
    mlp(shape_.ffn);
    all_reduce();
  }

  void glue() {
    elementwise(shape_.passes.hidden, shape_.hidden);
    launches(shape_.passes.launches);
  }

  /// Look-up, positions, and the operations on their sum.
  void embedding() {
    work_.parameters += double(shape_.vocabulary + shape_.positions) * shape_.hidden;
    elementwise(shape_.positions > 0 ? 8 : 4, shape_.hidden);
    launches(3);
  }

  void head(int predictions) {
    const double tp = 1.0 / workload_.tensor_parallel;
    const double logits = double(shape_.vocabulary) * tp;
    const double before = work_.parameters;
    for (int i = 0; i < predictions; ++i) {
      if (shape_.head_transform) {
        linear(shape_.hidden, shape_.hidden);
        elementwise(4, shape_.hidden);
      }
      elementwise(2, shape_.hidden);
      linear(shape_.hidden, shape_.vocabulary, tp);
      if (shape_.shifted_labels) elementwise(2, logits);
      // The loss uses single precision: a conversion if needed, two reads for the sum, one write.
      const double conversion = workload_.precision == Precision::tf32 ? 0 : element_ + 4;
      add({0, (conversion + 12) * logits * tokens_, 0, 4}, 1);
    }
    work_.parameters = shape_.tied_embedding ? 0 : (work_.parameters - before) / predictions;
  }

  LayerWork take(std::string name, model::LayerKind kind, bool recompute) {
    work_.name = std::move(name);
    work_.kind = kind;
    if (recompute) work_.backward.insert(work_.backward.begin(), work_.forward.begin(), work_.forward.end());
    return std::exchange(work_, {});
  }

 private:
  /// The backward of a kernel is `factor` times the forward: gradients of inputs and of weights.
  void add(const Kernel& kernel, double factor) {
    work_.forward.push_back(kernel);
    const int launches = static_cast<int>(factor * kernel.launches);
    work_.backward.push_back({factor * kernel.flops, factor * kernel.bytes, factor * kernel.link_bytes, launches,
                              kernel.speed, factor * kernel.network_bytes});
  }

  const TransformerShape& shape_;
  const Workload& workload_;
  double tokens_;
  double element_;
  LayerWork work_;
};

}  // namespace

std::vector<LayerWork> work_of(const TransformerShape& shape, const Workload& workload) {
  LayerBuilder builder(shape, workload);
  std::vector<LayerWork> layers;
  for (int i = 0; i < shape.layers + shape.mtp_layers; ++i) {
    const bool mtp = i >= shape.layers;
    if (i == 0 && workload.embedding) builder.embedding();
    if (mtp) builder.linear(2.0 * shape.hidden, shape.hidden);
    builder.glue();
    builder.self_attention();
    if (shape.experts > 0 && i >= shape.dense_layers) {
      builder.experts();
    } else {
      builder.dense_mlp();
    }
    const std::string name = mtp ? fmt::format("mtp {}", i - shape.layers) : fmt::format("layer {}", i);
    layers.push_back(
        builder.take(name, mtp ? model::LayerKind::mtp : model::LayerKind::transformer, workload.recompute));
  }
  builder.head(1 + shape.mtp_layers);
  layers.push_back(builder.take("head", model::LayerKind::head, false));
  return layers;
}

std::vector<LayerWork> work_of(const EncoderDecoderShape& both, const Workload& workload) {
  const TransformerShape& shape = both.layer;
  LayerBuilder builder(shape, workload);
  std::vector<LayerWork> layers;
  for (int i = 0; i < 2 * shape.layers; ++i) {
    const bool decoder = i >= shape.layers;
    if (i == 0 && workload.embedding) builder.embedding();
    builder.glue();
    builder.self_attention();
    if (decoder) {
      // A third sub-layer adds half of the elementwise work of the other two.
      builder.elementwise(shape.passes.hidden / 2, shape.hidden);
      builder.launches(shape.passes.launches / 2);
      builder.cross_attention();
    }
    builder.dense_mlp();
    const std::string name = fmt::format("{} {}", decoder ? "decoder" : "encoder", i % shape.layers);
    layers.push_back(builder.take(name, model::LayerKind::other, workload.recompute));
  }
  builder.head(1);
  layers.push_back(builder.take("head", model::LayerKind::head, false));
  return layers;
}

}  // namespace perseus::partitioner
