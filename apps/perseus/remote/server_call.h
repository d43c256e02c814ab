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
#include <string>
#include <string_view>

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

}  // namespace perseus::cli
