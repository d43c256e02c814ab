#include "server/store/checksum.h"

#include <zlib.h>

namespace perseus::store {

void Checksum::take(char type, const void* bytes, std::size_t size) {
  const auto length = static_cast<std::uint64_t>(size);
  auto crc = static_cast<uLong>(crc_);
  crc = crc32_z(crc, reinterpret_cast<const Bytef*>(&type), sizeof type);
  crc = crc32_z(crc, reinterpret_cast<const Bytef*>(&length), sizeof length);
  if (size > 0) crc = crc32_z(crc, static_cast<const Bytef*>(bytes), size);  // a null pointer would reset the checksum
  crc_ = static_cast<std::uint32_t>(crc);
}

Checksum& Checksum::add(std::string_view text) { return take('t', text.data(), text.size()), *this; }
Checksum& Checksum::add(std::int64_t number) { return take('i', &number, sizeof number), *this; }
Checksum& Checksum::add(double number) { return take('d', &number, sizeof number), *this; }
Checksum& Checksum::add(const std::optional<double>& number) {
  return number ? add(*number) : (take('n', nullptr, 0), *this);
}

std::int64_t checksum_of_event(std::string_view job, std::int64_t sequence, std::string_view body) {
  return Checksum().add(job).add(sequence).add(body).value();
}

std::int64_t checksum_of_pack(std::string_view job, std::int64_t first, std::int64_t last, std::string_view bytes) {
  return Checksum().add(job).add(first).add(last).add(bytes).value();
}

std::int64_t checksum_of(const JobIndexRow& row) {
  return Checksum()
      .add(std::string_view(row.job))
      .add(std::string_view(row.state))
      .add(std::string_view(row.name))
      .add(row.created_s)
      .add(row.updated_s)
      .add(row.next_wake_s)
      .add(row.last_sequence)
      .add(std::string_view(row.summary))
      .add(row.bytes)
      .add(row.packed)
      .value();
}

std::int64_t checksum_of(const TokenRow& row) {
  return Checksum()
      .add(std::string_view(row.hash))
      .add(std::string_view(row.role))
      .add(std::string_view(row.job))
      .add(std::string_view(row.name))
      .add(row.created_s)
      .add(row.expires_s)
      .add(std::string_view(row.team))
      .value();
}

std::int64_t checksum_of_blob(std::string_view key, std::string_view bytes) {
  return Checksum().add(key).add(bytes).value();
}

}  // namespace perseus::store
