#include "simulation/replay/iteration.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace perseus::replay {
namespace {

/// The time at which the inputs of a step have arrived, in device time.
Result<double> await_inputs(const RankScript& script, const ScriptStep& step, const IterationPlace& place,
                            const std::map<int, double>& ended, PeerLinks& links) {
  double ready_s = 0;
  for (const Awaited& a : step.awaits) {
    double done_s = 0;
    if (a.rank == script.rank) {
      done_s = ended.at(a.computation);
    } else {
      const int peer = place.first_worker + a.rank;
      const auto message = links.receive(peer, MessageKind::data, place.iteration, a.dependency);
      if (!message) return message.error();
      if (message->payload != payload_of(place.iteration, a.dependency, place.payload_bytes)) {
        return Error{ErrorCode::internal, fmt::format("worker {}: message {} of iteration {} has a wrong payload", peer,
                                                      a.dependency, place.iteration)};
      }
      done_s = message->time_s;
    }
    ready_s = std::max(ready_s, done_s + a.latency.value());
  }
  return ready_s;
}

}  // namespace

Result<std::vector<ComputationStamp>> run_iteration(const RankScript& script, const IterationPlace& place,
                                                    double start_s, PeerLinks& links, ReplayDevice& device,
                                                    TrainingHooks& hooks) {
  std::vector<ComputationStamp> stamps;
  stamps.reserve(script.steps.size());
  std::map<int, double> ended;
  double free_s = start_s;
  for (const ScriptStep& step : script.steps) {
    hooks.set_speed(step);
    const Result<double> ready_s = await_inputs(script, step, place, ended, links);
    if (!ready_s) return ready_s.error();
    ComputationStamp stamp =
        device.run(step.type, std::max(free_s, *ready_s), [&](double when_s) { hooks.begin(step, when_s); });
    stamp.computation = step.computation;
    hooks.end(step, stamp.end_s);
    free_s = stamp.end_s;
    ended[step.computation] = stamp.end_s;
    for (const Promised& p : step.sends) {
      const Message message{MessageKind::data, place.iteration, p.dependency, stamp.end_s,
                            payload_of(place.iteration, p.dependency, place.payload_bytes)};
      if (const Status sent = links.send(place.first_worker + p.rank, message); !sent) return sent.error();
    }
    stamps.push_back(stamp);
  }
  return stamps;
}

}  // namespace perseus::replay
