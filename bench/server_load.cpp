// Measures the speed of `perseus serve`: its own server and thousands of keep-alive connections from one epoll loop,
// both on this machine's cores. Prints the table of docs/measurements/server.md. The databases are in TMPDIR.
//
// usage: server_load PERSEUS PROFILE.csv [RANKS] [--json] [--only PART]
//   RANKS: default 8192; the profile must have 8 stages or 4; PART: serving, stall, start, hosts, traffic, readers (the
//   cost of lists, dashboards and event streams for ranks), or zeus (ranks of Zeus's protocol)
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/json_writer.h"
#include "bench/load_connections.h"
#include "bench/load_parts.h"
#include "bench/load_requests.h"

namespace perseus::bench {
namespace {

/// The same profile with all times longer by this factor, which gives another frontier.
std::string scaled(const std::string& csv, double factor) {
  std::istringstream lines(csv);
  std::string line, text;
  std::getline(lines, line);
  text = line + "\n";
  while (std::getline(lines, line)) {
    const std::size_t energy = line.rfind(',');
    const std::size_t time = line.rfind(',', energy - 1);
    text += fmt::format("{},{:.6f}{}\n", line.substr(0, time), factor * std::atof(line.c_str() + time + 1),
                        line.substr(energy));
  }
  return text;
}

/// All ranks register, get their plan, and wait for the next one, which a straggler triggers.
void measure_serving(const Load& load, std::vector<Row>& rows) {
  const Server server(load.program, load.data + "/serving", {"--plan-deadlines", "100"});
  std::string job;
  {
    Clients one(server.port, 1);
    one.once("PUT", "/v1/profiles/load", pipeline_json(load.csv, 32));  // 64 instructions a rank
    const auto new_job = [&](int dp) {
      return member(one.once("POST", "/v1/jobs", job_json(dp, load.stages, kProfile)), "job");
    };
    // Characterize before the measurement starts: the original server does not plan here.
    const std::string first = new_job(1);
    for (int rank = 0; rank < load.stages; ++rank) {
      one.once("POST", "/v1/jobs/" + first + "/ranks", rank_json(rank, load.stages));
    }
    one.once("GET", "/v1/jobs/" + first + "/ranks/0/plan", "");
    job = new_job(load.ranks / load.stages);
  }
  const double cpu = server.cpu_s();
  const auto begin = Clock::now();
  Clients clients(server.port, load.ranks);
  std::vector<std::string> versions(load.ranks);
  int asked_again = 0;
  const std::string path = "/v1/jobs/" + job + "/ranks";
  for (int rank = 0; rank < load.ranks; ++rank) {
    clients.ask(rank, "POST", path + "?plan=true", rank_json(rank, load.stages), [&, rank](const std::string& answer) {
      if (answer.find("\"plan\"") != std::string::npos) {
        versions[rank] = member(answer, "version");
        return;
      }
      ++asked_again;
      clients.ask(rank, "GET", fmt::format("{}/{}/plan", path, rank), "",
                  [&, rank](const std::string& plan) { versions[rank] = member(plan, "version"); });
    });
  }
  clients.run();
  rows.push_back({"register and hand out: last rank served", "s", since(begin), 1, 0.3});
  rows.push_back({"register and hand out: ranks that had to ask again for a plan", "", double(asked_again), 0, 0});
  rows.push_back({"register and hand out: server CPU", "s", server.cpu_s() - cpu, 15.3 / 20, 15.3 / 60});

  double last = 0;
  Clock::time_point notice;
  for (int rank = 0; rank < load.ranks; ++rank) {
    clients.ask(rank, "GET", fmt::format("{}/{}/plan?have={}", path, rank, versions[rank]), "",
                [&](const std::string&) { last = since(notice); });
  }
  Clients other(server.port, 1);
  await_waiting(other, load.ranks);
  rows.push_back({"memory, all ranks waiting", "MB", server.resident_mb(), 150, 64});
  const double before = server.cpu_s();
  notice = Clock::now();
  other.once("POST", "/v1/jobs/" + job + "/stragglers", straggler_json(0, 1.1));
  clients.run();
  rows.push_back({"straggler notice to last waiting rank's plan", "s", last, 1, 0.2});
  rows.push_back({"straggler notice: server CPU", "s", server.cpu_s() - before, 0, 0});
}

/// Registers jobs, uploads a profile for each and characterizes them, while all their ranks wait and requests continue.
void measure_stall(const Load& load, std::vector<Row>& rows) {
  constexpr int jobs = 100;
  constexpr int ranks = 64;  // each
  const Server server(load.program, load.data + "/stall", {});
  std::map<std::string, std::vector<double>> took_s;  // by kind of request
  const auto timed = [&](Clients& clients, const std::string& kind, const std::string& method,
                         const std::string& target, const std::string& body) {
    const auto begin = Clock::now();
    clients.once(method, target, body);
    took_s[kind].push_back(since(begin));
  };
  Clients one(server.port, 1);
  Clients waiting(server.port, jobs * ranks);
  std::vector<std::string> ids;
  for (int j = 0; j < jobs; ++j) {
    ids.push_back(member(one.once("POST", "/v1/jobs", job_json(ranks / load.stages, load.stages, "")), "job"));
  }
  for (int i = 0; i < jobs * ranks; ++i) {
    const std::string path = "/v1/jobs/" + ids[i / ranks] + "/ranks";
    waiting.ask(i, "POST", path, rank_json(i % ranks, load.stages), [](const std::string&) {});
  }
  waiting.run();
  const auto began = Clock::now();
  int planned = 0;
  std::vector<bool> has_plan(static_cast<std::size_t>(jobs * ranks));
  const std::function<void(int, const std::string&)> wait = [&](int i, const std::string& have) {
    if (have != "0" && !has_plan[i]) has_plan[i] = true, ++planned;
    const std::string target = fmt::format("/v1/jobs/{}/ranks/{}/plan?have={}", ids[i / ranks], i % ranks, have);
    waiting.ask(i, "GET", target, "", [&, i](const std::string& plan) { wait(i, member(plan, "version")); });
  };
  for (int i = 0; i < jobs * ranks; ++i) wait(i, "0");
  int turn = 0;
  while (planned < jobs * ranks) {  // the waiting ranks increment it
    const std::string job = "/v1/jobs/" + ids[static_cast<std::size_t>(turn) * 7 % jobs];
    if (turn < jobs) {
      timed(one, "upload a profile", "PUT", "/v1/jobs/" + ids[turn] + "/profile",
            pipeline_json(scaled(load.csv, 1 + 0.001 * turn), 24));
    }
    timed(one, "look at a job", "GET", job, "");
    timed(one, "ask for a plan", "GET", job + "/ranks/5/plan?wait_s=0", "");
    timed(one, "report an iteration", "POST", job + "/iterations", R"({"rank":1,"iteration_time_s":[4.5]})");
    timed(one, "straggler notice", "POST", job + "/stragglers",
          straggler_json(1, 1.02 + 0.001 * (turn % 97)));  // a new degree every time
    timed(one, "list jobs", "GET", "/v1/jobs", "");
    waiting.take(2);  // continues the requests, but leaves the cores to others
    ++turn;
  }
  for (auto& [kind, times] : took_s) {
    std::sort(times.begin(), times.end());
    rows.push_back({fmt::format("100 jobs of 64 ranks characterized: worst of {} times '{}' (median {:.2g})",
                                times.size(), kind, 1e3 * times[times.size() / 2]),
                    "ms", 1e3 * times.back(), 100, 20});
  }
  rows.push_back({"100 jobs of 64 ranks characterized: all of it", "s", since(began), 0, 0});
  if (std::getenv("PERSEUS_LOAD_METRICS") != nullptr) fmt::print(stderr, "{}", one.once("GET", "/metrics", ""));
}

/// Interval of each rank's reports, and of a client's requests for plans.
constexpr double iteration_s = 5, poll_s = 10;

/// Load of the ranks during training: each waits for a plan, and reports every iteration. They connect through relays
/// of 8 ranks, or each by itself on two persistent connections.
void measure_steady(const Load& load, bool tls, bool relays, std::vector<Row>& rows) {
  constexpr int ranks_of_a_host = 8;
  constexpr double lasts_s = 20;
  std::vector<std::string> more{"--plan-deadlines", "100"};
  if (tls) {
    const std::string key = load.data + "/key.pem", certificate = load.data + "/certificate.pem";
    const std::string make =
        fmt::format("openssl req -x509 -newkey rsa:2048 -nodes -keyout {} -out {} -subj /CN=localhost 2>/dev/null", key,
                    certificate);
    if (std::system(make.c_str()) != 0) return;
    more.insert(more.end(), {"--tls-certificate", certificate, "--tls-key", key});
  }
  const Server server(load.program, fmt::format("{}/steady_{}_{}", load.data, tls, relays), more);
  const int hosts = load.ranks / ranks_of_a_host;
  Clients clients(server.port, relays ? hosts : 2 * load.ranks, tls, true);
  clients.once("PUT", "/v1/profiles/load", pipeline_json(load.csv, 32));
  const std::string job =
      member(clients.once("POST", "/v1/jobs", job_json(load.ranks / load.stages, load.stages, kProfile)), "job");
  const std::string path = "/v1/jobs/" + job;
  for (int rank = 0; rank < load.ranks; ++rank) { clients.once("POST", path + "/ranks", rank_json(rank, load.stages)); }
  const std::string version = member(clients.once("GET", path + "/ranks/0/plan", ""), "version");

  const auto begin = Clock::now();
  const double cpu = server.cpu_s();
  // Iterations end at different moments on different hosts, as in jobs with different start times.
  const auto iteration_of = [&](int rank) {
    return static_cast<int>((since(begin) + iteration_s * (rank / ranks_of_a_host) / hosts) / iteration_s);
  };
  std::vector<int> reported(static_cast<std::size_t>(load.ranks));
  for (int rank = 0; rank < load.ranks; ++rank) reported[rank] = iteration_of(rank);
  std::int64_t reports = 0;
  bool ends = false;
  const std::function<void(int)> exchange = [&](int host) {
    if (ends) return;
    const std::vector<int> ranks = ranks_from(host * ranks_of_a_host, ranks_of_a_host);
    std::vector<std::string> bodies;
    for (const int rank : ranks) {
      if (const int now = iteration_of(rank); now > reported[rank]) {
        bodies.push_back(report_json(rank, reported[rank] = now));
      }
    }
    reports += static_cast<std::int64_t>(bodies.size());
    const std::string text = json_object([&](JsonWriter& f) {
      f.always("wait_s", 3);
      f.always("reports", JsonRaw{bodies_json(job, bodies)});
      f.always("waits", JsonRaw{waits_json(job, ranks, version)});
    });
    clients.ask(host, "POST", "/v1/exchange", text, [&, host](const std::string&) { exchange(host); });
  };
  const std::function<void(int)> wait = [&](int rank) {
    if (ends) return;
    clients.ask(rank, "GET", fmt::format("{}/ranks/{}/plan?have={}&wait_s={}", path, rank, version, poll_s), "",
                [&, rank](const std::string&) { wait(rank); });
  };
  std::vector<bool> reporting(static_cast<std::size_t>(load.ranks));
  if (relays) {
    for (int host = 0; host < hosts; ++host) exchange(host);
  } else {
    for (int rank = 0; rank < load.ranks; ++rank) wait(rank);
  }
  while (since(begin) < lasts_s) {
    clients.take(5);
    for (int rank = 0; !relays && rank < load.ranks; ++rank) {
      if (reporting[rank] || iteration_of(rank) == reported[rank]) continue;
      reporting[rank] = true;
      ++reports;
      clients.ask(load.ranks + rank, "POST", path + "/iterations",
                  report_json(rank, reported[rank] = iteration_of(rank)),
                  [&, rank](const std::string&) { reporting[rank] = false; });
    }
  }
  const std::string what = fmt::format("steady traffic of {} ranks, {}{}", load.ranks,
                                       relays ? "a relay a host" : "two connections a rank", tls ? ", TLS" : "");
  rows.push_back({what + ": server", "cores", (server.cpu_s() - cpu) / since(begin), relays && tls ? 0.1 : 0,
                  relays && tls ? 0.03 : 0});
  rows.push_back({what + ": memory", "MB", server.resident_mb(), 0, 0});
  rows.push_back({what + ": reports", "1/s", static_cast<double>(reports) / since(begin), 0, 0});
  ends = true;
  clients.run();
}

void measure_traffic(const Load& load, std::vector<Row>& rows) {
  measure_steady(load, true, true, rows);
  measure_steady(load, false, false, rows);
  Load few = load;  // the client keeps two connections a rank, and file descriptors are limited
  few.ranks = 2048;
  measure_steady(few, true, false, rows);
}

/// Ranks on hosts of 8, each host with a relay: one connection that registers and waits for all of them.
void measure_hosts_of(const Load& load, int hosts, const std::map<std::string, std::pair<double, double>>& bounds,
                      std::vector<Row>& rows) {
  constexpr int ranks_of_a_host = 8;
  const int ranks = hosts * ranks_of_a_host;
  const auto row = [&](const std::string& what, const std::string& unit, double value) {
    const auto bound = bounds.find(what);
    rows.push_back({fmt::format("{} ranks, a relay on each of {} hosts: {}", ranks, hosts, what), unit, value,
                    bound == bounds.end() ? 0 : bound->second.first, bound == bounds.end() ? 0 : bound->second.second});
  };
  const Server server(load.program, fmt::format("{}/hosts{}", load.data, hosts), {"--plan-deadlines", "100"});
  Clients clients(server.port, hosts);
  clients.once("PUT", "/v1/profiles/load", pipeline_json(load.csv, 32));
  const auto new_job = [&](int dp) {
    return member(clients.once("POST", "/v1/jobs", job_json(dp, load.stages, kProfile)), "job");
  };
  const std::string first = new_job(1);  // so that the profile is characterized
  for (int rank = 0; rank < load.stages; ++rank) {
    clients.once("POST", "/v1/jobs/" + first + "/ranks", rank_json(rank, load.stages));
  }
  clients.once("GET", "/v1/jobs/" + first + "/ranks/0/plan", "");
  const std::string job = new_job(ranks / load.stages);
  const std::string path = "/v1/jobs/" + job + "/ranks";
  const double cpu = server.cpu_s();
  const auto begin = Clock::now();
  int planned = 0, asked_again = 0;
  std::string version;
  const auto plans_in = [&](const std::string& answer) {
    constexpr std::string_view plan = "\\\"version\\\":";
    int count = 0;
    for (std::size_t at = 0; (at = answer.find(plan, at)) != std::string::npos; at += plan.size(), ++count) {
      version = answer.substr(at + plan.size(), answer.find(',', at) - at - plan.size());
    }
    planned += count;
    return count;
  };
  for (int host = 0; host < hosts; ++host) {
    const int first_rank = host * ranks_of_a_host;
    std::vector<std::string> bodies;
    for (const int rank : ranks_from(first_rank, ranks_of_a_host)) bodies.push_back(rank_json(rank, load.stages));
    const std::string text = json_object([&](JsonWriter& f) {
      f.always("wait_s", 0);
      f.always("ranks", JsonRaw{bodies_json(job, bodies)});
    });
    clients.ask(host, "POST", "/v1/exchange", text, [&, host, first_rank](const std::string& answer) {
      // The first ones may register before the job has its plan.
      const int missing = ranks_of_a_host - plans_in(answer);
      if (missing == 0) return;
      asked_again += missing;
      clients.ask(host, "POST", "/v1/exchange", exchange_json(job, first_rank, missing, "0"), plans_in);
    });
  }
  clients.run();
  if (planned != ranks) fail(fmt::format("{} of {} ranks got a plan", planned, ranks));
  row("ranks that had to ask again for a plan", "", asked_again);
  row("register and get plans, last of them", "s", since(begin));
  row("register and get plans, server CPU", "s", server.cpu_s() - cpu);
  int served = 0;
  double last = 0;
  Clock::time_point notice;
  for (int host = 0; host < hosts; ++host) {
    clients.ask(host, "POST", "/v1/exchange", exchange_json(job, host * ranks_of_a_host, ranks_of_a_host, version),
                [&](const std::string& answer) {
                  for (std::size_t at = 0; (at = answer.find("\"wait\":", at)) != std::string::npos; ++at) ++served;
                  last = since(notice);
                });
  }
  Clients other(server.port, 1);
  await_waiting(other, ranks);
  row("memory, all of them waiting", "MB", server.resident_mb());
  notice = Clock::now();
  other.once("POST", "/v1/jobs/" + job + "/stragglers", straggler_json(0, 1.1));
  clients.run();
  if (served != ranks) fail(fmt::format("{} of {} ranks got the new plan", served, ranks));
  row("notice to the last one's plan", "s", last);
}

void measure_hosts(const Load& load, std::vector<Row>& rows) {
  measure_hosts_of(load, load.ranks / 8,
                   {{"register and get plans, last of them", {0.5, 0.2}},
                    {"register and get plans, server CPU", {0.3, 0.15}},
                    {"notice to the last one's plan", {0.1, 0.05}}},
                   rows);
  measure_hosts_of(load, 12500,
                   {{"memory, all of them waiting", {300, 150}}, {"notice to the last one's plan", {3, 1}}}, rows);
}

/// From the start of the process until it prints its address, with 10,000 jobs of 10 events each in its database.
void measure_start(const Load& load, std::vector<Row>& rows) {
  constexpr int jobs = 10000;
  const std::string data = load.data + "/start";
  {
    const Server server(load.program, data, {"--plan-deadlines", "100"});
    Clients clients(server.port, 500);
    clients.once("PUT", "/v1/profiles/load", pipeline_json(load.csv, 32));
    for (int first = 0; first < jobs; first += 500) {
      for (int i = 0; i < 500; ++i) {
        clients.ask(i, "POST", "/v1/jobs", job_json(1, load.stages, kProfile), [&, i](const std::string& answer) {
          const std::string path = "/v1/jobs/" + member(answer, "job") + "/ranks";
          clients.ask(i, "POST", path, rank_json(0, load.stages), [&, i, path](const std::string&) {
            clients.ask(i, "POST", path, rank_json(1, load.stages), [](const std::string&) {});
          });
        });
      }
      clients.run();
    }
  }
  const auto begin = Clock::now();
  const Server server(load.program, data, {});
  Clients one(server.port, 1);
  one.once("GET", "/readyz", "");
  rows.push_back({"start with 10,000 stored jobs until ready", "s", since(begin), 3, 0.5});
  rows.push_back({"start: server CPU", "s", server.cpu_s(), 0, 0});
}

}  // namespace
}  // namespace perseus::bench

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: server_load PERSEUS PROFILE.csv [RANKS] [--readers] [--json]\n");
    return 64;
  }
  using namespace perseus::bench;
  Load load{argv[1], "", argc > 3 && argv[3][0] != '-' ? std::atoi(argv[3]) : 8192, 0,
            (std::filesystem::temp_directory_path() / "perseus_load_XXXXXX").string()};
  bool json = false;
  std::string only;
  for (int i = 3; i < argc; ++i) {
    json = json || std::strcmp(argv[i], "--json") == 0;
    if (std::strcmp(argv[i], "--only") == 0 && i + 1 < argc) only = argv[i + 1];
  }
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  std::ifstream file(argv[2]);
  std::stringstream csv;
  csv << file.rdbuf();
  load.csv = csv.str();
  for (std::string line; std::getline(csv, line);) load.stages = std::max(load.stages, std::atoi(line.c_str()) + 1);

  if (mkdtemp(load.data.data()) == nullptr) fail("mkdtemp");
  std::vector<Row> rows;
  const std::map<std::string, void (*)(const Load&, std::vector<Row>&)> parts{
      {"serving", measure_serving}, {"stall", measure_stall},     {"start", measure_start}, {"hosts", measure_hosts},
      {"traffic", measure_traffic}, {"readers", measure_readers}, {"zeus", measure_zeus}};
  for (const char* part : {"serving", "stall", "start", "hosts", "traffic", "readers", "zeus"}) {
    if (!only.empty() && only != part) continue;
    const std::size_t before = rows.size();
    parts.at(part)(load, rows);
    for (std::size_t i = before; i < rows.size(); ++i) {
      fmt::print(stderr, "server_load: {}: {:.3g} {}\n", rows[i].what, rows[i].value, rows[i].unit);
    }
  }
  std::filesystem::remove_all(load.data);
  bool met = true;
  for (const Row& row : rows) met = met && (row.must == 0 || row.value <= row.must);
  if (json) {
    const std::string text = perseus::json_object([&](perseus::JsonWriter& f) {
      f.always("ranks", load.ranks);
      f.always("rows", rows);
    });
    fmt::print("{}\n", text);
  } else {
    fmt::print("| {} ranks | measured | must | aim |\n| --- | --- | --- | --- |\n", load.ranks);
    for (const Row& row : rows) {
      fmt::print("| {} | {:.3g} {} | ", row.what, row.value, row.unit);
      row.must == 0 ? fmt::print("| |\n") : fmt::print("{:.3g} | {:.3g} |\n", row.must, row.aim);
    }
  }
  return met ? 0 : 1;
}
