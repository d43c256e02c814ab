#include "planning/partitioner/model_zoo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <variant>

#include "planning/partitioner/transformer_memory.h"
#include "planning/partitioner/transformer_work.h"
#include "planning/partitioner/wide_resnet_work.h"

namespace perseus::partitioner {
namespace {

using Shape = std::variant<TransformerShape, EncoderDecoderShape, WideResnetShape>;

struct Model {
  ZooEntry entry;
  Shape shape;
};

// Eager code writes every intermediate; docs/partition.md names the operations. The members of Passes, in this order.
constexpr Passes kEagerGpt{23, 17, 8.5, 24};
constexpr Passes kEagerBloom{22, 19, 7, 24};
constexpr Passes kEagerBert{23, 2, 8.5, 18};
constexpr Passes kEagerT5{23, 4.5, 6.5, 20};
constexpr Passes kFused{12, 3, 0, 8};

Workload language(int microbatch_size, int sequence_length, Precision precision, int tensor_parallel = 1,
                  int expert_parallel = 1) {
  return {microbatch_size, sequence_length, tensor_parallel, expert_parallel, precision, false};
}

Model gpt3(std::string_view name, std::string_view parameters, int layers, int hidden, int heads) {
  TransformerShape shape{layers, hidden, heads, heads, hidden / heads, 4 * hidden, 50257, kEagerGpt};
  shape.shifted_labels = true;
  shape.positions = 2048;
  return {{name, parameters, language(4, 2048, Precision::tf32)}, shape};
}

Model bloom(std::string_view name, std::string_view parameters, int layers, int hidden, int heads) {
  TransformerShape shape{layers, hidden, heads, heads, hidden / heads, 4 * hidden, 250880, kEagerBloom};
  shape.shifted_labels = true;
  return {{name, parameters, language(4, 2048, Precision::tf32)}, shape};
}

Model bert(std::string_view name, std::string_view parameters, int layers, int hidden, int heads) {
  TransformerShape shape{layers, hidden, heads, heads, hidden / heads, 4 * hidden, 30522, kEagerBert};
  shape.causal = false;
  shape.head_transform = true;
  shape.positions = 512;
  return {{name, parameters, language(8, 512, Precision::tf32)}, shape};
}

Model t5(std::string_view name, std::string_view parameters, int layers, int hidden, int heads, int head_size,
         int ffn) {
  TransformerShape shape{layers, hidden, heads, heads, head_size, ffn, 32128, kEagerT5};
  shape.causal = false;
  return {{name, parameters, language(4, 512, Precision::tf32)}, EncoderDecoderShape{shape}};
}

Model wide_resnet(std::string_view name, std::string_view parameters, std::array<int, 4> blocks) {
  return {{name, parameters, {32, 224, 1, 1, Precision::tf32, false}}, WideResnetShape{blocks, 8}};
}

TransformerShape gated(int layers, int hidden, int heads, int kv_heads, int head_size, int ffn, int vocabulary) {
  TransformerShape shape{layers, hidden, heads, kv_heads, head_size, ffn, vocabulary, kFused};
  shape.gated = true;
  shape.tied_embedding = false;
  return shape;
}

TransformerShape tied(TransformerShape shape) {
  shape.tied_embedding = true;
  return shape;
}

TransformerShape mixture(TransformerShape shape, int experts, int active, int expert_ffn) {
  shape.experts = experts;
  shape.active_experts = active;
  shape.expert_ffn = expert_ffn;
  return shape;
}

TransformerShape deepseek_v3() {
  TransformerShape shape = mixture(gated(61, 7168, 128, 128, 128, 18432, 129280), 256, 8, 2048);
  shape.shared_experts = 1;
  shape.expert_nodes = 4;
  shape.dense_layers = 3;
  shape.q_rank = 1536;
  shape.kv_rank = 512;
  shape.rope_size = 64;
  shape.mtp_layers = 1;
  return shape;
}

std::vector<Model> all_models() {
  const auto bf16 = [](int sequence_length, int tensor_parallel = 1, int expert_parallel = 1) {
    return language(1, sequence_length, Precision::bf16, tensor_parallel, expert_parallel);
  };
  return {
      gpt3("gpt3-1b", "GPT-3 1.3B (XL)", 24, 2048, 16),
      gpt3("gpt3-3b", "GPT-3 2.7B", 32, 2560, 32),
      gpt3("gpt3-7b", "GPT-3 6.7B", 32, 4096, 32),
      gpt3("gpt3-13b", "GPT-3 13B", 40, 5120, 40),
      gpt3("gpt3-175b", "GPT-3 175B", 96, 12288, 96),
      bloom("bloom-3b", "Bloom 3B", 30, 2560, 32),
      bloom("bloom-7b", "Bloom 7.1B", 30, 4096, 32),
      bloom("bloom-176b", "Bloom 176B", 70, 14336, 112),
      bert("bert-0.1b", "BERT base", 12, 768, 12),
      bert("bert-0.3b", "BERT large", 24, 1024, 16),
      bert("bert-1.3b", "BERT huge", 24, 2048, 32),
      t5("t5-0.2b", "T5 base", 12, 768, 12, 64, 3072),
      t5("t5-0.7b", "T5 large", 24, 1024, 16, 64, 4096),
      t5("t5-2.9b", "T5 3B", 24, 1024, 32, 128, 16384),
      wide_resnet("wide-resnet50", "Wide-ResNet50, width 8", {3, 4, 6, 3}),
      wide_resnet("wide-resnet101", "Wide-ResNet101, width 8", {3, 4, 23, 3}),
      {{"llama3-8b", "Llama 3 8B", bf16(8192)}, gated(32, 4096, 32, 8, 128, 14336, 128256)},
      {{"llama3-70b", "Llama 3 70B", bf16(8192, 8)}, gated(80, 8192, 64, 8, 128, 28672, 128256)},
      {{"llama3-405b", "Llama 3 405B", bf16(8192, 8)}, gated(126, 16384, 128, 8, 128, 53248, 128256)},
      {{"qwen3-0.6b", "Qwen3 0.6B", bf16(4096)}, tied(gated(28, 1024, 16, 8, 128, 3072, 151936))},
      {{"qwen3-1.7b", "Qwen3 1.7B", bf16(4096)}, tied(gated(28, 2048, 16, 8, 128, 6144, 151936))},
      {{"qwen3-4b", "Qwen3 4B", bf16(4096)}, tied(gated(36, 2560, 32, 8, 128, 9728, 151936))},
      {{"qwen3-8b", "Qwen3 8B", bf16(4096)}, gated(36, 4096, 32, 8, 128, 12288, 151936)},
      {{"qwen3-14b", "Qwen3 14B", bf16(4096)}, gated(40, 5120, 40, 8, 128, 17408, 151936)},
      {{"qwen3-32b", "Qwen3 32B", bf16(4096, 4)}, gated(64, 5120, 64, 8, 128, 25600, 151936)},
      {{"qwen3-30b-a3b", "Qwen3 30B, 3B active", bf16(4096, 1, 8)},
       mixture(gated(48, 2048, 32, 4, 128, 6144, 151936), 128, 8, 768)},
      {{"qwen3-235b-a22b", "Qwen3 235B, 22B active", bf16(4096, 2, 32)},
       mixture(gated(94, 4096, 64, 4, 128, 12288, 151936), 128, 8, 1536)},
      {{"mixtral-8x7b", "Mixtral 8x7B", bf16(4096, 1, 8)},
       mixture(gated(32, 4096, 32, 8, 128, 14336, 32000), 8, 2, 14336)},
      {{"mixtral-8x22b", "Mixtral 8x22B", bf16(4096, 2, 8)},
       mixture(gated(56, 6144, 48, 8, 128, 16384, 32000), 8, 2, 16384)},
      {{"deepseek-v3", "DeepSeek-V3 671B, 37B active", bf16(4096, 1, 64)}, deepseek_v3()},
  };
}

const std::vector<Model>& models() {
  static const std::vector<Model> all = all_models();
  return all;
}

Result<const Model*> model_named(std::string_view name) {
  std::string wanted(name);
  std::ranges::transform(wanted, wanted.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  std::vector<std::string_view> names;
  for (const Model& model : models()) {
    if (model.entry.name == wanted) return &model;
    names.emplace_back(model.entry.name);
  }
  return Error{ErrorCode::usage,
               fmt::format("unknown model '{}'; allowed: {}", name.substr(0, 64), fmt::join(names, ", "))};
}

Status check(const Workload& workload) {
  const auto within = [](const char* what, int value, int most) -> Status {
    if (value >= 1 && value <= most) return Ok{};
    return Error{ErrorCode::usage, fmt::format("{} is {}; allowed: 1 to {}", what, value, most)};
  };
  for (const Status& status : {within("the microbatch size", workload.microbatch_size, 1'000'000),
                               within("the sequence length", workload.sequence_length, 10'000'000),
                               within("the tensor-parallel degree", workload.tensor_parallel, 1024),
                               within("the expert-parallel degree", workload.expert_parallel, 1024)}) {
    if (!status) return status.error();
  }
  return Ok{};
}

}  // namespace

const std::vector<ZooEntry>& zoo() {
  static const std::vector<ZooEntry> entries = [] {
    std::vector<ZooEntry> all;
    for (const Model& model : models()) all.push_back(model.entry);
    return all;
  }();
  return entries;
}

Result<ZooEntry> zoo_entry(std::string_view name) {
  const auto model = model_named(name);
  if (!model) return model.error();
  return (*model)->entry;
}

Result<std::vector<LayerWork>> zoo_layers(std::string_view name, const Workload& workload) {
  const auto model = model_named(name);
  if (!model) return model.error();
  if (const Status status = check(workload); !status) return status.error();
  return std::visit([&](const auto& shape) { return work_of(shape, workload); }, (*model)->shape);
}

Result<std::vector<model::StageMemory>> zoo_memory(std::string_view name, const Workload& workload, int stages,
                                                   std::vector<int> layers_per_stage) {
  const auto model = model_named(name);
  if (!model) return model.error();
  if (const Status status = check(workload); !status) return status.error();
  const auto* shape = std::get_if<TransformerShape>(&(*model)->shape);
  if (shape == nullptr || !has_known_memory(*shape)) {
    std::vector<std::string_view> known;
    for (const Model& other : models()) {
      const auto* its = std::get_if<TransformerShape>(&other.shape);
      if (its != nullptr && has_known_memory(*its)) known.emplace_back(other.entry.name);
    }
    return Error{ErrorCode::usage,
                 fmt::format("the memory of {} is not known; allowed: {}", name, fmt::join(known, ", "))};
  }
  if (layers_per_stage.size() == 1) layers_per_stage.resize(static_cast<std::size_t>(stages), layers_per_stage.front());
  const int sum = std::accumulate(layers_per_stage.begin(), layers_per_stage.end(), 0);
  if (static_cast<int>(layers_per_stage.size()) != stages || sum != shape->layers) {
    return Error{ErrorCode::usage, fmt::format("{} layers on {} stages; {} has {} layers, the profile {} stages", sum,
                                               layers_per_stage.size(), name, shape->layers, stages)};
  }
  return memory_of(*shape, workload, layers_per_stage);
}

}  // namespace perseus::partitioner
