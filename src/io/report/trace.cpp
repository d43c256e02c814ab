#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "io/report/pieces.h"
#include "io/report/report.h"
#include "io/report/timeline.h"

namespace perseus::report {
namespace {

constexpr int kDigits = 6;

/// A time as traces have it: microseconds, to the nanosecond.
double microseconds(Seconds t) { return with_decimals(t.value() * 1e6, 3); }

/// A list of objects, one a line.
class EventStream {
 public:
  explicit EventStream(const Sink& sink) : out_(sink) {
    std::string head = json_object([](JsonWriter& f) {
      f.always("displayTimeUnit", "ms");
      f.always("traceEvents", JsonRaw{"["});
    });
    head.back() = '\n';  // close() ends the list and the object
    out_ << head;
  }
  template <class Members>
  void add(const Members& members) {
    if (any_) out_ << ",\n";
    any_ = true;
    out_ << json_object(members);
  }
  void close() { out_ << "\n]}\n"; }

 private:
  Pieces out_;
  bool any_ = false;
};

/// An event that names or sorts a process or, with `thread`, one of its threads.
template <class Value>
void add_fact(EventStream& events, int process, std::optional<int> thread, std::string_view fact, std::string_view key,
              const Value& value) {
  events.add([&](JsonWriter& f) {
    f.always("ph", "M");
    f.always("pid", process);
    f("tid", thread);
    f.always("name", fact);
    f.always("args", JsonObject{[&](JsonWriter& args) { args.always(key, value); }});
  });
}

void add_names(const model::ComputationDag& dag, int process, const std::string& name, EventStream& events) {
  add_fact(events, process, std::nullopt, "process_name", "name", name);
  add_fact(events, process, std::nullopt, "process_sort_index", "sort_index", process);
  for (int r = 0; r < dag.num_ranks(); ++r) {
    add_fact(events, process, r, "thread_name", "name", fmt::format("rank {}", r));
    add_fact(events, process, r, "thread_sort_index", "sort_index", r);
  }
}

void add_bars(const model::ComputationDag& dag, const model::Plan& plan, const Timeline& timeline, int process,
              EventStream& events) {
  for (std::size_t i = 0; i < timeline.bars.size(); ++i) {
    const model::Computation& c = dag.computations[i];
    const model::ComputationType& type = dag.types[c.type];
    const TimelineBar& bar = timeline.bars[i];
    events.add([&](JsonWriter& f) {
      f.always("ph", "X");
      f.always("pid", process);
      f.always("tid", c.rank);
      f.always("ts", microseconds(bar.start));
      f.always("dur", microseconds(bar.end - bar.start));
      f.always("name", c.microbatch < 0 ? type.instruction : fmt::format("{} {}", type.instruction, c.microbatch));
      f.always("cat", bar.critical ? "critical" : "computation");
      f.always("args", JsonObject{[&](JsonWriter& args) {
                 args.always("stage", type.stage);
                 args.always("microbatch", c.microbatch);
                 args.always("clock_mhz", type.options[plan[i]].clock);
                 args.always("energy_j", with_digits(bar.energy.value(), kDigits));
                 args.always("power_w", with_digits(bar.power.value(), kDigits));
                 args.always("slack_s", with_digits(bar.slack.value(), kDigits));
               }});
    });
  }
}

void add_counter(EventStream& events, int process, std::string_view name, Seconds at, Watts power) {
  events.add([&](JsonWriter& f) {
    f.always("ph", "C");
    f.always("pid", process);
    f.always("name", name);
    f.always("ts", microseconds(at));
    f.always("args", JsonObject{[&](JsonWriter& args) { args.always("W", with_digits(power.value(), kDigits)); }});
  });
}

/// A rank's power changes to a bar's at its start and, if it then waits, to blocking power at its end.
void add_power(const model::ComputationDag& dag, const Timeline& timeline, int process, EventStream& events) {
  std::map<Seconds, Watts> total_steps;
  for (int r = 0; r < dag.num_ranks(); ++r) {
    const Watts waiting = dag.blocking_power * dag.accelerators[r];
    const std::string name = fmt::format("power rank {}", r);
    Watts now;
    const auto step = [&](Seconds at, Watts power) {
      if (power == now && at > Seconds(0)) return;
      total_steps[at] += power - now;
      now = power;
      add_counter(events, process, name, at, power);
    };
    Seconds busy_until;
    for (const int i : dag.rank_order[r]) {
      const TimelineBar& bar = timeline.bars[i];
      if (bar.start > busy_until) step(busy_until, waiting);
      step(bar.start, bar.power);
      busy_until = bar.end;
    }
    if (busy_until < timeline.makespan) step(busy_until, waiting);
    total_steps[timeline.makespan] -= now;
    add_counter(events, process, name, timeline.makespan, Watts(0));
  }
  Watts total;
  for (const auto& [at, change] : total_steps) {
    total += change;
    const Watts shown = at == timeline.makespan ? Watts(0) : total;  // without the rounding of the sums
    add_counter(events, process, "power total", at, shown);
  }
}

}  // namespace

void write_trace(const model::ComputationDag& dag, const std::vector<DrawnPlan>& plans, const Sink& sink) {
  EventStream events(sink);
  for (int k = 0; k < static_cast<int>(plans.size()); ++k) {
    const Timeline timeline = timeline_of(dag, plans[k].plan);
    add_names(dag, k, plans[k].name, events);
    add_bars(dag, plans[k].plan, timeline, k, events);
    add_power(dag, timeline, k, events);
  }
  events.close();
}

}  // namespace perseus::report
