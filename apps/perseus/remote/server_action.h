// The actions of the commands that call a server: `perseus job show JOB`.
//
// Input:   a request, made once the options are parsed; a job's id, name, or the beginning of either.
// Output:  the response, printed.
// Errors:  the server's; usage for a name that fits several jobs, with their ids.
// Cost:    one request, one more to find a job.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "command_line/command.h"
#include "io/http/http_client.h"
#include "remote/list_output.h"

namespace perseus::cli {

/// Help of an argument that job_meant() reads.
inline constexpr const char* kJobMeaning = "Id or name of the job, or the beginning of one that no other job has";

/// A command that has actions.
CLI::App* add_group(CLI::App& app, const std::string& name, const std::string& meaning, const std::string& examples);

/// An action with the options of a server, which prints what `run` makes of it.
CLI::App* add_server_action(CLI::App& group, Command& command, const std::string& name, const std::string& meaning,
                            std::function<Result<int>(const http::HttpPeer&)> run);

/// The same of one request, whose answer is printed.
/// `job`: an argument of the action that becomes the id of the job it means before `make` is called; may be empty.
CLI::App* add_action(CLI::App& group, Command& command, const std::string& name, const std::string& meaning,
                     std::function<Result<http::HttpCall>()> make, const std::shared_ptr<std::string>& job = {});

/// An action that prints a list.
CLI::App* add_list_action(CLI::App& group, Command& command, const std::string& name, const std::string& meaning,
                          ListForm form, std::function<Result<std::string>(const http::HttpPeer&)> fetch);

/// An option that chooses rows of a list: a member of its query.
struct ListFilter {
  /// job: one that job_meant() finds; known_job: the same, and an error if there is none
  enum class Of { text, job, known_job };
  std::string option, member, meaning;
  Of of = Of::text;
};
/// The action `list`: the pages at `target`, a path with a query.
void add_filtered_list(CLI::App& group, Command& command, const std::string& meaning, const ListForm& form,
                       const std::string& target, const std::vector<ListFilter>& filters);

/// The times of a list over time, in seconds since 1970, and the length of its rows.
struct ListedTimes {
  std::string step = "minute";
  std::optional<double> from_s;
};
constexpr double kLatest_s = 1e11;
/// --step and --from.
void add_listed_times(CLI::App& list, ListedTimes& times);

/// "/v1/jobs/ID/rest"
std::string job_path(const std::string& job, const std::string& rest = {});
/// The id of the job that has this id or name, or the only one whose id or name begins so; `text` itself if there is
/// none, so that the server answers.
Result<std::string> job_meant(const http::HttpPeer& peer, const std::string& text);
/// What jobs have in the list `member`, as a response with that list: each element gets its job's id and name. `job`:
/// only of this one; empty: of all jobs that have not ended, in pages.
Result<std::string> list_over_jobs(const http::HttpPeer& peer, const std::string& job, const std::string& member);

}  // namespace perseus::cli
