#include "server/store/postgres_listener.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

namespace perseus::store {
namespace {

constexpr int kReconnect_ms = 100;

}  // namespace

PostgresListener::PostgresListener(std::string connection, std::string origin, Post post)
    : connection_string_(std::move(connection)), origin_(std::move(origin)), post_(std::move(post)) {
  listen(PostgresConnection::Patience::long_);
  thread_ = std::thread([this] { work(); });
}

PostgresListener::~PostgresListener() {
  const std::uint64_t one = 1;
  while (::write(stop_, &one, sizeof one) < 0) {}
  thread_.join();
  ::close(stop_);
}

void PostgresListener::set_foreign(Store::Foreign foreign) {
  const std::lock_guard lock(mutex_);
  foreign_ = std::make_shared<Store::Foreign>(std::move(foreign));
}

void PostgresListener::listen(PostgresConnection::Patience patience) {
  connection_ = std::make_unique<PostgresConnection>(connection_string_, patience);
  connection_->script("LISTEN perseus");
  hears_ = true;
}

void PostgresListener::work() {
  while (!stopping(connection_ == nullptr ? kReconnect_ms : -1)) {
    try {
      if (connection_ == nullptr) {
        listen(PostgresConnection::Patience::short_);
        post(everything());
      }
      post(heard());
    } catch (const PostgresFailure&) {
      hears_ = false;
      connection_.reset();
    }
  }
}

bool PostgresListener::stopping(int timeout_ms) {
  std::array<pollfd, 2> sockets{pollfd{stop_, POLLIN, 0},
                                pollfd{connection_ == nullptr ? -1 : connection_->socket(), POLLIN, 0}};
  ::poll(sockets.data(), sockets.size(), timeout_ms);
  return sockets[0].revents != 0;
}

std::vector<PostgresListener::Change> PostgresListener::heard() {
  std::vector<Change> changes;
  for (const std::string& notice : connection_->notices()) {  // "ORIGIN WHAT SEQUENCE JOB"
    const std::size_t what = notice.find(' ') + 1;
    const std::size_t sequence = notice.find(' ', what) + 1;
    const std::size_t job = notice.find(' ', sequence) + 1;
    if (what == 0 || sequence == 0 || job == 0 || notice.compare(0, what - 1, origin_) == 0) continue;
    const bool of_tokens = notice.compare(what, sequence - 1 - what, "tokens") == 0;
    changes.push_back({of_tokens, notice.substr(job), std::strtoll(notice.c_str() + sequence, nullptr, 10)});
  }
  return changes;
}

std::vector<PostgresListener::Change> PostgresListener::everything() {
  std::vector<Change> changes{{.of_tokens = true, .job = "", .sequence = 0}};
  const PostgresRows rows = connection_->script("SELECT job, last_sequence FROM jobs ORDER BY job");
  for (int row = 0; row < rows.size(); ++row) changes.push_back({false, rows.text(row, 0), rows.integer(row, 1)});
  return changes;
}

void PostgresListener::post(std::vector<Change> changes) {
  const std::lock_guard lock(mutex_);
  if (changes.empty() || foreign_ == nullptr) return;
  post_([foreign = foreign_, changes = std::move(changes)] {
    for (const Change& change : changes) {
      if (change.of_tokens && foreign->tokens_changed) foreign->tokens_changed();
      if (!change.of_tokens && foreign->appended) foreign->appended(change.job, change.sequence);
    }
  });
}

}  // namespace perseus::store
