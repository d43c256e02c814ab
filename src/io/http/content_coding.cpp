#include "io/http/content_coding.h"

#include <zlib.h>

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>

#include "base/split.h"

namespace perseus::http {
namespace {

/// "q=0", "q=0.0": the client refuses the coding.
bool is_refused(std::string_view parameter) {
  if (!parameter.starts_with("q=") && !parameter.starts_with("Q=")) return false;
  return parameter.find_first_not_of("0.", 2) == std::string_view::npos;
}

}  // namespace

bool accepts_gzip(const HttpRequest& request) {
  bool any = false;
  for (const std::string_view coding : split(request.header("Accept-Encoding").value_or(""), ',')) {
    const std::size_t semicolon = std::min(coding.find(';'), coding.size());
    const std::string_view name = trimmed(coding.substr(0, semicolon));
    const std::string_view parameter = trimmed(coding.substr(std::min(coding.size(), semicolon + 1)));
    if (boost::algorithm::iequals(name, "gzip")) return !is_refused(parameter);
    if (name == "*") any = !is_refused(parameter);
  }
  return any;
}

std::string gzipped(std::string_view text, int level) {
  constexpr int gzip_window = 15 + 16;  // the largest window, with gzip's header
  constexpr int memory_level = 8;       // zlib's default
  z_stream stream{};
  PERSEUS_CHECK(deflateInit2(&stream, level, Z_DEFLATED, gzip_window, memory_level, Z_DEFAULT_STRATEGY) == Z_OK,
                "zlib has memory");
  std::string result(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // zlib only reads it
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const int done = deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  result.shrink_to_fit();
  deflateEnd(&stream);
  PERSEUS_CHECK(done == Z_STREAM_END, "deflateBound() is enough");
  return result;
}

}  // namespace perseus::http
