#include "server/store/stored_log.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/result.h"
#include "server/store/checksum.h"

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

namespace {

/// Removes the number before the next space, and the space, from `text`.
std::optional<std::size_t> take_number(std::string_view& text) {
  std::size_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end == text.data() + text.size() || *end != ' ') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return number;
}

}  // namespace

// Format: "SIZE " and zlib's encoding of SIZE bytes, which are, per body, "LENGTH " and the body.

std::string pack_events(std::span<const std::string> bodies) {
  std::string plain;
  for (const std::string& body : bodies) plain += std::to_string(body.size()) + ' ' + body;
  std::string packed = std::to_string(plain.size()) + ' ';
  const std::size_t head = packed.size();
  uLongf size = compressBound(static_cast<uLong>(plain.size()));
  packed.resize(head + size);
  const int status = compress2(reinterpret_cast<Bytef*>(packed.data() + head), &size,
                               reinterpret_cast<const Bytef*>(plain.data()), static_cast<uLong>(plain.size()), 1);
  PERSEUS_CHECK(status == Z_OK, "zlib has memory");
  packed.resize(head + size);
  return packed;
}

std::optional<std::vector<std::string>> unpack_events(std::string_view packed) {
  constexpr std::size_t most = std::size_t{1} << 31;  // a single body may be large
  const auto size = take_number(packed);
  if (!size || *size > most) return std::nullopt;
  std::string plain(*size, '\0');
  auto length = static_cast<uLongf>(plain.size());
  if (uncompress(reinterpret_cast<Bytef*>(plain.data()), &length, reinterpret_cast<const Bytef*>(packed.data()),
                 static_cast<uLong>(packed.size())) != Z_OK ||
      length != plain.size()) {
    return std::nullopt;
  }
  std::vector<std::string> bodies;
  for (std::string_view rest = plain; !rest.empty();) {
    const auto bytes = take_number(rest);
    if (!bytes || *bytes > rest.size()) return std::nullopt;
    bodies.emplace_back(rest.substr(0, *bytes));
    rest.remove_prefix(*bytes);
  }
  return bodies;
}

}  // namespace perseus::store
