#include "io/trace/read_trace.h"

#include <fmt/format.h>
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

#include "io/trace/assign_steps.h"
#include "io/trace/bounded_spans.h"
#include "io/trace/event_splitter.h"
#include "io/trace/trace_event.h"
#include "io/trace/trace_threads.h"

namespace perseus::trace {
namespace {

namespace ondemand = simdjson::ondemand;

constexpr std::size_t kPieceBytes = 1U << 20U;
constexpr std::size_t kMostNames = 100'000;  ///< remembered
constexpr std::size_t kLongestGpu = 128;     ///< name
constexpr std::size_t kMostGpus = 16;        ///< whose names are told apart
constexpr std::string_view kGpuRange = "gpu_user_annotation";
constexpr double kMostKernels = 2;      ///< time of kernels, over that of their computations: streams run side by side
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

bool is_duration(double us) { return us >= 0 && us <= kLongest_us; }

std::string stream_key(std::string_view pid, std::string_view tid) { return fmt::format("{}#{}", pid, tid); }

class TraceReader {
 public:
  TraceReader(const std::optional<TraceNames>& names, std::size_t most_spans)
      : threads_(timeline_), spans_(timeline_, most_spans) {
    if (names) use(*names);
  }

  /// `next()` returns the next piece of the file, empty at its end.
  template <class Next>
  Status read_file(const std::string& file, Next next) {
    file_ = file;
    event_ = 0;
    rank_of_file_.reset();
    timeline_.files.push_back(file);
    spans_.begin_file();
    threads_.begin_file();
    kernels_s_.clear();
    computing_s_.clear();
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
    if (Status status = check_device(); !status) return status;
    threads_.place_file(names_, rank_of_file_, spans_.first_of_file());
    return Ok{};
  }

  Result<TraceSpans> finish() {
    if (timeline_.events == 0)
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}: no event; expected a list of events or an object with traceEvents", file_)};
    const auto none_computes = [this] {
      return std::ranges::none_of(timeline_.spans, [](const Span& s) { return is_compute(s.kind); });
    };
    if (none_computes()) return no_computation();
    const bool ready = std::ranges::find(ready_names(), names_.name, &TraceNames::name) != ready_names().end();
    if (const auto missing = threads_.missing_place(names_, ready); !missing.empty())
      return Error{ErrorCode::invalid_input, ready ? fmt::format("{}: {} [places] {}", file_, names_.name, missing)
                                                   : fmt::format("{}: [places] {}", names_.name, missing)};
    if (spans_.until_s() < HUGE_VAL) timeline_.read_s = spans_.until_s();
    assign_steps(timeline_);
    if (none_computes())
      return Error{ErrorCode::invalid_input,
                   fmt::format("{}: no computation begins within a step; expected steps around computations", file_)};
    timeline_.names = names_.name;
    return std::move(timeline_);
  }

 private:
  [[nodiscard]] Error no_computation() const {
    std::string known;
    for (const auto& [pattern, kind] : names_.events) {
      if (is_compute(kind)) known += pattern + ", ";
    }
    return {
        ErrorCode::invalid_input,
        fmt::format(
            "{}: none of {} events has a name of a computation{}; "
            "expected {}{} with --names (shared, torch, megatron or a file)",
            file_, timeline_.events,
            timeline_.unpaired_events == 0 ? "" : fmt::format(", and {} begin or end alone", timeline_.unpaired_events),
            known, known.empty() ? "a mapping" : "or other names")};
  }
  Error in_file(const Error& error) const {
    return error.message.starts_with(file_) ? error : Error{error.code, fmt::format("{}: {}", file_, error.message)};
  }
  Error wrong(const TraceEvent& event) const {
    return in_event(event.name, fmt::format("{} {}; expected {}", event.wrong.member, event.wrong.value.substr(0, 40),
                                            event.wrong.expected));
  }
  Error no_ts(const TraceEvent& event) const {
    return in_event(event.name, "no ts; expected a number of microseconds");
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
    parser_.read_arguments_of(names);
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
    if (parser_.parse(object, document) || document["rank"].get(rank) || rank < 0 || rank > 1'000'000)
      return Error{ErrorCode::invalid_input, "distributedInfo: no member rank; expected a whole number from 0"};
    rank_of_file_ = static_cast<int>(rank);
    if (!parser_.parse(object, document) && !document["world_size"].get(world))
      timeline_.world_size = std::max(timeline_.world_size, static_cast<int>(world));
    return Ok{};
  }

  void read_device(std::string_view object) {
    ondemand::document document;
    std::string_view name;
    if (parser_.parse(object, document) || document["name"].get(name) || name.size() > kLongestGpu) return;
    if (std::ranges::find(timeline_.gpus, name) == timeline_.gpus.end() && timeline_.gpus.size() < kMostGpus)
      timeline_.gpus.emplace_back(name);
  }

  Status read_event(std::string_view object) {
    ++event_;
    ++timeline_.events;
    if (!chosen_) named(parser_.name_of(object));  // the mapping says which arguments to read
    TraceEvent event;
    if (const Status status = parser_.parse(object, event); !status)
      return in_event(event.name, status.error().message);
    threads_.saw(event.args);
    return take_event(event);
  }

  Status take_event(const TraceEvent& event) {
    if (!event.matters()) {
      ++timeline_.other_events;
      return Ok{};
    }
    if (event.phase == "M") {
      if (event.name == "thread_name") threads_.set_name(thread_of(event), event.thread_name);
      return Ok{};
    }
    if (event.phase == "E") return end(event);
    if (event.phase != "X" && event.phase != "B")
      return in_event(event.name, fmt::format("ph '{}'; expected X, B, E or M among others", event.phase));
    const Named& name = named(event.name);
    if (!name.known) {
      pass_over(event);
      return Ok{};
    }
    if (event.wrong.expected != nullptr) return wrong(event);
    if (!event.ts) return no_ts(event);
    if (event.phase == "X" && !event.dur)
      return in_event(event.name, "no dur; expected a number of microseconds from 0");
    if (event.phase == "X" && !is_duration(*event.dur))
      return in_event(event.name, fmt::format("dur {}; expected a number of microseconds from 0 to {:.0f}, a day",
                                              *event.dur, kLongest_us));
    Span span;
    span.start_s = *event.ts / 1e6;
    span.duration_s = static_cast<float>(event.dur.value_or(0) / 1e6);
    const int thread = thread_of(event);
    span.thread = threads_.part_of(thread, event.args);
    span.kind = name.kind;
    const auto value = [&](SpanField field) {
      const auto f = static_cast<std::size_t>(field);
      return name.fields[f] >= 0 ? name.fields[f] : event.args[f];
    };
    for (const auto& [field, most] : kMostNumbers) {
      if (value(field) > most)
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
      open_[thread].push_back({span, true, static_cast<int>(category), hash_of(event.name)});
      return Ok{};
    }
    add(span, static_cast<int>(category));
    return Ok{};
  }

  /// The interval, or its begin, of an event that no mapping names: any of its members may be wrong.
  void pass_over(const TraceEvent& event) {
    if (event.phase == "B") {
      open_[thread_of(event)].push_back({{}, false, 0, hash_of(event.name)});
      return;
    }
    ++timeline_.other_events;
    if (event.category == "kernel" && !event.name.starts_with("nccl") && event.dur && is_duration(*event.dur))
      kernels_s_[stream_key(event.pid, event.tid)] += *event.dur / 1e6;
  }

  void add(const Span& span, int category) {
    if (is_compute(span.kind)) computing_s_[{span.kind, category}] += span.duration_s;
    spans_.add(span, category);
  }

  Status end(const TraceEvent& event) {
    auto& open = open_[thread_of(event)];
    const auto begin = std::find_if(open.rbegin(), open.rend(),
                                    [&](const Open& o) { return event.name.empty() || o.name == hash_of(event.name); });
    if (begin == open.rend()) {
      ++timeline_.unpaired_events;
      return Ok{};
    }
    timeline_.unpaired_events += begin - open.rbegin();  // began within it and never ended
    Open last = *begin;
    open.erase(std::prev(begin.base()), open.end());
    if (!last.known) {
      ++timeline_.other_events;
      return Ok{};
    }
    if (!event.ts) return event.wrong.expected != nullptr ? wrong(event) : no_ts(event);
    const double duration = *event.ts / 1e6 - last.span.start_s;
    if (!is_duration(1e6 * duration))
      return in_event(event.name, fmt::format("ts {}; expected an end after its begin, at most a day", *event.ts));
    last.span.duration_s = static_cast<float>(duration);
    add(last.span, last.category);
    return Ok{};
  }

  /// Of spans that the file has once on the host and once on the GPU, those of the first category in the mapping.
  void keep_first_category() {
    std::array<int, kNumSpanKinds> first;
    first.fill(std::numeric_limits<int>::max());
    const auto first_of = [&](std::size_t i) -> int& {
      return first[static_cast<std::size_t>(timeline_.spans[i].kind)];
    };
    for (std::size_t i = spans_.first_of_file(); i < timeline_.spans.size(); ++i)
      first_of(i) = std::min(first_of(i), spans_.category_of(i));
    spans_.drop([&](std::size_t i) { return i >= spans_.first_of_file() && spans_.category_of(i) != first_of(i); });
  }

  /// A host that only launches kernels does not show how long they take.
  [[nodiscard]] Status check_device() const {
    if (std::ranges::find(names_.categories, kGpuRange) == names_.categories.end()) return Ok{};
    double on_host_s = 0, kernels_s = 0;
    std::optional<SpanKind> before;
    for (const auto& [of, seconds] : computing_s_) {
      const auto [kind, category] = of;
      if (std::exchange(before, kind) == kind) continue;  // as keep_first_category()
      if (category_name(category) == kGpuRange) return Ok{};
      on_host_s += seconds;
    }
    for (const auto& [stream, seconds] : kernels_s_) kernels_s += seconds;
    if (on_host_s == 0 || kernels_s <= kMostKernels * on_host_s) return Ok{};
    return Error{
        ErrorCode::invalid_input,
        fmt::format("{}: computations take {:.3g} s on the host, and kernels {:.3g} s on the GPU: the host only "
                    "launches them; expected ranges of the GPU ({}), or CUDA_LAUNCH_BLOCKING=1",
                    file_, on_host_s, kernels_s, kGpuRange)};
  }
  [[nodiscard]] std::string_view category_name(int number) const {
    const auto category = static_cast<std::size_t>(number);
    return category < names_.categories.size() ? names_.categories[category] : std::string_view();
  }

  /// Kineto repeats a range of the host on every stream that runs kernels of it. Of these, the one on the stream that
  /// computes counts: those of NCCL's streams contain the wait for other ranks, and gathers ahead of their computation.
  void keep_computing_streams() {
    if (!names_.thread.empty() || std::ranges::find(names_.places, "tid") != names_.places.end()) return;
    const auto on_gpu = [&](std::size_t i) {
      const SpanKind kind = timeline_.spans[i].kind;
      return category_name(spans_.category_of(i)) == kGpuRange && (is_compute(kind) || kind == SpanKind::step);
    };
    const auto stream = [this](int thread) -> const TraceThreads::Thread& { return threads_.whole(thread); };
    const auto computes_less = [&](int a, int b) {  // without kernels: PyTorch's own stream has the lowest number
      const auto rank_of = [&](const TraceThreads::Thread& s) {
        return std::pair(kernels_s_[stream_key(s.pid, s.tid)], -whole_number(s.tid).value_or(-1));
      };
      return rank_of(stream(a)) < rank_of(stream(b));
    };
    std::map<std::string_view, int> computing;  // the stream of a device
    for (std::size_t i = spans_.first_of_file(); i < timeline_.spans.size(); ++i) {
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
    for (std::size_t i = spans_.first_of_file(); i < timeline_.spans.size(); ++i) {
      const Span& s = timeline_.spans[i];
      if (on_gpu(i) && computes(s)) ranges.emplace(stream(s.thread).pid, of_range(s));
    }
    spans_.drop([&](std::size_t i) {
      if (i < spans_.first_of_file() || !on_gpu(i)) return false;
      const Span& s = timeline_.spans[i];
      return !computes(s) && ranges.contains({stream(s.thread).pid, of_range(s)});
    });
  }

  static std::size_t hash_of(std::string_view name) { return std::hash<std::string_view>()(name); }
  int thread_of(const TraceEvent& event) { return threads_.number_of(event.pid, event.tid); }

  struct Open {
    Span span;
    bool known;
    int category;
    std::size_t name;  ///< hash
  };
  TraceNames names_;
  bool chosen_ = false;
  std::unordered_map<std::string, Named> known_;
  std::string_view last_name_;
  const Named* last_ = nullptr;
  TraceSpans timeline_;
  TraceThreads threads_;
  BoundedSpans spans_;
  TraceEventParser parser_;
  // Of the file that is being read.
  std::string file_;
  long event_ = 0;
  std::optional<int> rank_of_file_;
  std::unordered_map<std::string, double> kernels_s_;       ///< of streams: time of kernels but for NCCL's
  std::map<std::pair<SpanKind, int>, double> computing_s_;  ///< by kind and category, also of spans that are dropped
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
