// HTTP calls of the client commands: address, token, and output of the response.
//
// Input:   --server, --token and --ca (or PERSEUS_SERVER, PERSEUS_TOKEN).
// Output:  the response as the server sent it (--json), or as text (answer_text()).
// Errors:  the server's own, with its code and message; unavailable if there is no server.
#pragma once

#include <CLI/CLI.hpp>
#include <boost/json/value.hpp>
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
                                  std::string_view list);

/// A server's JSON response as text: one member a line, nested members indented.
/// Input:   any JSON value; a member whose name ends in _s, _j, _w, _w_per_s, _pct or _mhz is a number in that unit.
/// Output:  numbers with their unit instead of the ending: "energy: 1,155.5 J". Times since 1970 (from 1e9 s on;
///          from_s) become UTC as in RFC 3339: "deployed: 2026-11-22T21:31:21Z"; durations from 2 min on are in min, h
///          or days.
std::string answer_text(const boost::json::value& answer);
/// One member, on one line: its number with the unit that its name ends in.
std::string member_text(std::string_view name, const boost::json::value& value);

}  // namespace perseus::cli
