// The work of a layer, independent of the GPU: its kernels, in FLOPs and bytes of one microbatch.
//
// Threads: plain values.
// Source:  counted from the layers' definitions, see planning/partitioner/model_zoo.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "planning/model/layer.h"

namespace perseus::partitioner {

enum class Precision : unsigned char { tf32, bf16 };

constexpr std::string_view precision_name(Precision precision) {
  return precision == Precision::tf32 ? "tf32" : "bf16";
}
constexpr double bytes_per_element(Precision precision) { return precision == Precision::tf32 ? 4 : 2; }

/// Relative speed of matrix products whose rows are not a multiple of 16 bytes (GPT-3's 50257 words, BERT's 30522): the
/// tensor cores cannot load them in the fastest way.
inline constexpr double kUnalignedSpeed = 0.75;

/// A kernel, or several of the same kind that run one after the other.
struct Kernel {
  double flops = 0;       ///< of matrix products; other kernels are memory-bound
  double bytes = 0;       ///< read and written
  double link_bytes = 0;  ///< sent to GPUs of the same node: the tensor-parallel group, experts
  int launches = 1;
  double speed = 1;          ///< of its matrix products, relative to the usual speed; see kUnalignedSpeed
  double network_bytes = 0;  ///< sent to experts of other nodes
};

struct LayerWork {
  std::string name;
  model::LayerKind kind = model::LayerKind::transformer;
  std::vector<Kernel> forward;
  std::vector<Kernel> backward;
  double parameters = 0;  ///< of the whole layer, over all its GPUs
};

}  // namespace perseus::partitioner
