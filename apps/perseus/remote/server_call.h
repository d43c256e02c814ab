// HTTP calls of the client commands: address, token, and output of the response.
//
// Input:   --server, --token and --ca (or PERSEUS_SERVER, PERSEUS_TOKEN).
// Output:  the response as the server sent it (--json), or as text (answer_text.h).
// Errors:  the server's own, with its code and message; unavailable if there is no server.
// Cost:    one request.
// Threads: one.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "command_line/command.h"
#include "io/http/http_client.h"

namespace perseus::cli {

std::shared_ptr<http::HttpPeer> add_server_options(CLI::App& subcommand);
/// A response that is not an error.
Result<http::HttpReply> reply_of_server(const http::HttpPeer& peer, const http::HttpCall& call);
/// Its body.
Result<std::string> call_server(const http::HttpPeer& peer, const http::HttpCall& call);
/// The same of a call whose body is that file's content: what the server finds wrong in it is an error of the file.
Result<std::string> call_server_with(const std::string& file, const http::HttpPeer& peer, const http::HttpCall& call);
/// All pages of a list in one: the rows are in the member `list`, and `next` names the page that follows.
Result<std::string> call_pages(const http::HttpPeer& peer, const http::HttpCall& call, std::string_view list);
/// Prints such a body, or returns its error.
Result<int> print_answer(const http::HttpPeer& peer, const Result<std::string>& body, bool json);

/// A list over time in pages, a request for each: next_s names the time at which the next one begins. The last answer,
/// with the lists of all pages in its member `list`; unavailable for an answer without that list.
/// `target`: with a query, to which the beginning is added.
Result<std::string> pages_in_time(const http::HttpPeer& peer, const std::string& target, std::optional<double> from_s,
                                  const char* list);

}  // namespace perseus::cli
