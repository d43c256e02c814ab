// Any bytes are requests, the beginning of one, or an error with a status; in whatever pieces they come.
#include <cstdint>
#include <optional>
#include <vector>

#include "io/http/request_reader.h"

namespace {

using namespace perseus;

/// The whole requests in the bytes as text, read in pieces of that size. Whether what is left is an error already, and
/// which, may depend on the pieces: a line that ends wrongly is noticed when the next one is looked for. Nothing where
/// the limit of the head is met: of one that is as large, to a line's end, it depends on the pieces as well.
std::optional<std::vector<std::string>> outcome(std::string_view bytes, std::size_t piece) {
  constexpr std::size_t head_bytes = 1024, body_bytes = 2048;
  std::vector<std::string> seen;
  while (!bytes.empty()) {
    http::RequestReader reader({head_bytes, body_bytes});
    while (!reader.done() && !reader.error() && !bytes.empty()) {
      const std::string_view part = bytes.substr(0, piece);
      const std::size_t taken = reader.put(part);
      PERSEUS_CHECK(taken <= part.size(), "takes what there is");
      PERSEUS_CHECK(taken == part.size() || reader.done() || reader.error(), "leaves only what is behind the request");
      bytes.remove_prefix(taken);
      (void)reader.wants_continue();
    }
    if (reader.error()) {
      const int status = reader.error()->status;
      PERSEUS_CHECK(status == 400 || status == 413 || status == 431, "an error of the client");
      PERSEUS_CHECK(!reader.error()->message.empty(), "says what is wrong");
      if (status == 431) return std::nullopt;
      break;
    }
    if (!reader.done()) break;
    std::string text = reader.keep_alive() ? "stays " : "closes ";
    const http::HttpRequest request = reader.take();
    PERSEUS_CHECK(request.path.starts_with('/') && request.body.size() <= body_bytes, "what limits promise");
    text += request.method + " " + request.path + "\n";
    for (const auto& [name, value] : request.query) text += name + "=" + value + "\n";
    for (const auto& [name, value] : request.headers) text += name + ": " + value + "\n";
    seen.push_back(text + request.body);
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = outcome(bytes, std::max<std::size_t>(size, 1));
  for (const std::size_t piece : {1, 7}) {
    const auto in_pieces = outcome(bytes, piece);
    PERSEUS_CHECK(!whole || !in_pieces || *in_pieces == *whole, "in pieces as at once");
  }
  return 0;
}
