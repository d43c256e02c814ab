#include "server/postgres/postgres_right.h"

#include <string_view>

namespace perseus::postgres {

Result<store::Writer> PostgresRight::take(const std::string& address) {
  const std::lock_guard lock(mutex_);
  for (bool reconnected = false;;) {
    try {
      if (connection_ == nullptr) {
        reconnected = true;
        connection_ = std::make_unique<PostgresConnection>(connection_string_);
      }
      return ask(address);
    } catch (const PostgresFailure& failure) {
      if (connection_ == nullptr || failure.lost) connection_.reset();
      if (!failure.lost || reconnected) return failure.error;
    }
  }
}

store::Writer PostgresRight::ask(const std::string& address) {
  static_assert(store::kRight_s == 3);
  const std::int64_t number = number_;
  const PostgresRows renewed =
      connection_->run("UPDATE writer SET until = clock_timestamp() + interval '3 s' WHERE number = $1", {number});
  if (renewed.affected() > 0) return {true, address};
  // Locks the row before reading it, so of two servers the second sees the first one's change.
  const PostgresRows taken = connection_->run(
      "UPDATE writer SET number = number + 1, address = $1, until = clock_timestamp() + interval '3 s' "
      "WHERE until <= clock_timestamp() RETURNING number",
      {std::string_view(address)});
  if (taken.size() > 0) {
    number_ = taken.integer(0, 0);
    return {true, address};
  }
  const PostgresRows other = connection_->script("SELECT address FROM writer");
  return {false, other.text(0, 0)};
}

void PostgresRight::give_back() {
  const std::lock_guard lock(mutex_);
  if (connection_ == nullptr) return;
  try {
    connection_->run("UPDATE writer SET until = clock_timestamp() WHERE number = $1", {std::int64_t{number_}});
  } catch (const PostgresFailure&) { connection_.reset(); }  // it ends by itself
}

void PostgresRight::check(PostgresConnection& transaction) const {
  const PostgresRows ours = transaction.run("SELECT FROM writer WHERE number = $1 FOR SHARE", {std::int64_t{number_}});
  if (ours.size() == 0) {
    throw PostgresFailure{{ErrorCode::unavailable, "database: another server has the right to write"}};
  }
}

}  // namespace perseus::postgres
