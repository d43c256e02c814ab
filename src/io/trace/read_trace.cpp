#include "io/trace/read_trace.h"

#include <fmt/format.h>
#include <simdjson.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/split.h"
#include "io/formats/number.h"
#include "io/trace/event_splitter.h"

namespace perseus::trace {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t kPieceBytes = 1U << 20U;
constexpr std::size_t kMostNames = 100'000;  ///< remembered
constexpr std::size_t kLongestGpu = 128;     ///< name
constexpr std::size_t kMostGpus = 16;        ///< whose names are told apart
constexpr std::string_view kGpuRange = "gpu_user_annotation";
constexpr double kMost_us = 1e18;
constexpr double kLongest_us = 86.4e9;  ///< of an event: a day
/// Largest numbers of a span.
constexpr std::array<std::pair<SpanField, int>, 3> kMostNumbers = {
    {{SpanField::microbatch, 32'767}, {SpanField::stage, 32'767}, {SpanField::chunk, 127}}};

/// What an event's name says.
struct Named {
  bool known = false;
  SpanKind kind = SpanKind::forward;
  FieldValues fields = kNoFields;
};

/// The members of an event that matter. Views are into the event.
struct TraceEvent {
  std::string_view phase, name, category, pid, tid;
  std::optional<double> ts, dur;
  FieldValues args = kNoFields;
  int iteration = -1, step = -1;  ///< args of these names
  std::string_view thread_name;   ///< args.name
  std::size_t wrong = 0;          ///< a field of args whose value is no number
  std::string_view wrong_value;   ///< empty: none
};

std::optional<double> number_of(std::string_view text) {
  while (!text.empty() && (text.front() == '"' || text.front() == ' ')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == '"' || text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  return text.starts_with('+') ? std::nullopt : formats::number_in<double>(text);
}

/// -1: null or -1, as recorders write "none". Nothing: neither that nor a whole number from 0.
std::optional<int> whole_number(std::string_view text) {
  if (text == "null") return -1;
  const auto value = number_of(text);
  if (!value || *value != std::floor(*value) || *value < -1 || *value > std::numeric_limits<int>::max())
    return std::nullopt;
  return static_cast<int>(*value);
}

int field_of(std::string_view text) { return whole_number(text).value_or(-1); }

class TraceReader {
 public:
  TraceReader(const std::optional<TraceNames>& names, std::size_t most_spans) : most_spans_(most_spans) {
    if (names) use(*names);
  }

  /// `next()` returns the next piece of the file, empty at its end.
  template <class Next>
  Status read_file(const std::string& file, Next next) {
    file_ = file;
    event_ = 0;
    rank_of_file_ = static_cast<int>(timeline_.files.size());
    names_its_rank_ = false;
    timeline_.files.push_back(file);
    begins_s_.push_back(HUGE_VAL);
    first_span_ = timeline_.spans.size();
    first_thread_ = timeline_.threads.size();
    thread_numbers_.clear();
    parts_.clear();
    kernels_s_.clear();
    open_.clear();
    EventSplitter splitter;
    const auto visit = [this](std::string_view key, std::string_view object) {
      return key.empty() ? read_event(object) : read_member(key, object);
    };
    for (;;) {
      const Result<std::string_view> piece = next();
      if (!piece) return piece.error();
      if (piece->empty()) break;
      if (Status status = splitter.feed(*piece, visit); !status) return in_file(status.error());
    }
    if (Status status = splitter.finish(); !status) return in_file(status.error());
    for (const auto& [thread, open] : open_) timeline_.unpaired_events += std::ssize(open);
    keep_first_category();
    keep_computing_streams();
    has_several_ranks_ = !names_its_rank_ && several_processes_compute();
    for (std::size_t t = first_thread_; t < timeline_.threads.size(); ++t) complete(timeline_.threads[t]);
    return Ok{};
  }

  Result<TraceSpans> finish() {
    if (timeline_.events == 0)
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}: no event; expected a list of events or an object with traceEvents", file_)};
    if (timeline_.spans.empty()) {
      std::string known;
      for (const auto& [pattern, kind] : names_.events) known += (known.empty() ? "" : ", ") + pattern;
      if (known.empty()) known = "a mapping with --names FILE";
      return Error{
          ErrorCode::invalid_input,
          fmt::format("{}: none of {} events has a name of a computation{}; expected {}", file_, timeline_.events,
                      timeline_.unpaired_events == 0
                          ? ""
                          : fmt::format(", and {} begin or end alone", timeline_.unpaired_events),
                      known)};
    }
    if (const auto missing = missing_place(); !missing.empty())
      return Error{ErrorCode::invalid_input, is_ready() ? fmt::format("{}: {} [places] {}", file_, names_.name, missing)
                                                        : fmt::format("{}: [places] {}", names_.name, missing)};
    if (until_s_ < HUGE_VAL) timeline_.read_s = until_s_;
    assign_steps();
    timeline_.names = names_.name;
    return std::move(timeline_);
  }

 private:
  /// The first place that never occurs. Of ready mappings, which name what some recorders leave out: that is there, but
  /// no number, or whose lack leaves several threads of a process in one place.
  [[nodiscard]] std::string missing_place() const {
    const bool ready = is_ready();
    for (std::size_t f = 0; f < kNumFields; ++f) {
      const std::string& place = names_.places[f];
      if (!place.empty() && !occurs_[f] && (!ready || (place == "pid" && !raw_.front().pid.empty())))
        return fmt::format("{}: no event of {} has a whole number at '{}'", field_names()[f], file_, place);
    }
    if (names_.thread.empty() || thread_occurs_ || (ready && !several_threads_compute())) return {};
    return fmt::format("thread: no thread of {} is named like '{}'", file_, names_.thread);
  }
  [[nodiscard]] bool is_ready() const {
    return std::ranges::find(ready_names(), names_.name, &TraceNames::name) != ready_names().end();
  }
  /// In the file that was read last.
  [[nodiscard]] bool several_processes_compute() const {
    const std::string* first = nullptr;
    return std::any_of(timeline_.spans.begin() + static_cast<std::ptrdiff_t>(first_span_), timeline_.spans.end(),
                       [&](const Span& s) {
                         if (!is_compute(s.kind)) return false;
                         if (first == nullptr) first = &raw_[s.thread].pid;
                         return raw_[s.thread].pid != *first;
                       });
  }
  [[nodiscard]] bool several_threads_compute() const {
    std::map<std::string_view, int> thread_of;  // of a process
    return std::ranges::any_of(timeline_.spans, [&](const Span& s) {
      return is_compute(s.kind) && thread_of.try_emplace(raw_[s.thread].pid, s.thread).first->second != s.thread;
    });
  }

  Error in_file(const Error& error) const {
    return error.message.starts_with(file_) ? error : Error{error.code, fmt::format("{}: {}", file_, error.message)};
  }
  Error in_event(std::string_view name, const std::string& message) const {
    return {ErrorCode::invalid_input, name.empty()
                                          ? fmt::format("{}: event {}: {}", file_, event_, message)
                                          : fmt::format("{}: event {} ({}): {}", file_, event_, name, message)};
  }

  void use(const TraceNames& names) {
    names_ = names;
    chosen_ = true;
    known_.clear();
    for (std::size_t f = 0; f < kNumFields; ++f) {
      if (names_.places[f].starts_with("args.")) args_.emplace_back(names_.places[f].substr(5), f);
    }
  }

  static Named named_by(const TraceNames& names, std::string_view name) {
    for (const auto& [pattern, kind] : names.events) {
      Named named{true, kind, kNoFields};
      if (matches(pattern, name, named.fields)) return named;
    }
    return {};
  }

  const Named& named(std::string_view name) {
    if (last_ != nullptr && name == last_name_) return *last_;
    if (!chosen_) {  // the first event that a ready mapping knows decides
      for (const TraceNames& ready : ready_names()) {
        if (named_by(ready, name).known) {
          use(ready);
          break;
        }
      }
    }
    if (known_.size() > kMostNames) known_.clear();
    const auto [found, is_new] = known_.try_emplace(std::string(name));
    if (is_new && chosen_) found->second = named_by(names_, name);
    last_name_ = found->first;
    last_ = &found->second;
    return *last_;
  }

  Status read_member(std::string_view key, std::string_view object) {
    if (key == "deviceProperties") read_device(object);
    if (key != "distributedInfo") return Ok{};
    ondemand::document document;
    std::int64_t rank = 0, world = 0;
    if (parse(object, document) || document["rank"].get(rank) || rank < 0 || rank > 1'000'000)
      return Error{ErrorCode::invalid_input, "distributedInfo: no member rank; expected a whole number from 0"};
    rank_of_file_ = static_cast<int>(rank);
    names_its_rank_ = true;
    if (parse(object, document) == simdjson::SUCCESS && document["world_size"].get(world) == simdjson::SUCCESS)
      timeline_.world_size = std::max(timeline_.world_size, static_cast<int>(world));
    return Ok{};
  }

  void read_device(std::string_view object) {
    ondemand::document document;
    std::string_view name;
    if (parse(object, document) || document["name"].get(name) || name.size() > kLongestGpu) return;
    if (std::ranges::find(timeline_.gpus, name) == timeline_.gpus.end() && timeline_.gpus.size() < kMostGpus)
      timeline_.gpus.emplace_back(name);
  }

  simdjson::error_code parse(std::string_view object, ondemand::document& document) {
    return parser_.iterate(object.data(), object.size(), object.size() + EventSplitter::kPadding).get(document);
  }

  Status read_event(std::string_view object) {
    ++event_;
    ++timeline_.events;
    ondemand::document document;
    if (!chosen_) {  // the mapping says which arguments to read
      std::string_view name;
      if (parse(object, document) == simdjson::SUCCESS && document["name"].get(name) == simdjson::SUCCESS) named(name);
    }
    ondemand::object members;
    if (const auto error = parse(object, document); error != simdjson::SUCCESS)
      return in_event("", fmt::format("{}; expected JSON", simdjson::error_message(error)));
    if (const auto error = document.get_object().get(members); error != simdjson::SUCCESS)
      return in_event("", fmt::format("{}; expected an object", simdjson::error_message(error)));
    TraceEvent event;
    for (auto member : members) {
      ondemand::raw_json_string key;
      ondemand::value value;
      if (member.key().get(key) || member.value().get(value))
        return in_event(event.name, "broken JSON; expected \"key\": value");
      simdjson::error_code error = simdjson::SUCCESS;
      std::string_view token;
      const auto number = [&](const char* name, std::optional<double>& into) -> Status {
        token = trimmed(value.raw_json_token());
        into = number_of(token);
        if (into && std::isfinite(*into) && std::abs(*into) <= kMost_us) return Ok{};
        return in_event(event.name, fmt::format("{} {}; expected a number of microseconds", name, token.substr(0, 40)));
      };
      if (key == "ph") {
        error = value.get_string().get(event.phase);
        if (error == simdjson::SUCCESS && event.phase.size() == 1 && std::strchr("XBEM", event.phase[0]) == nullptr) {
          ++timeline_.other_events;
          return Ok{};
        }
      } else if (key == "name") {
        error = value.get_string().get(event.name);
      } else if (key == "cat") {
        error = value.get_string().get(event.category);
      } else if (key == "pid") {
        event.pid = trimmed(value.raw_json_token());
      } else if (key == "tid") {
        event.tid = trimmed(value.raw_json_token());
      } else if (key == "ts") {
        if (Status status = number("ts", event.ts); !status) return status;
      } else if (key == "dur") {
        if (Status status = number("dur", event.dur); !status) return status;
      } else if (key == "args") {
        error = read_args(value, event);
      }
      if (error != simdjson::SUCCESS)
        return in_event(event.name, fmt::format("{}; expected an event's members", simdjson::error_message(error)));
    }
    return take_event(event);
  }

  simdjson::error_code read_args(ondemand::value value, TraceEvent& event) {
    ondemand::object args;
    if (value.get_object().get(args)) return simdjson::SUCCESS;  // some recorders write null
    for (auto arg : args) {
      ondemand::raw_json_string key;
      if (const auto error = arg.key().get(key)) return error;
      ondemand::value inner;
      if (const auto error = arg.value().get(inner)) return error;
      if (event.phase == "M" && key == "name") {
        if (inner.get_string().get(event.thread_name)) event.thread_name = {};
        continue;
      }
      if (key == "iteration") event.iteration = field_of(trimmed(inner.raw_json_token()));
      if (key == "step") event.step = field_of(trimmed(inner.raw_json_token()));
      for (const auto& [name, field] : args_) {
        if (key == std::string_view(name)) {
          const std::string_view token = trimmed(inner.raw_json_token());
          const auto number = whole_number(token);
          if (!number) event.wrong = field, event.wrong_value = token;
          event.args[field] = number.value_or(-1);
          occurs_[field] |= event.args[field] >= 0;
        }
      }
    }
    return simdjson::SUCCESS;
  }

  Status take_event(const TraceEvent& event) {
    if (event.phase == "M") {
      if (event.name == "thread_name") raw_[thread_of(event)].name = event.thread_name;
      return Ok{};
    }
    if (event.phase == "E") return end(event);
    if (event.phase != "X" && event.phase != "B")
      return in_event(event.name, fmt::format("ph '{}'; expected X, B, E or M among others", event.phase));
    const Named& name = named(event.name);
    if (event.phase == "X" && !name.known) {
      ++timeline_.other_events;
      if (event.category == "kernel" && !event.name.starts_with("nccl"))
        kernels_s_[thread_key(event.pid, event.tid)] += event.dur.value_or(0) / 1e6;
      return Ok{};
    }
    if (!event.ts) return in_event(event.name, "no ts; expected a number of microseconds");
    if (event.phase == "X" && !event.dur)
      return in_event(event.name, "no dur; expected a number of microseconds from 0");
    if (event.phase == "X" && (*event.dur < 0 || *event.dur > kLongest_us))
      return in_event(event.name, fmt::format("dur {}; expected a number of microseconds from 0 to {:.0f}, a day",
                                              *event.dur, kLongest_us));
    if (name.known && !event.wrong_value.empty())
      return in_event(event.name, fmt::format("{} {}; expected a whole number from 0", names_.places[event.wrong],
                                              event.wrong_value.substr(0, 40)));
    Span span;
    span.start_s = *event.ts / 1e6;
    span.duration_s = static_cast<float>(event.dur.value_or(0) / 1e6);
    const int thread = thread_of(event);
    span.thread = part_of(thread, event.args);
    span.kind = name.kind;
    const auto value = [&](SpanField field) {
      const auto f = static_cast<std::size_t>(field);
      return name.fields[f] >= 0 ? name.fields[f] : event.args[f];
    };
    for (const auto& [field, most] : kMostNumbers) {
      if (name.known && value(field) > most)
        return in_event(event.name, fmt::format("{} {}; expected at most {}",
                                                field_names()[static_cast<std::size_t>(field)], value(field), most));
    }
    span.step = value(SpanField::step);
    if (span.kind == SpanKind::step && span.step < 0) span.step = event.iteration >= 0 ? event.iteration : event.step;
    span.microbatch = static_cast<std::int16_t>(value(SpanField::microbatch));
    span.stage = static_cast<std::int16_t>(value(SpanField::stage));
    span.chunk = static_cast<std::int8_t>(value(SpanField::chunk));
    span.bytes = static_cast<float>(value(SpanField::bytes));
    const auto category = std::ranges::find(names_.categories, event.category) - names_.categories.begin();
    if (event.phase == "B") {
      open_[thread].push_back(
          {span, name.known, static_cast<int>(category), std::hash<std::string_view>()(event.name)});
      return Ok{};
    }
    keep(span, static_cast<int>(category));
    return Ok{};
  }

  Status end(const TraceEvent& event) {
    if (!event.ts) return in_event(event.name, "no ts; expected a number of microseconds");
    auto& open = open_[thread_of(event)];
    const auto begin = std::find_if(open.rbegin(), open.rend(), [&](const Open& o) {
      return event.name.empty() || o.name == std::hash<std::string_view>()(event.name);
    });
    if (begin == open.rend()) {
      ++timeline_.unpaired_events;
      return Ok{};
    }
    timeline_.unpaired_events += begin - open.rbegin();  // began within it and never ended
    Open last = *begin;
    open.erase(std::prev(begin.base()), open.end());
    const double duration = *event.ts / 1e6 - last.span.start_s;
    if (duration < 0 || 1e6 * duration > kLongest_us)
      return in_event(event.name, fmt::format("ts {}; expected an end after its begin, at most a day", *event.ts));
    last.span.duration_s = static_cast<float>(duration);
    if (last.known) {
      keep(last.span, last.category);
    } else {
      ++timeline_.other_events;
    }
    return Ok{};
  }

  void keep(const Span& span, int category) {
    begins_s_.back() = std::min(begins_s_.back(), span.start_s);
    if (thinned(span)) return;
    timeline_.spans.push_back(span);
    categories_.push_back(static_cast<std::int8_t>(category));
    if (timeline_.spans.size() < most_spans_) return;
    cut();
    if (timeline_.spans.size() < most_spans_ / 4 * 3) return;
    timeline_.thinned *= 2;
    drop([this](std::size_t i) { return thinned(timeline_.spans[i]); });
    most_spans_ = std::max(most_spans_, timeline_.spans.size() * 3 / 2);  // few steps: each stays whole
  }
  /// Drops the later half of the spans that have no step, if most have none.
  void cut() {
    std::vector<double> starts;
    for (const Span& s : timeline_.spans) {
      if (s.step < 0) starts.push_back(since_begin_s(s));
    }
    if (starts.size() < timeline_.spans.size() / 2) return;
    const auto middle = starts.begin() + std::ssize(starts) / 2;
    std::ranges::nth_element(starts, middle);
    if (*middle <= 0) return;
    until_s_ = *middle;
    drop([this](std::size_t i) { return thinned(timeline_.spans[i]); });
  }
  /// Since the first span of its file: the clocks of hosts may begin at different times.
  [[nodiscard]] double since_begin_s(const Span& span) const {
    const auto thread = static_cast<std::size_t>(span.thread);
    const std::size_t file =
        thread < first_thread_ ? static_cast<std::size_t>(timeline_.threads[thread].file) : begins_s_.size() - 1;
    return span.start_s - begins_s_[file];
  }
  bool thinned(const Span& span) {
    if (span.step < 0) return since_begin_s(span) >= until_s_;
    const auto number = step_numbers_.try_emplace(span.step, static_cast<int>(step_numbers_.size())).first->second;
    return number % timeline_.thinned != 0;
  }

  /// Drops the spans whose index is unwanted; asks in ascending order.
  template <class Unwanted>
  void drop(Unwanted unwanted) {
    std::size_t kept = 0, first = 0;
    for (std::size_t i = 0; i < timeline_.spans.size(); ++i) {
      if (i == first_span_) first = kept;
      if (unwanted(i)) continue;
      timeline_.spans[kept] = timeline_.spans[i];
      categories_[kept++] = categories_[i];
    }
    first_span_ = first_span_ < timeline_.spans.size() ? first : kept;
    timeline_.spans.resize(kept);
    categories_.resize(kept);
  }

  /// Of spans that the file has once on the host and once on the GPU, those of the first category in the mapping.
  void keep_first_category() {
    std::array<std::int8_t, kNumSpanKinds> first;
    first.fill(std::numeric_limits<std::int8_t>::max());
    const auto first_of = [&](std::size_t i) -> std::int8_t& {
      return first[static_cast<std::size_t>(timeline_.spans[i].kind)];
    };
    for (std::size_t i = first_span_; i < categories_.size(); ++i) first_of(i) = std::min(first_of(i), categories_[i]);
    drop([&](std::size_t i) { return i >= first_span_ && categories_[i] != first_of(i); });
  }

  /// Kineto repeats a range of the host on every stream that runs kernels of it. Of these, the one on the stream that
  /// computes counts: those of NCCL's streams contain the wait for other ranks, and gathers ahead of their computation.
  void keep_computing_streams() {
    if (!names_.thread.empty() || std::ranges::find(names_.places, "tid") != names_.places.end()) return;
    const auto on_gpu = [&](std::size_t i) {
      const std::size_t category = static_cast<unsigned char>(categories_[i]);
      const SpanKind kind = timeline_.spans[i].kind;
      return category < names_.categories.size() && names_.categories[category] == kGpuRange &&
             (is_compute(kind) || kind == SpanKind::step);
    };
    const auto stream = [this](int thread) -> const RawThread& {
      return raw_[static_cast<std::size_t>(raw_[static_cast<std::size_t>(thread)].base)];
    };
    const auto computes_less = [&](int a, int b) {  // without kernels: PyTorch's own stream has the lowest number
      const auto rank_of = [&](const RawThread& s) {
        return std::pair(kernels_s_[thread_key(s.pid, s.tid)], -field_of(s.tid));
      };
      return rank_of(stream(a)) < rank_of(stream(b));
    };
    std::map<std::string_view, int> computing;  // the stream of a device
    for (std::size_t i = first_span_; i < categories_.size(); ++i) {
      if (!on_gpu(i)) continue;
      const int thread = timeline_.spans[i].thread;
      int& most = computing.try_emplace(stream(thread).pid, thread).first->second;
      if (computes_less(most, thread)) most = thread;
    }
    const auto of_range = [](const Span& s) { return std::tuple(s.kind, s.stage, s.chunk, s.microbatch, s.step); };
    const auto computes = [&](const Span& s) {
      return stream(s.thread).base == stream(computing.at(stream(s.thread).pid)).base;
    };
    std::set<std::pair<std::string_view, decltype(of_range({}))>> ranges;  // of computing streams
    for (std::size_t i = first_span_; i < categories_.size(); ++i) {
      const Span& s = timeline_.spans[i];
      if (on_gpu(i) && computes(s)) ranges.emplace(stream(s.thread).pid, of_range(s));
    }
    drop([&](std::size_t i) {
      if (i < first_span_ || !on_gpu(i)) return false;
      const Span& s = timeline_.spans[i];
      return !computes(s) && ranges.contains({stream(s.thread).pid, of_range(s)});
    });
  }

  static std::string thread_key(std::string_view pid, std::string_view tid) { return fmt::format("{}#{}", pid, tid); }
  int thread_of(const TraceEvent& event) {
    const auto [found, is_new] =
        thread_numbers_.try_emplace(thread_key(event.pid, event.tid), static_cast<int>(timeline_.threads.size()));
    if (is_new) {
      timeline_.threads.emplace_back();
      raw_.push_back({std::string(event.pid), std::string(event.tid), {}, found->second, kNoFields});
    }
    return found->second;
  }
  /// The part of a thread whose events name the same rank in their arguments.
  int part_of(int thread, FieldValues args) {
    args[static_cast<std::size_t>(SpanField::step)] = thread;
    std::fill(args.begin() + static_cast<int>(SpanField::step) + 1, args.end(), -1);
    if (std::all_of(args.begin(), args.begin() + static_cast<int>(SpanField::step), [](int v) { return v < 0; }))
      return thread;
    const auto [found, is_new] = parts_.try_emplace(args, static_cast<int>(timeline_.threads.size()));
    if (is_new) {
      timeline_.threads.emplace_back();
      RawThread part = raw_[static_cast<std::size_t>(thread)];
      part.args = args;
      raw_.push_back(std::move(part));
    }
    return found->second;
  }
  void complete(ThreadPlace& place) {
    const RawThread& raw = raw_[static_cast<std::size_t>(&place - timeline_.threads.data())];
    FieldValues named = kNoFields;
    if (!matches(names_.thread, raw_[static_cast<std::size_t>(raw.base)].name, named)) named = kNoFields;
    for (const int field : named) thread_occurs_ |= field >= 0;
    const auto value = [&](SpanField field) {
      const auto f = static_cast<std::size_t>(field);
      const std::string& where = names_.places[f];
      if (named[f] >= 0) {
        occurs_[f] = true;
        return named[f];
      }
      const bool is_process = where == "pid" || (where == "file" && has_several_ranks_);
      const int found = is_process        ? field_of(raw.pid)
                        : where == "tid"  ? field_of(raw.tid)
                        : where == "file" ? rank_of_file_
                                          : raw.args[f];
      occurs_[f] |= found >= 0;
      return found;
    };
    place = {value(SpanField::data), value(SpanField::rank), value(SpanField::tensor), value(SpanField::global),
             static_cast<int>(timeline_.files.size()) - 1};
  }

  /// Spans without a step get that of the step span of their file's ranks that they begin in.
  void assign_steps() {
    using Place = std::array<int, 4>;
    std::map<Place, StepsOfRank> steps;  // of a rank, and of all with its global number: where it has none of its own
    const auto place_of = [this](const Span& s) {
      const ThreadPlace& place = timeline_.threads[s.thread];
      return Place{place.global, place.data, place.rank, place.tensor};
    };
    const auto of_all = [this](const Span& s) { return Place{timeline_.threads[s.thread].global, -2, -2, -2}; };
    for (const Span& s : timeline_.spans) {
      if (s.kind != SpanKind::step) continue;
      for (const Place& place : {place_of(s), of_all(s)}) steps[place].push_back({s.start_s, {s.end_s(), s.step}});
    }
    for (auto& [rank, all] : steps) {
      std::ranges::sort(all);
      number(all);
    }
    drop([&](std::size_t i) {
      Span& s = timeline_.spans[i];
      if (s.kind == SpanKind::step) return true;
      if (s.step >= 0 || steps.empty()) return false;
      const auto own = steps.find(place_of(s));
      const auto& all = own != steps.end() ? own->second : steps[of_all(s)];
      auto after = std::ranges::upper_bound(all, s.start_s, {}, [](const auto& step) { return step.first; });
      if (after == all.begin()) return true;
      s.step = std::prev(after)->second.second;
      return s.start_s > std::prev(after)->second.first;
    });
  }

  using StepsOfRank = std::vector<std::pair<double, std::pair<double, int>>>;  // start, end, step
  /// Steps without a number count in the order of time; beside numbered ones, and within others, they are parts of
  /// them.
  static void number(StepsOfRank& all) {
    const auto is_numbered = [](const auto& step) { return step.second.second >= 0; };
    if (std::ranges::any_of(all, is_numbered)) {
      std::erase_if(all, [&](const auto& step) { return !is_numbered(step); });
      return;
    }
    StepsOfRank whole;
    for (const auto& [start, rest] : all) {
      if (whole.empty() || (start + rest.first) / 2 > whole.back().second.first) {
        whole.push_back({start, {rest.first, static_cast<int>(whole.size())}});
      } else {
        whole.back().second.first = std::max(whole.back().second.first, rest.first);
      }
    }
    all = std::move(whole);
  }

  struct Open {
    Span span;
    bool known;
    int category;
    std::size_t name;  ///< hash
  };
  struct RawThread {
    std::string pid, tid, name;
    int base = 0;      ///< the thread whose name it has
    FieldValues args;  ///< places among the arguments of its events
  };

  std::size_t most_spans_;
  TraceNames names_;
  bool chosen_ = false;
  std::vector<std::pair<std::string, std::size_t>> args_;  ///< names of arguments and their fields
  std::unordered_map<std::string, Named> known_;
  std::string_view last_name_;
  const Named* last_ = nullptr;
  TraceSpans timeline_;
  std::vector<std::int8_t> categories_;    ///< of spans
  std::vector<RawThread> raw_;             ///< of timeline_.threads
  std::array<bool, kNumFields> occurs_{};  ///< somewhere, as a whole number
  bool thread_occurs_ = false;
  std::map<int, int> step_numbers_;
  double until_s_ = HUGE_VAL;     ///< where spans without a step end, since the begin of their file
  std::vector<double> begins_s_;  ///< of files
  simdjson::ondemand::parser parser_;
  // Of the file that is being read.
  std::string file_;
  long event_ = 0;
  int rank_of_file_ = 0;
  bool names_its_rank_ = false, has_several_ranks_ = false;
  std::size_t first_span_ = 0, first_thread_ = 0;
  std::unordered_map<std::string, int> thread_numbers_;
  std::unordered_map<std::string, double> kernels_s_;  ///< of streams: time of kernels but for NCCL's
  std::map<FieldValues, int> parts_;                   ///< of threads, by the ranks that their events name
  std::unordered_map<int, std::vector<Open>> open_;
};

Error cannot_read(const std::string& file, const char* reason) {
  return {ErrorCode::not_found, fmt::format("{}: cannot be read: {}", file, reason)};
}

}  // namespace

Result<TraceSpans> read_trace(const std::vector<std::string>& files, const std::optional<TraceNames>& names) {
  TraceReader reader(names, kMostSpans);
  std::string piece(kPieceBytes, '\0');
  for (const std::string& file : files) {
    // zlib reads plain files too.
    const std::unique_ptr<gzFile_s, int (*)(gzFile)> opened(gzopen(file.c_str(), "rbe"), gzclose);
    if (opened == nullptr) return cannot_read(file, std::strerror(errno));
    const Status status = reader.read_file(file, [&]() -> Result<std::string_view> {
      const int read = gzread(opened.get(), piece.data(), static_cast<unsigned>(piece.size()));
      int error = Z_OK;
      std::string_view message = gzerror(opened.get(), &error);
      if (message.starts_with(file + ": ")) message.remove_prefix(file.size() + 2);
      if (read < 0 || (read == 0 && error == Z_BUF_ERROR)) {
        if (error == Z_ERRNO) return cannot_read(file, std::strerror(errno));
        return Error{ErrorCode::invalid_input, fmt::format("{}: broken gzip file: {}", file, message)};
      }
      return std::string_view(piece.data(), static_cast<std::size_t>(read));
    });
    if (!status) return status.error();
  }
  return reader.finish();
}

Result<TraceSpans> parse_trace(const std::vector<std::pair<std::string, std::string>>& texts,
                               const std::optional<TraceNames>& names, std::size_t most_spans) {
  TraceReader reader(names, most_spans);
  for (const auto& [name, text] : texts) {
    std::string_view rest = text;
    const Status status =
        reader.read_file(name, [&]() -> Result<std::string_view> { return std::exchange(rest, std::string_view()); });
    if (!status) return status.error();
  }
  return reader.finish();
}

}  // namespace perseus::trace
