#include "simulation/replay/agreement.h"

#include <fmt/format.h>

#include <algorithm>

namespace perseus::replay {

std::vector<int> agreement_children(const WorkerPlace& place) {
  std::vector<int> children;
  if (place.replica > 0) return children;
  for (int replica = 1; replica < place.replicas; ++replica) children.push_back(replica * place.ranks + place.rank);
  if (place.rank > 0) return children;
  for (int rank = 1; rank < place.ranks; ++rank) children.push_back(rank);
  return children;
}

int agreement_parent(const WorkerPlace& place) {
  if (place.replica > 0) return place.rank;
  return place.rank > 0 ? 0 : -1;
}

Result<Agreement> agree(const WorkerPlace& place, std::int64_t iteration, double done_s, std::size_t gradient_bytes,
                        PeerLinks& links, const std::function<std::string()>& decide) {
  double latest_s = done_s;
  const std::vector<int> children = agreement_children(place);
  for (const int child : children) {
    const auto message = links.receive(child, MessageKind::arrived, iteration, child);
    if (!message) return message.error();
    if (message->payload != payload_of(iteration, child, gradient_bytes)) {
      return Error{ErrorCode::internal, fmt::format("worker {}: the gradient that it received is wrong", child)};
    }
    latest_s = std::max(latest_s, message->time_s);
  }
  Agreement agreement{latest_s, {}};
  if (const int parent = agreement_parent(place); parent >= 0) {
    const int self = place.worker();
    const Message arrived{MessageKind::arrived, iteration, self, latest_s, payload_of(iteration, self, gradient_bytes)};
    if (const Status sent = links.send(parent, arrived); !sent) return sent.error();
    const auto answer = links.receive(parent, MessageKind::go_on, iteration, parent);
    if (!answer) return answer.error();
    agreement = {answer->time_s, answer->payload};
  } else {
    agreement.next = decide();
  }
  for (const int child : children) {
    const Message go_on{MessageKind::go_on, iteration, place.worker(), agreement.time_s, agreement.next};
    if (const Status sent = links.send(child, go_on); !sent) return sent.error();
  }
  return agreement;
}

}  // namespace perseus::replay
