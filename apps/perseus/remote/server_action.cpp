#include "remote/server_action.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <utility>
#include <vector>

#include "io/formats/boost_json_text.h"
#include "remote/answer_members.h"
#include "remote/server_call.h"

namespace perseus::cli {
namespace {

namespace json = boost::json;

constexpr std::size_t kCandidatesShown = 8;

Result<json::array> jobs_in(const http::HttpPeer& peer, const std::string& filter) {
  const auto body = call_pages(peer, {"GET", "/v1/jobs?limit=1000" + filter, ""}, "jobs");
  if (!body) return body.error();
  return json::parse(*body).at("jobs").as_array();  // call_pages() made it
}

}  // namespace

CLI::App* add_group(CLI::App& app, const std::string& name, const std::string& meaning, const std::string& examples) {
  auto* group = app.add_subcommand(name, meaning);
  group->require_subcommand(1);
  group->footer(help_footer(kAllErrors, examples));
  return group;
}

CLI::App* add_server_action(CLI::App& group, Command& command, const std::string& name, const std::string& meaning,
                            std::function<Result<int>(const http::HttpPeer&)> run) {
  auto* action = group.add_subcommand(name, meaning);
  const auto peer = add_server_options(*action);
  add_json_flag(*action, command);
  set_run(*action, command, [peer, run = std::move(run)] { return run(*peer); });
  return action;
}

CLI::App* add_action(CLI::App& group, Command& command, const std::string& name, const std::string& meaning,
                     std::function<Result<http::HttpCall>()> make, const std::shared_ptr<std::string>& job) {
  const auto run = [job, make = std::move(make), &command](const http::HttpPeer& peer) -> Result<int> {
    if (job != nullptr && !job->empty()) {
      auto meant = job_meant(peer, *job);
      if (!meant) return meant.error();
      *job = *std::move(meant);
    }
    const auto call = make();
    if (!call) return call.error();
    return print_answer(peer, call_server(peer, *call), command.json);
  };
  return add_server_action(group, command, name, meaning, run);
}

CLI::App* add_list_action(CLI::App& group, Command& command, const std::string& name, const std::string& meaning,
                          ListForm form, std::function<Result<std::string>(const http::HttpPeer&)> fetch) {
  auto* action = group.add_subcommand(name, meaning);
  const auto peer = add_server_options(*action);
  const auto options = add_list_options(*action, command, form);
  action->callback([peer, options, form = std::move(form), fetch = std::move(fetch), &command] {
    if (command.json) options->output = "json";
    command.json = options->output == "json";
    command.run = [peer, options, form, fetch] { return print_list([&] { return fetch(*peer); }, form, *options); };
  });
  return action;
}

void add_filtered_list(CLI::App& group, Command& command, const std::string& meaning, const ListForm& form,
                       const std::string& target, const std::vector<ListFilter>& filters) {
  auto values = std::make_shared<std::vector<std::string>>(filters.size());
  const auto fetch = [=, list = form.member](const http::HttpPeer& peer) -> Result<std::string> {
    std::string narrowed = target;
    for (std::size_t k = 0; k < filters.size(); ++k) {
      std::string value = (*values)[k];
      if (value.empty()) continue;
      if (filters[k].of != ListFilter::Of::text) {
        auto job = job_meant(peer, value);
        if (!job) return job.error();
        value = *std::move(job);
      }
      if (filters[k].of == ListFilter::Of::known_job) {
        const auto shown = call_server(peer, {"GET", job_path(value), ""});
        if (!shown) return shown.error();
      }
      narrowed += fmt::format("&{}={}", filters[k].member, http::percent_encode(value));
    }
    return call_pages(peer, {"GET", narrowed, ""}, list);
  };
  auto* action = add_list_action(group, command, "list", meaning, form, fetch);
  for (std::size_t k = 0; k < filters.size(); ++k) {
    add_value(*action, filters[k].option, (*values)[k], filters[k].meaning);
  }
}

void add_listed_times(CLI::App& list, ListedTimes& times) {
  add_default(list, "--step STEP", times.step,
              "Length of a row: minute (kept for a day), hour (kept for a year) or day",
              CLI::IsMember({"minute", "hour", "day"}).description(""));
  add_value(list, "--from S", times.from_s,
            "Beginning, in seconds since 1970 (default: a day before the end, for hours and days a year)",
            number_within(0, kLatest_s, "s"));
}

std::string job_path(const std::string& job, const std::string& rest) {
  return "/v1/jobs/" + http::percent_encode(job) + rest;
}

Result<std::string> job_meant(const http::HttpPeer& peer, const std::string& text) {
  const auto jobs = jobs_in(peer, "&search=" + http::percent_encode(text));
  if (!jobs) return jobs.error();
  std::vector<std::pair<std::string, std::string>> named, beginning;  // id and name
  for (const json::value& row : *jobs) {
    const std::string id = text_in(row, "id");
    const std::string name = text_in(row, "name");
    if (id == text) return id;
    if (name == text) named.emplace_back(id, name);
    if (id.starts_with(text) || name.starts_with(text)) beginning.emplace_back(id, name);
  }
  const auto& fitting = named.empty() ? beginning : named;
  if (fitting.empty()) return text;
  if (fitting.size() == 1) return fitting.front().first;
  std::string candidates;
  for (std::size_t i = 0; i < std::min(fitting.size(), kCandidatesShown); ++i) {
    const auto& [id, name] = fitting[i];
    candidates += (i > 0 ? ", " : "") + id + (name.empty() ? "" : " (" + name + ")");
  }
  if (fitting.size() > kCandidatesShown) candidates += fmt::format(" and {} more", fitting.size() - kCandidatesShown);
  return Error{ErrorCode::usage,
               fmt::format("job '{}' means {} jobs; allowed: one of {}", text, fitting.size(), candidates)};
}

Result<std::string> list_over_jobs(const http::HttpPeer& peer, const std::string& job, const std::string& member) {
  if (job.empty()) return call_pages(peer, {"GET", fmt::format("/v1/{}?limit=1000", member), ""}, member);
  const auto id = job_meant(peer, job);
  if (!id) return id.error();
  const auto body = call_server(peer, {"GET", job_path(*id), ""});
  if (!body) return body.error();
  boost::system::error_code problem;
  const json::value view = json::parse(*body, problem);  // null where the answer is not JSON
  json::array all;
  for (const json::value& thing : list_in(view, member)) {
    json::object row{{"job", *id}, {"job_name", text_in(view, "name")}};
    for (const auto& [name, value] : thing.as_object()) row[name] = value;
    all.push_back(std::move(row));
  }
  return formats::json_text(json::object{{member, std::move(all)}});
}

}  // namespace perseus::cli
