// Ranks that speak Zeus's protocol: what 8,192 of them cost from their registration until they have their clocks, and
// the memory of waiting and of registered ranks. Runs against any version of the server, for bench/against.py.
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/json_writer.h"
#include "base/percent_encode.h"
#include "bench/load_connections.h"
#include "bench/load_parts.h"
#include "bench/load_requests.h"

namespace perseus::bench {
namespace {

/// With a name, the job uses the stored profile of that name; without, its ranks wait until it gets a profile.
std::string zeus_job_json(int ranks, int stages, std::string_view metadata) {
  return json_object([&](JsonWriter& f) {
    f.always("job_metadata", metadata);
    f.always("dp_degree", ranks / stages);
    f.always("pp_degree", stages);
    f.always("tp_degree", 1);
    f.always("world_size", ranks);
  });
}

std::string zeus_rank_json(int rank, int stages) {
  std::vector<int> clocks;
  for (int mhz = 1740; mhz >= 210; mhz -= 15) clocks.push_back(mhz);  // those of an A40
  return json_object([&](JsonWriter& f) {
    f.always("rank", rank);
    f.always("dp_rank", rank / stages);
    f.always("pp_rank", rank % stages);
    f.always("tp_rank", 0);
    f.always("available_frequencies", clocks);
  });
}

/// What Zeus's HTTP library sends beside the headers of every client here.
const std::string kHeaders =
    "Accept: */*\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\nUser-Agent: python-httpx/0.27.0\r\n";

std::string new_job(const Server& server, const std::string& body) {
  std::string id = Clients(server.port, 1).once("POST", "/register_job", body);
  std::erase(id, '"');
  return percent_encode(id);
}

/// Registers the ranks, so many at a time. `anew`: each over a connection of its own, as Zeus does; otherwise over the
/// same ones, since a machine has too few ports for 98,304.
void register_ranks(const Server& server, const Load& load, const std::string& job, int ranks, int at_a_time,
                    bool anew) {
  std::optional<Clients> clients;
  for (int first = 0; first < ranks; first += at_a_time) {
    if (anew || !clients) clients.emplace(server.port, at_a_time);
    clients->headers = kHeaders;
    for (int i = 0; i < at_a_time; ++i) {
      clients->ask(i, "POST", "/register_rank/" + job, zeus_rank_json(first + i, load.stages),
                   [](const std::string&) {});
    }
    clients->run();
  }
}

}  // namespace

void measure_zeus(const Load& load, std::vector<Row>& rows) {
  const std::string of_ranks = fmt::format("{} Zeus ranks: ", load.ranks);
  {
    const Server server(load.program, load.data + "/zeus", {"--plan-deadlines", "100"});
    const std::string profile = pipeline_json(load.csv, 32);  // 64 instructions a rank
    Clients one(server.port, 1);
    one.once("PUT", "/v1/profiles/load", profile);
    const std::string first = new_job(server, zeus_job_json(load.stages, load.stages, kProfile));
    register_ranks(server, load, first, load.stages, load.stages, true);
    one.once("GET", "/schedule/" + first + "?rank=0", "");           // so that the profile is characterized
    for (double before_s = -1; server.cpu_s() - before_s > 0.02;) {  // until it plans no more
      before_s = server.cpu_s();
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
    const std::string job = new_job(server, zeus_job_json(load.ranks, load.stages, ""));

    const double begin_s = server.cpu_s(), user_s = server.user_s();
    register_ranks(server, load, job, load.ranks, load.ranks / 16, true);
    const double registered_s = server.cpu_s();
    one.once("GET", "/healthz", "");  // after the server has closed their connections
    const double registered_mb = server.resident_mb();
    Clients waiting(server.port, load.ranks);
    waiting.headers = kHeaders;
    int served = 0;
    for (int rank = 0; rank < load.ranks; ++rank) {
      waiting.ask(rank, "GET", fmt::format("/schedule/{}?rank={}", job, rank), "", [&](const std::string& answer) {
        served += answer.find("\"forward\"") != std::string::npos ? 1 : 0;
      });
    }
    await_waiting(one, load.ranks);
    rows.push_back({of_ranks + "memory, all waiting", "MB", server.resident_mb(), 36, 30});
    rows.push_back({of_ranks + "memory of a waiting rank", "B",
                    (server.resident_mb() - registered_mb) * (1 << 20U) / load.ranks, 1300, 0});
    one.once("PUT", "/v1/jobs/" + job + "/profile", profile);
    waiting.run();
    if (served != load.ranks) fail(fmt::format("{} of {} ranks got clocks", served, load.ranks));
    rows.push_back({of_ranks + "register, wait, get clocks: server CPU", "s", server.cpu_s() - begin_s, 0, 0});
    rows.push_back({of_ranks + "... in the server itself, not the kernel", "s", server.user_s() - user_s, 0, 0});
    rows.push_back({of_ranks + "... to register", "s", registered_s - begin_s, 0, 0});
  }
  const Server server(load.program, load.data + "/zeus_many", {});
  const int many = 12 * load.ranks;
  register_ranks(server, load, new_job(server, zeus_job_json(many, load.stages, "")), many, load.ranks / 16, false);
  rows.push_back({fmt::format("{} Zeus ranks registered: memory", many), "MB", server.resident_mb(), 0, 0});
}

}  // namespace perseus::bench
