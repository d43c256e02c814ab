// gzip as a content coding: whether a client takes it, and a body in it.
//
// Problem: the dashboard is 0.7 MB of text, and is opened over slow links. Input: a request; a body. Output: RFC 9110
// 12.5.3 (names without case, q=0 means no); gzip (RFC 1952) at the best compression, the same bytes for the same text.
// Errors: none. Cost: tens of milliseconds a megabyte: compress what is sent often once. Threads: pure.
#pragma once

#include <string>
#include <string_view>

#include "net/http_message.h"

namespace perseus {

bool accepts_gzip(const HttpRequest& request);
std::string gzipped(std::string_view text);

}  // namespace perseus
