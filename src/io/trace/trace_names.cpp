#include "io/trace/trace_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "io/formats/toml_reader.h"

namespace perseus::trace {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, kNumFields> kFieldNames = {"data",       "rank",  "tensor", "global", "step",
                                                                  "microbatch", "chunk", "stage",  "bytes"};
constexpr std::array<std::string_view, kNumFields + 1> kPlaceKeys = {
    "data", "rank", "tensor", "global", "step", "microbatch", "chunk", "stage", "bytes", "thread"};
constexpr std::array<std::string_view, 3> kRootKeys = {"categories", "places", "events"};

constexpr std::string_view kShared = R"([places]
data = "pid"
step = "args.step"
microbatch = "args.mb_id"
chunk = "args.model_chunk"
thread = "PP rank {rank}, TP rank {tensor}, {}"
[events]
forward = ["forward-compute"]
backward = ["backward-compute"]
forward_send = ["forward-send"]
forward_receive = ["forward-recv"]
backward_send = ["backward-send"]
backward_receive = ["backward-recv"]
parameter_gather = ["params-all-gather"]
gradient_reduce = ["grads-reduce-scatter"]
embedding_reduce = ["embedding-grads-all-reduce"]
other_reduce = ["layernorm-grads-all-reduce"]
gradient_clip = ["optimizer-clip-main-grad"]
optimizer = ["optimizer"]
garbage_collection = ["gc"]
)";
constexpr std::string_view kTorch = R"(categories = ["gpu_user_annotation", "user_annotation"]
[places]
global = "file"
[events]
forward = ["Forward {microbatch}", "{stage}F{microbatch}", "PP:{stage}F{microbatch}"]
backward = ["Backward {microbatch}", "{stage}B{microbatch}", "PP:{stage}B{microbatch}"]
input_gradient = ["{stage}I{microbatch}", "PP:{stage}I{microbatch}"]
weight_gradient = ["{stage}W{microbatch}", "PP:{stage}W{microbatch}"]
other_reduce = ["PP:{stage}REDUCE_GRAD"]
receive = ["gloo:recv"]
optimizer = ["Optimizer.step#{}"]
step = ["ProfilerStep#{step}"]
)";
constexpr std::string_view kMegatron = R"([places]
global = "file"
step = "args.megatron.iteration"
[events]
forward = ["megatron.microbatch.forward", "forward-compute"]
backward = ["megatron.microbatch.backward", "backward-compute"]
forward_send = ["megatron.p2p.send_forward", "{}.send_forward", "forward-send"]
forward_receive = ["megatron.p2p.recv_forward", "{}.recv_forward", "forward-recv"]
backward_send = ["megatron.p2p.send_backward", "{}.send_backward", "backward-send"]
backward_receive = ["megatron.p2p.recv_backward", "{}.recv_backward", "backward-recv"]
parameter_gather = ["params-all-gather"]
gradient_reduce = ["megatron.grad_sync.finish", "all-grads-sync"]
embedding_reduce = ["embedding-grads-all-reduce"]
other_reduce = ["non-tensor-parallel-grads-all-reduce"]
gradient_clip = ["optimizer-clip-main-grad"]
optimizer = ["optimizer", "megatron.train.iteration.optimizer"]
garbage_collection = ["megatron.train.gc_collect"]
step = ["megatron.train.iteration", "megatron.train.iteration.uncommitted", "megatron.train_step", "ProfilerStep#{step}"]
)";
constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kReady = {
    {{"shared", kShared}, {"torch", kTorch}, {"megatron", kMegatron}}};

std::optional<int> leading_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

/// What no name can match: a brace that is not closed, a place that does not exist. Empty: nothing.
std::string fault_of(std::string_view pattern) {
  for (std::size_t open = 0; (open = pattern.find('{', open)) != std::string_view::npos; ++open) {
    const std::size_t close = pattern.find('}', open);
    if (close == std::string_view::npos)
      return fmt::format("no }} after '{}'; allowed: {{}} and the name of a place in braces", pattern.substr(open));
    const std::string_view field = pattern.substr(open + 1, close - open - 1);
    if (!field.empty() && std::ranges::find(kFieldNames, field) == kFieldNames.end())
      return fmt::format("unknown place {{{}}}; allowed: {{{}}}, and {{}} for anything", field,
                         fmt::join(kFieldNames, "}, {"));
  }
  return {};
}

/// Errors of [events] that the types of its values do not show.
Status check_events(const TraceNames& names, const formats::TomlFields& events) {
  const auto wrong = [&](std::string_view kind, const std::string& message) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: [events] {}: {}", events.where(kind), kind, message)};
  };
  const auto has = [&](SpanKind kind) {
    return std::ranges::find(names.events, kind, &std::pair<std::string, SpanKind>::second) != names.events.end();
  };
  for (auto event = names.events.begin(); event != names.events.end(); ++event) {
    const auto& [pattern, kind] = *event;
    if (const std::string fault = fault_of(pattern); !fault.empty())
      return wrong(name_of(kind), fmt::format("'{}': {}", pattern, fault));
    const auto first = std::ranges::find(names.events, pattern, &std::pair<std::string, SpanKind>::first);
    if (first != event)
      return wrong(name_of(kind),
                   fmt::format("'{}' is also in {}; allowed: each pattern once", pattern, name_of(first->second)));
  }
  if (!has(SpanKind::forward)) return wrong("forward", "is missing; allowed: at least one pattern");
  if (!has(SpanKind::backward) && !has(SpanKind::input_gradient) && !has(SpanKind::pure_backward))
    return wrong("backward",
                 "is missing; allowed: at least one pattern, or input_gradient and weight_gradient, or recompute and "
                 "pure_backward");
  return Ok{};
}

}  // namespace

std::span<const std::string_view> field_names() { return kFieldNames; }

const std::vector<TraceNames>& ready_names() {
  static const std::vector<TraceNames> all = [] {
    std::vector<TraceNames> names;
    for (const auto& [name, text] : kReady) {
      names.push_back(parse_trace_names(text, std::string(name)).value());
      names.back().name = name;
    }
    return names;
  }();
  return all;
}

std::string_view ready_names_text(std::string_view name) {
  const auto* const found = std::ranges::find(kReady, name, &std::pair<std::string_view, std::string_view>::first);
  return found == kReady.end() ? std::string_view() : found->second;
}

Result<TraceNames> parse_trace_names(std::string_view text, const std::string& file) {
  const auto root = formats::parse_toml(text, file);
  if (!root) return root.error();
  TraceNames names;
  names.name = file;
  formats::TomlFields top(*root, file, "", kRootKeys);
  if (top.has("categories")) names.categories = top.strings("categories");
  if (const toml::table* table = top.table("places")) {
    formats::TomlFields places(*table, file, "[places]", kPlaceKeys);
    for (std::size_t f = 0; f < kFieldNames.size(); ++f) {
      if (!places.has(kFieldNames[f])) continue;
      names.places[f] = places.string(kFieldNames[f]);
      const std::string& place = names.places[f];
      if (place != "pid" && place != "tid" && place != "file" && (!place.starts_with("args.") || place.size() == 5))
        places.fail(kFieldNames[f], "\"pid\", \"tid\", \"file\" or \"args.NAME\"");
    }
    if (places.has("thread")) names.thread = places.string("thread");
    places.reject_others();
    if (places.error()) return *places.error();
    if (const std::string fault = fault_of(names.thread); !fault.empty())
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}: [places] thread: '{}': {}", places.where("thread"), names.thread, fault)};
  }
  const toml::table* table = top.table("events");
  if (table == nullptr) top.fail("events", "a table [events] of kinds and names");
  top.reject_others();
  if (top.error()) return *top.error();
  formats::TomlFields events(*table, file, "[events]", span_kind_names());
  for (const std::string_view kind : span_kind_names()) {
    if (!events.has(kind)) continue;
    for (std::string& pattern : events.strings(kind))
      names.events.emplace_back(std::move(pattern), *span_kind_named(kind));
  }
  events.reject_others();
  if (events.error()) return *events.error();
  if (Status checked = check_events(names, events); !checked) return checked.error();
  return names;
}

bool matches(std::string_view pattern, std::string_view name, FieldValues& fields) {
  while (!pattern.empty()) {
    if (pattern.front() != '{') {
      if (name.empty() || name.front() != pattern.front()) return false;
      pattern.remove_prefix(1);
      name.remove_prefix(1);
      continue;
    }
    const std::size_t close = pattern.find('}');
    if (close == std::string_view::npos) return false;
    const std::string_view field = pattern.substr(1, close - 1);
    pattern.remove_prefix(close + 1);
    if (field.empty()) {  // anything, up to what follows
      if (pattern.empty()) return true;
      for (std::size_t skip = 0; skip <= name.size(); ++skip) {
        if (matches(pattern, name.substr(skip), fields)) return true;
      }
      return false;
    }
    const auto* const found = std::ranges::find(kFieldNames, field);
    const auto value = leading_number(name);
    if (found == kFieldNames.end() || !value) return false;
    fields[static_cast<std::size_t>(found - kFieldNames.begin())] = *value;
  }
  return name.empty();
}

}  // namespace perseus::trace
