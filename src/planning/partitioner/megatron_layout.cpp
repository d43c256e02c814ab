#include "planning/partitioner/megatron_layout.h"

#include <fmt/format.h>

#include <vector>

namespace perseus::partitioner {
namespace {

char letter_of(model::LayerKind kind) {
  switch (kind) {
    case model::LayerKind::embedding:
      return 'E';
    case model::LayerKind::mtp:
      return 'm';
    case model::LayerKind::head:
      return 'L';
    default:
      return 't';
  }
}

Status check(std::span<const model::Layer> layers, const Partition& partition) {
  const auto fails = [](const std::string& why) {
    return Error{ErrorCode::invalid_input, fmt::format("Megatron's layouts cannot express this: {}", why)};
  };
  const int num_layers = static_cast<int>(layers.size());
  int mtp_stage = -1;
  int stage = 0;
  for (int i = 0; i < num_layers; ++i) {
    if (i == partition.boundaries[stage + 1]) ++stage;
    const model::Layer& layer = layers[i];
    switch (layer.kind) {
      case model::LayerKind::other:
        return fails(fmt::format("layer {} ('{}') is neither embedding, transformer, mtp nor head", i, layer.name));
      case model::LayerKind::embedding:
        if (i != 0) return fails(fmt::format("layer {} ('{}') is an embedding and not the first", i, layer.name));
        break;
      case model::LayerKind::head:
        if (i != num_layers - 1) return fails(fmt::format("layer {} ('{}') is a head and not the last", i, layer.name));
        break;
      case model::LayerKind::mtp:
        if (stage == 0) return fails(fmt::format("mtp layer {} ('{}') is in the first stage", i, layer.name));
        if (mtp_stage != -1 && mtp_stage != stage) {
          return fails(fmt::format("mtp layers are in stages {} and {}", mtp_stage, stage));
        }
        mtp_stage = stage;
        break;
      case model::LayerKind::transformer:
        if (mtp_stage != -1) return fails(fmt::format("layer {} ('{}') comes after an mtp layer", i, layer.name));
        break;
    }
  }
  return Ok{};
}

/// "ttttmL" -> "t*4mL"
std::string with_runs(const std::string& letters) {
  std::string text;
  for (std::size_t begin = 0; begin < letters.size();) {
    const std::size_t end = std::min(letters.find_first_not_of(letters[begin], begin), letters.size());
    text += end - begin == 1 ? std::string(1, letters[begin]) : fmt::format("{}*{}", letters[begin], end - begin);
    begin = end;
  }
  return text;
}

}  // namespace

Result<std::string> megatron_layout(std::span<const model::Layer> layers, const Partition& partition) {
  if (const Status status = check(layers, partition); !status) return status.error();
  const int num_stages = partition.num_stages();
  std::vector<std::string> stages(num_stages);
  for (int s = 0; s < num_stages; ++s) {
    std::string letters;
    for (int i = partition.boundaries[s]; i < partition.boundaries[s + 1]; ++i) letters += letter_of(layers[i].kind);
    if (s == 0 && letters.front() != 'E') letters.insert(letters.begin(), 'E');
    if (s == num_stages - 1 && letters.back() != 'L') letters += 'L';
    stages[s] = with_runs(letters);
  }
  std::string layout;
  for (int s = 0; s < num_stages;) {
    int end = s + 1;
    while (end < num_stages && stages[end] == stages[s]) ++end;
    // The last stage has no bar after it, so it never joins a repetition: it ends with L and the others do not.
    if (end - s >= 3) {
      layout += fmt::format("({}|)*{}", stages[s], end - s);
    } else {
      for (int i = s; i < end; ++i) layout += fmt::format("{}{}", stages[i], i + 1 < num_stages ? "|" : "");
    }
    s = end;
  }
  return layout;
}

}  // namespace perseus::partitioner
