#include "io/http/request_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/field.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <boost/beast/http/string_body.hpp>

namespace perseus::http {

namespace http = boost::beast::http;

namespace {

constexpr std::size_t kLastChunkBytes = 5;
constexpr std::size_t kMostFramingBytes = 16U
                                          << 10U;  // a chunk's extensions; and how much the frames of a body may add

/// True if a header continues in the next line; `text` begins within the head or at its end.
bool has_folded_line(std::string_view text) {
  if (text.starts_with("\r\n")) return false;
  const std::string_view head = text.substr(0, text.find("\r\n\r\n"));
  return head.find("\r\n ") != std::string_view::npos || head.find("\r\n\t") != std::string_view::npos;
}

}  // namespace

struct RequestReader::Parser {
  http::request_parser<http::string_body> beast;
};

RequestReader::RequestReader(const RequestLimits& limits) : parser_(std::make_unique<Parser>()), limits_(limits) {
  parser_->beast.eager(true);
  parser_->beast.header_limit(static_cast<std::uint32_t>(limits.head_bytes));
  parser_->beast.body_limit(limits.body_bytes);
}

RequestReader::~RequestReader() = default;

void RequestReader::fail(int status, std::string message) { error_ = {status, std::move(message)}; }

void RequestReader::check_head() {
  const auto& fields = parser_->beast.get();
  const auto coding = fields.find(http::field::transfer_encoding);
  if (coding != fields.end() && !boost::beast::iequals(coding->value(), "chunked")) {
    return fail(400, "unsupported HTTP request: Transfer-Encoding may only be chunked");
  }
  for (const char* once : {"Content-Length", "Transfer-Encoding", "Authorization", "Origin", "Sec-Fetch-Site",
                           "Content-Type", "Idempotency-Key"}) {
    if (fields.count(once) > 1) return fail(400, fmt::format("this is not an HTTP request: two headers {}", once));
  }
  // A list of equal lengths, which Beast accepts, is two lengths to other readers.
  const auto length = fields.find(http::field::content_length);
  if (length != fields.end() && length->value().find(',') != boost::beast::string_view::npos) {
    return fail(400, "this is not an HTTP request: two lengths in the header Content-Length");
  }
  const auto hosts = fields.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && !http_1_0())) {
    return fail(400, fmt::format("this is not an HTTP request: {} headers Host; expected 1", hosts));
  }
  const std::string_view target(fields.target().data(), fields.target().size());
  const std::size_t authority = target.find("://");
  if (!target.starts_with('/') && authority != std::string_view::npos) {
    const std::string_view named = target.substr(authority + 3, target.find('/', authority + 3) - authority - 3);
    if (!boost::beast::iequals({named.data(), named.size()}, fields[http::field::host])) {
      fail(400, "this is not an HTTP request: its target and its header Host name two hosts");
    }
  }
}

std::size_t RequestReader::put(std::string_view bytes) {
  const std::size_t before = unparsed_.size();
  std::string joined;
  std::string_view text = bytes;
  if (before > 0) {
    joined = std::move(unparsed_);
    unparsed_.clear();
    joined += bytes;
    text = joined;
  }
  const bool had_head = parser_->beast.is_header_done();
  std::size_t taken = 0;
  boost::beast::error_code problem;
  while (taken < text.size() && !parser_->beast.is_done() && !problem) {
    // Beast 1.81 asserts that it never sees less of a last chunk, "0\r\n\r\n", a second time.
    const bool in_chunks = parser_->beast.is_header_done() && parser_->beast.chunked();
    if (in_chunks && text.size() - taken < kLastChunkBytes) break;
    const std::size_t step =
        parser_->beast.put(boost::asio::const_buffer(text.data() + taken, text.size() - taken), problem);
    taken += step;
    if (step == 0) break;
  }
  if (problem == http::error::need_more) problem = {};
  if (problem == http::error::header_limit) {
    fail(431, fmt::format("the request's head is larger than {} bytes", limits_.head_bytes));
  } else if (problem == http::error::body_limit || problem == http::error::buffer_overflow) {
    fail(413, fmt::format("the request's body is larger than {} bytes", limits_.body_bytes));
  } else if (problem == http::error::bad_version) {
    fail(400, "this is not an HTTP request: only HTTP/1.0 and HTTP/1.1 are supported");
  } else if (problem) {
    fail(400, fmt::format("this is not an HTTP request: {}", problem.message()));
  }
  // Beast takes the headers one by one: those of a head in pieces are not all in the last piece.
  if (!had_head && !error_ && has_folded_line(text)) {
    fail(400, "this is not an HTTP request: a header continues on the next line");
  }
  if (error_) return bytes.size();
  if (!had_head && parser_->beast.is_header_done()) {
    const auto& head = parser_->beast.get();
    Result<HttpTarget> target = parse_target({head.target().data(), head.target().size()});
    if (!target) {
      fail(400, target.error().message);
      return bytes.size();
    }
    target_ = std::move(*target);
    check_head();
    if (error_) return bytes.size();
  }
  if (had_head) behind_head_ += taken;
  if (done()) return taken - std::min(taken, before);
  unparsed_.assign(text.substr(taken));
  // Trailers and chunk extensions count as framing too.
  const bool framed = parser_->beast.is_header_done() && parser_->beast.chunked();
  if (framed && (unparsed_.size() > kMostFramingBytes || behind_head_ > 2 * limits_.body_bytes + kMostFramingBytes)) {
    fail(413, "the request's chunks have too large frames");
  }
  return bytes.size();
}

bool RequestReader::done() const { return !error_ && parser_->beast.is_done(); }

std::optional<HttpRequest> RequestReader::take_head() {
  if (error_ || head_taken_ || !parser_->beast.is_header_done() || done()) return std::nullopt;
  head_taken_ = true;
  return request_without_body();
}

std::size_t RequestReader::held_bytes() const { return parser_->beast.get().body().size() + unparsed_.size(); }

bool RequestReader::wants_continue() {
  if (error_ || continued_ || !parser_->beast.is_header_done() || done()) return false;
  continued_ = true;
  return boost::beast::iequals(parser_->beast.get()[http::field::expect], "100-continue");
}

bool RequestReader::keep_alive() const {
  // Beast ignores `close` in an HTTP/1.0 request that also has `keep-alive`.
  const auto [begin, end] = parser_->beast.get().equal_range(http::field::connection);
  const bool closes =
      std::any_of(begin, end, [](const auto& field) { return http::token_list(field.value()).exists("close"); });
  return parser_->beast.keep_alive() && !closes;
}

bool RequestReader::is_head() const { return parser_->beast.get().method() == http::verb::head; }

bool RequestReader::http_1_0() const { return parser_->beast.get().version() == 10; }

HttpRequest RequestReader::request_without_body() const {
  const auto& message = parser_->beast.get();
  HttpRequest request;
  request.method = std::string(message.method_string());
  request.path = target_.path;
  request.segments = target_.segments;
  request.query = target_.query;
  request.headers.reserve(static_cast<std::size_t>(std::distance(message.begin(), message.end())));
  for (const auto& field : message) {
    request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  return request;
}

HttpRequest RequestReader::take() {
  HttpRequest request = request_without_body();
  request.body = std::move(parser_->beast.get().body());
  return request;
}

}  // namespace perseus::http
