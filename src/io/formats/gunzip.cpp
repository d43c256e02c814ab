#include "io/formats/gunzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>

namespace perseus::formats {

Result<std::string> gunzipped(std::string_view packed, const std::string& name, std::size_t limit) {
  const auto broken = [&](const char* what) {
    return Error{ErrorCode::invalid_input, fmt::format("{}: broken gzip file: {}", name, what)};
  };
  const auto too_large = [&] {
    return Error{ErrorCode::invalid_input,
                 fmt::format("{}: larger than the {} MiB that are allowed", name, limit >> 20)};
  };
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) return broken("cannot start to inflate");
  struct End {
    z_stream* stream;
    ~End() { inflateEnd(stream); }
  } end{&stream};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string text;
  for (;;) {
    const std::size_t used = text.size();
    if (used > limit) return too_large();
    text.resize(used + std::max<std::size_t>(used, 1 << 16));
    stream.next_out = reinterpret_cast<Bytef*>(text.data() + used);
    stream.avail_out = static_cast<uInt>(text.size() - used);
    const int status = inflate(&stream, Z_NO_FLUSH);
    text.resize(text.size() - stream.avail_out);
    if (status == Z_STREAM_END) {
      if (stream.avail_in == 0) break;
      if (inflateReset(&stream) != Z_OK) return broken("cannot inflate its next member");
    } else if (status != Z_OK) {
      return broken(status == Z_BUF_ERROR ? "ends early" : "data error");
    }
  }
  if (text.size() > limit) return too_large();
  return text;
}

}  // namespace perseus::formats
