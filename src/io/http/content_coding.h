// gzip as a content coding: negotiation, and compression of a body.
//
// Problem: the dashboard is 0.7 MB of text, and is opened over slow links.
// Input:   a request; a body.
// Output:  negotiation by RFC 9110 12.5.3 (case-insensitive names, q=0 means no); gzip (RFC 1952), the same bytes for
//          the same text and level (1: fastest, 9: smallest).
// Cost:    tens of milliseconds per megabyte, a quarter of that at level 1: compress frequently sent content once.
#pragma once

#include <string>
#include <string_view>

#include "io/http/http_message.h"

namespace perseus::http {

bool accepts_gzip(const HttpRequest& request);
std::string gzipped(std::string_view text, int level = 9);

}  // namespace perseus::http
