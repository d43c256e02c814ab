// Any bytes are requests, the beginning of one, or an error with a status; in whatever pieces they come.
#include <cstdint>
#include <vector>

#include "net/request_reader.h"

namespace {

using namespace perseus;

/// What the bytes are, read in pieces of that size: requests as text, and how it ends.
std::vector<std::string> outcome(std::string_view bytes, std::size_t piece) {
  constexpr std::size_t head_bytes = 1024, body_bytes = 2048;
  std::vector<std::string> seen;
  while (!bytes.empty()) {
    RequestReader reader({head_bytes, body_bytes});
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
      seen.push_back("error");  // which of several it meets first may depend on the pieces
      break;
    }
    if (!reader.done()) {
      seen.emplace_back("more to come");
      break;
    }
    std::string text = reader.keep_alive() ? "stays " : "closes ";
    const HttpRequest request = reader.take();
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
  PERSEUS_CHECK(outcome(bytes, 1) == whole, "byte by byte as at once");
  PERSEUS_CHECK(outcome(bytes, 7) == whole, "in pieces as at once");
  return 0;
}
