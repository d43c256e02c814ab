// What a layer does, independent of the GPU that does it: its kernels, in FLOPs and bytes of one microbatch.
//
// Threads: plain values. Source: counted from the layers' definitions, see planning/partitioner/model_zoo.h.
#pragma once

#include <string>
#include <vector>

#include "planning/model/layer.h"

namespace perseus::partitioner {

enum class Precision : unsigned char { tf32, bf16 };

constexpr double bytes_per_element(Precision precision) { return precision == Precision::tf32 ? 4 : 2; }

/// Matrix products whose rows are no multiple of 16 bytes (GPT-3's 50257 words, BERT's 30522) cannot be loaded in the
/// tensor cores' favourite way.
inline constexpr double unaligned_speed = 0.75;

/// Kernels that run one after the other; several of the same kind can be one entry.
struct Kernel {
  double flops = 0;       ///< of matrix products; others are bound by memory anyway
  double bytes = 0;       ///< read and written
  double link_bytes = 0;  ///< sent to the tensor-parallel group
  int launches = 1;
  double speed = 1;  ///< of its matrix products, as a share of the usual; see unaligned_speed
};

struct LayerWork {
  std::string name;
  model::LayerKind kind = model::LayerKind::transformer;
  std::vector<Kernel> forward;
  std::vector<Kernel> backward;
  double parameters = 0;  ///< of the whole layer, on however many GPUs
};

}  // namespace perseus::partitioner
