// trace.json: the trace event format of Chrome's about:tracing and Perfetto.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "io/report/escape.h"
#include "io/report/pieces.h"
#include "io/report/report.h"
#include "io/report/timeline.h"

namespace perseus::report {
namespace {

double microseconds(Seconds t) { return t.value() * 1e6; }

/// Events separated by commas.
class EventStream {
 public:
  explicit EventStream(const Sink& sink) : out_(sink) { out_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"; }
  void add(std::string_view event) {
    if (any_) out_ << ",\n";
    any_ = true;
    out_ << event;
  }
  void close() { out_ << "\n]}\n"; }

 private:
  Pieces out_;
  bool any_ = false;
};

void add_names(const model::ComputationDag& dag, int process, const std::string& name, EventStream& events) {
  events.add(
      fmt::format(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})", process, json_string(name)));
  events.add(fmt::format(R"({{"ph":"M","pid":{0},"name":"process_sort_index","args":{{"sort_index":{0}}}}})", process));
  for (int r = 0; r < dag.num_ranks(); ++r) {
    events.add(fmt::format(R"({{"ph":"M","pid":{0},"tid":{1},"name":"thread_name","args":{{"name":"rank {1}"}}}})",
                           process, r));
    events.add(fmt::format(R"({{"ph":"M","pid":{0},"tid":{1},"name":"thread_sort_index","args":{{"sort_index":{1}}}}})",
                           process, r));
  }
}

void add_bars(const model::ComputationDag& dag, const model::Plan& plan, const Timeline& timeline, int process,
              EventStream& events) {
  for (std::size_t i = 0; i < timeline.bars.size(); ++i) {
    const model::Computation& c = dag.computations[i];
    const model::ComputationType& type = dag.types[c.type];
    const TimelineBar& bar = timeline.bars[i];
    const std::string name = c.microbatch < 0 ? type.instruction : fmt::format("{} {}", type.instruction, c.microbatch);
    events.add(fmt::format(
        R"({{"ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"name":{},"cat":"{}","args":{{"stage":{},"microbatch":{},"clock_mhz":{},"energy_j":{:.6g},"power_w":{:.6g},"slack_s":{:.6g}}}}})",
        process, c.rank, microseconds(bar.start), microseconds(bar.end - bar.start), json_string(name),
        bar.critical ? "critical" : "computation", type.stage, c.microbatch, type.options[plan[i]].clock.value(),
        bar.energy.value(), bar.power.value(), bar.slack.value()));
  }
}

std::string counter(int process, const std::string& name, Seconds at, Watts power) {
  return fmt::format(R"({{"ph":"C","pid":{},"name":"{}","ts":{:.3f},"args":{{"W":{:.6g}}}}})", process, name,
                     microseconds(at), power.value());
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
      events.add(counter(process, name, at, power));
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
    events.add(counter(process, name, timeline.makespan, Watts(0)));
  }
  Watts total;
  for (const auto& [at, change] : total_steps) {
    total += change;
    const Watts shown = at == timeline.makespan ? Watts(0) : total;  // without the rounding of the sums
    events.add(counter(process, "power total", at, shown));
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
