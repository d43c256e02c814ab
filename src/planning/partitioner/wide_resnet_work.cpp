#include "planning/partitioner/wide_resnet_work.h"

#include <fmt/format.h>

#include <utility>

namespace perseus::partitioner {
namespace {

constexpr int kClasses = 1000;

class BlockBuilder {
 public:
  explicit BlockBuilder(const Workload& workload)
      : workload_(workload), images_(workload.microbatch_size), element_(bytes_per_element(workload.precision)) {}

  /// kernel x kernel convolution from `in` to `out` channels, then its batch normalization.
  void convolution(double in, double out, double kernel, double side_in, double side_out) {
    const double share = 1.0 / workload_.tensor_parallel;
    const double weights = in * out * kernel * kernel;
    const double pixels_in = images_ * side_in * side_in;
    const double pixels_out = images_ * side_out * side_out;
    work_.parameters += weights + 2 * out;
    add({2 * weights * pixels_out * share, element_ * (pixels_in * in + (pixels_out * out + weights) * share)});
    elementwise(3, out * share, side_out);  // one read for the statistics, a read and a write to normalize
  }

  void elementwise(double passes, double channels, double side) {
    add({0, element_ * passes * channels * images_ * side * side});
  }

  void classifier(double in, double side) {
    elementwise(1, in, side);
    work_.parameters += (in + 1) * kClasses;
    add({2 * images_ * in * kClasses, element_ * (in * kClasses + images_ * (in + kClasses))});
  }

  LayerWork take(std::string name, model::LayerKind kind, bool recompute) {
    work_.name = std::move(name);
    work_.kind = kind;
    if (recompute) work_.backward.insert(work_.backward.begin(), work_.forward.begin(), work_.forward.end());
    return std::exchange(work_, {});
  }

 private:
  void add(const Kernel& kernel) {
    work_.forward.push_back(kernel);
    work_.backward.push_back({2 * kernel.flops, 2 * kernel.bytes, 0, 2});
  }

  const Workload& workload_;
  double images_;
  double element_;
  LayerWork work_;
};

}  // namespace

std::vector<LayerWork> work_of(const WideResnetShape& shape, const Workload& workload) {
  BlockBuilder builder(workload);
  std::vector<LayerWork> layers;
  double side = workload.sequence_length / 2.0;
  builder.convolution(3, 64, 7, 2 * side, side);
  builder.elementwise(2, 64, side);     // ReLU
  builder.elementwise(1.25, 64, side);  // maximum pooling to a quarter
  layers.push_back(builder.take("stem", model::LayerKind::other, workload.recompute));
  side /= 2;
  double in = 64;
  for (int group = 0; group < 4; ++group) {
    const double planes = 64 << group;
    const double inner = planes * shape.width;
    const double out = planes * 4;
    for (int block = 0; block < shape.blocks[group]; ++block) {
      const bool shrinks = group > 0 && block == 0;
      const double side_out = shrinks ? side / 2 : side;
      builder.convolution(in, inner, 1, side, side);
      builder.elementwise(2, inner, side);
      builder.convolution(inner, inner, 3, side, side_out);
      builder.elementwise(2, inner, side_out);
      builder.convolution(inner, out, 1, side_out, side_out);
      if (block == 0) builder.convolution(in, out, 1, side, side_out);
      builder.elementwise(5, out, side_out);  // the skip's sum, ReLU
      layers.push_back(
          builder.take(fmt::format("block {}.{}", group + 1, block), model::LayerKind::other, workload.recompute));
      in = out;
      side = side_out;
    }
  }
  builder.classifier(in, side);
  layers.push_back(builder.take("classifier", model::LayerKind::head, false));
  return layers;
}

}  // namespace perseus::partitioner
