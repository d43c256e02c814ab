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

std::vector<double> TimedPipeline::makespans(std::span<const TimedPlan> plans, std::span<const double> unknowns) {
  plans_ = plans;
  unknowns_.assign(unknowns.begin(), unknowns.end());
  ends_.resize((plans.size() + kLanes - 1) / kLanes * nodes_.size());
  for (std::size_t first = 0; first < plans.size(); first += kLanes) {
    std::array<const double*, kLanes> durations{};
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      durations[lane] = plans[std::min(first + lane, plans.size() - 1)].durations.data();
    Lanes* const ends = &ends_[first / kLanes * nodes_.size()];
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      Lanes start = Lanes::Zero();
      for (const Before& before : before_.of(static_cast<int>(i)))
        start = start.max(ends[before.node] + latency_s(before));
      const Node& node = nodes_[i];
      Lanes lasts = Lanes::Ones();
      if (node.computation != kNone && node.unknown != tail_unknown()) {
        for (std::size_t lane = 0; lane < kLanes; ++lane)
          lasts[static_cast<int>(lane)] = durations[lane][node.computation];
      }
      if (node.unknown != kNone) lasts *= unknowns_[node.unknown];
      ends[i] = start + lasts;
    }
  }
  std::vector<double> seconds;
  for (std::size_t p = 0; p < plans.size(); ++p) seconds.push_back(end(p, last_of(p)));
  return seconds;
}

int TimedPipeline::last_of(std::size_t p) const {
  return *std::ranges::max_element(may_be_last_, {}, [&](int node) { return end(p, node); });
}

std::vector<double> TimedPipeline::gradient(std::size_t p) const {
  std::vector<double> gradient(num_unknowns());
  for (int i = last_of(p);;) {
    const Node& node = nodes_[i];
    if (node.unknown != kNone) {
      const bool scales = node.computation != kNone && node.unknown != tail_unknown();
      gradient[node.unknown] += scales ? plans_[p].durations[node.computation] : 1;
    }
    const auto before = before_.of(i);
    if (before.empty()) return gradient;
    const auto arrival = [&](const Before& other) { return end(p, other.node) + latency_s(other); };
    const auto critical = std::ranges::max_element(before, {}, arrival);
    if (critical->latency != kNone) gradient[critical->latency] += 1;
    i = critical->node;
  }
}

}  // namespace perseus::calibration
