#include "evaluation/calibration/timed_pipeline.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace perseus::calibration {

TimedPipeline::TimedPipeline(const model::ComputationDag& dag, const LinkModel& links, Sending sending)
    : links_(links) {
  for (const model::ComputationType& type : dag.types) {
    if (type.instruction == name_of(model::Instruction::load)) loading_stages_.push_back(type.stage);
  }
  std::vector<Edge> edges;
  const std::vector<Sender> senders = add_nodes(dag, sending, edges);
  for (const model::Dependency& d : dag.dependencies) {
    const bool same_rank = dag.computations[d.before].rank == dag.computations[d.after].rank;
    edges.push_back({same_rank ? senders[d.before].own : senders[d.before].others, senders[d.after].own.node});
  }
  before_ = {static_cast<int>(nodes_.size()), static_cast<int>(edges.size()), [&](int e) { return edges[e].after; },
             [&](int e) { return edges[e].before; }};
  std::vector<char> may_be_last(nodes_.size(), 1);
  for (const Edge& edge : edges) may_be_last[edge.before.node] = 0;
  for (int i = static_cast<int>(nodes_.size()) - 1; i >= 0; --i) {
    if (may_be_last[i] == 0 || nodes_[i].unknown == kNone) continue;
    for (const Before& before : before_.of(i)) may_be_last[before.node] = 1;
  }
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    if (may_be_last[i] != 0) may_be_last_.push_back(i);
  }
}

std::vector<TimedPipeline::Sender> TimedPipeline::add_nodes(const model::ComputationDag& dag, Sending sending,
                                                            std::vector<Edge>& edges) {
  std::vector<int> sends_to(dag.computations.size(), kNone);
  for (const model::Dependency& d : dag.dependencies) {
    const int from = dag.computations[d.before].rank, to = dag.computations[d.after].rank;
    if (from != to) sends_to[d.before] = to;
  }
  std::map<std::pair<int, int>, int> last_on_link;
  std::vector<Sender> senders;
  for (int i = 0; i < static_cast<int>(sends_to.size()); ++i) {
    const int node = static_cast<int>(nodes_.size());
    nodes_.push_back({i, unknown_of(dag.type_of(i))});
    Sender& sender = senders.emplace_back(Sender{{node, kNone}, {node, kNone}});
    if (sends_to[i] == kNone) continue;
    const int from = dag.computations[i].rank, to = sends_to[i], latency = links_.latency_of(from, to);
    if (waits(sending, links_, std::min(from, to))) sender.own.latency = latency;
    sender.others.latency = latency;
    if (sending != Sending::queues) continue;
    sender.others = {node + 1, kNone};
    nodes_.push_back({kNone, latency});
    edges.push_back({{node, kNone}, node + 1});
    const auto [last, is_first] = last_on_link.try_emplace({from, to}, node + 1);
    if (!is_first) edges.push_back({{std::exchange(last->second, node + 1), kNone}, node + 1});
  }
  return senders;
}

int TimedPipeline::unknown_of(const model::ComputationType& type) const {
  if (type.instruction == name_of(model::Instruction::optimizer_step)) return tail_unknown();
  if (type.instruction != name_of(model::Instruction::load)) return kNone;
  const auto found = std::ranges::find(loading_stages_, type.stage);
  return num_latencies() + static_cast<int>(found - loading_stages_.begin());
}

std::vector<TimedPipeline::Makespan> TimedPipeline::at(std::span<const TimedPlan> plans,
                                                       std::span<const double> unknowns) {
  constexpr auto lanes = static_cast<std::size_t>(Lanes::SizeAtCompileTime);
  std::vector<Makespan> makespans;
  end_.resize(nodes_.size());
  for (; !plans.empty(); plans = plans.subspan(std::min(lanes, plans.size()))) {
    const auto plan_in = [&](std::size_t lane) -> const TimedPlan& { return plans[std::min(lane, plans.size() - 1)]; };
    std::array<const double*, lanes> durations{};
    for (std::size_t lane = 0; lane < lanes; ++lane) durations[lane] = plan_in(lane).durations.data();
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Lanes start = Lanes::Zero();
      for (const Before& before : before_.of(static_cast<int>(i)))
        start = start.max(end_[before.node] + (before.latency == kNone ? 0.0 : unknowns[before.latency]));
      const Node& node = nodes_[i];
      Lanes lasts = Lanes::Ones();
      if (node.computation != kNone && node.unknown != tail_unknown()) {
        for (std::size_t lane = 0; lane < lanes; ++lane)
          lasts[static_cast<int>(lane)] = durations[lane][node.computation];
      }
      if (node.unknown != kNone) lasts *= unknowns[node.unknown];
      end_[i] = start + lasts;
    }
    for (std::size_t lane = 0; lane < std::min(lanes, plans.size()); ++lane)
      makespans.push_back(makespan_in(static_cast<int>(lane), plans[lane], unknowns));
  }
  return makespans;
}

TimedPipeline::Makespan TimedPipeline::makespan_in(int lane, const TimedPlan& plan,
                                                   std::span<const double> unknowns) const {
  const auto arrival = [&](const Before& before) {
    return end_[before.node][lane] + (before.latency == kNone ? 0.0 : unknowns[before.latency]);
  };
  int i = *std::ranges::max_element(may_be_last_, {}, [&](int node) { return end_[node][lane]; });
  Makespan makespan{end_[i][lane], std::vector<double>(num_unknowns())};
  for (;;) {
    const Node& node = nodes_[i];
    if (node.unknown != kNone) {
      const bool scales = node.computation != kNone && node.unknown != tail_unknown();
      makespan.gradient[node.unknown] += scales ? plan.durations[node.computation] : 1;
    }
    const auto before = before_.of(i);
    if (before.empty()) break;
    const auto critical = std::ranges::max_element(before, {}, arrival);
    if (critical->latency != kNone) makespan.gradient[critical->latency] += 1;
    i = critical->node;
  }
  return makespan;
}

}  // namespace perseus::calibration
