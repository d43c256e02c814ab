#include "server/store/stored_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/store/checksum.h"
#include "server/store/packed_events.h"

namespace perseus::store {

JobIndexRow checked_job_row(JobIndexRow row, std::int64_t crc) {
  row.damaged = crc != checksum_of(row);
  return row;
}

std::string holder_of_job(std::string_view job) { return fmt::format("job/{}", job); }

Error damaged_in_database(std::string_view what) {
  return Error{ErrorCode::internal, fmt::format("database: {} is damaged", what)};
}

LogReader::LogReader(std::string job, std::int64_t after) : job_(std::move(job)), after_(after), next_(after + 1) {}

Error LogReader::damaged(std::string_view what) const {
  return Error{ErrorCode::internal, fmt::format("job {} is damaged: {} not as it was written", job_, what)};
}

Error LogReader::damaged_index() const { return damaged("its row in the index is"); }

Status LogReader::add_pack(std::int64_t first, std::int64_t last, std::string_view bytes, std::int64_t crc) {
  auto bodies = crc == checksum_of_pack(job_, first, last, bytes) ? unpack_events(bytes) : std::nullopt;
  if (!bodies || static_cast<std::int64_t>(bodies->size()) != last - first + 1 || first > next_) {
    return damaged(fmt::format("event {}, or one soon after it, is", next_));
  }
  for (; next_ <= last; ++next_) events_.push_back({next_, std::move((*bodies)[next_ - first])});
  return Ok{};
}

Status LogReader::add_event(StoredEvent event, std::int64_t crc) {
  if (event.sequence != next_ || crc != checksum_of_event(job_, event.sequence, event.body)) {
    return damaged(fmt::format("event {} is", next_));
  }
  events_.push_back(std::move(event));
  ++next_;
  return Ok{};
}

Result<std::vector<StoredEvent>> LogReader::finish(const std::optional<JobIndexRow>& row) {
  if (!row && !events_.empty()) return damaged_index();
  if (row && next_ != std::max(row->last_sequence, after_) + 1) return damaged(fmt::format("event {} is", next_));
  return std::move(events_);
}

std::optional<std::vector<EventRow>> accept_append(const Append& append, JobIndexRow& present) {
  if (present.damaged || present.last_sequence != append.expected_sequence) return std::nullopt;
  std::vector<EventRow> events;
  events.reserve(append.bodies.size());
  for (const std::string& body : append.bodies) {
    const std::int64_t sequence = ++present.last_sequence;
    present.bytes += static_cast<std::int64_t>(body.size());
    events.push_back({sequence, &body, checksum_of_event(append.job, sequence, body)});
  }
  return events;
}

JobIndexRow index_after(const Append& append, const JobIndexRow& present) {
  JobIndexRow index = append.index;
  index.job = append.job;
  index.last_sequence = present.last_sequence;
  index.bytes = present.bytes;
  index.packed = present.packed;
  return index;
}

LogPacker::LogPacker(JobIndexRow row) : row_(std::move(row)) {}

bool LogPacker::has_work() const { return !row_.damaged && row_.packed < row_.last_sequence; }

bool LogPacker::has_room() const { return size_ < kMostPackedBytes; }

bool LogPacker::add(std::int64_t sequence, std::string body, std::int64_t crc) {
  const std::int64_t next = first() + static_cast<std::int64_t>(bodies_.size());
  if (sequence != next || crc != checksum_of_event(row_.job, next, body)) return false;
  size_ += body.size();
  bodies_.push_back(std::move(body));
  return true;
}

std::optional<LogPacker::Pack> LogPacker::finish() {
  if (bodies_.empty()) return std::nullopt;
  Pack pack;
  pack.first = first();
  pack.last = row_.packed + static_cast<std::int64_t>(bodies_.size());
  pack.bytes = pack_events(bodies_);
  pack.crc = checksum_of_pack(row_.job, pack.first, pack.last, pack.bytes);
  pack.index = row_;
  pack.index.bytes += static_cast<std::int64_t>(pack.bytes.size()) - static_cast<std::int64_t>(size_);
  pack.index.packed = pack.last;
  pack.more = pack.last < row_.last_sequence;
  return pack;
}

}  // namespace perseus::store
