#include "io/trace/span.h"

#include <algorithm>

namespace perseus::trace {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, kNumSpanKinds> kKindNames = {"forward",
                                                                    "backward",
                                                                    "input_gradient",
                                                                    "weight_gradient",
                                                                    "recompute",
                                                                    "pure_backward",
                                                                    "forward_send",
                                                                    "forward_receive",
                                                                    "backward_send",
                                                                    "backward_receive",
                                                                    "receive",
                                                                    "parameter_gather",
                                                                    "gradient_reduce",
                                                                    "embedding_reduce",
                                                                    "other_reduce",
                                                                    "gradient_clip",
                                                                    "optimizer",
                                                                    "garbage_collection",
                                                                    "step"};

}  // namespace

std::span<const std::string_view> span_kind_names() { return kKindNames; }

std::string_view name_of(SpanKind kind) { return kKindNames[static_cast<std::size_t>(kind)]; }

std::optional<SpanKind> span_kind_named(std::string_view name) {
  const auto* const found = std::ranges::find(kKindNames, name);
  if (found == kKindNames.end()) return std::nullopt;
  return static_cast<SpanKind>(found - kKindNames.begin());
}

}  // namespace perseus::trace
