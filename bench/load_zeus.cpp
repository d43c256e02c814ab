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

/// The same traffic without a server: reads each request, answers a POST at once and each GET when all have come.
void answer_alike(int listening, int gets, const std::string& posted, const std::string& got) {
  const int epoll = epoll_create1(0);
  const auto watch = [&](int fd) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
  };
  watch(listening);
  std::vector<epoll_event> events(256);
  std::vector<char> read(std::size_t{64} << 10U);
  std::vector<int> waiting;
  while (true) {
    const int count = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == listening) {
        watch(accept4(listening, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
      } else if (const ssize_t size = recv(fd, read.data(), read.size(), 0); size <= 0) {
        close(fd);
      } else if (read.front() == 'P') {
        send(fd, posted.data(), posted.size(), MSG_NOSIGNAL);
      } else {
        waiting.push_back(fd);
      }
    }
    if (static_cast<int>(waiting.size()) < gets) continue;
    for (const int fd : waiting) send(fd, got.data(), got.size(), MSG_NOSIGNAL);
    waiting.clear();
  }
}

std::string http_answer(std::size_t length) {
  return fmt::format(
      "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{}",
      length, std::string(length, ' '));
}

}  // namespace

void measure_zeus(const Load& load, std::vector<Row>& rows) {
  const std::string of_ranks = fmt::format("{} Zeus ranks: ", load.ranks);
  std::size_t answer_bytes = 0;
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
        answer_bytes = answer.size();
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
  {
    const Server bare(
        [&](int listening) { answer_alike(listening, load.ranks, http_answer(4), http_answer(answer_bytes)); });
    register_ranks(bare, load, "job", load.ranks, load.ranks / 16, true);
    Clients waiting(bare.port, load.ranks);
    waiting.headers = kHeaders;
    for (int rank = 0; rank < load.ranks; ++rank) {
      waiting.ask(rank, "GET", fmt::format("/schedule/job?rank={}", rank), "", [](const std::string&) {});
    }
    waiting.run();
    rows.push_back({of_ranks + "the same traffic with bare sockets: CPU", "s", bare.cpu_s(), 0, 0});
  }
  const Server server(load.program, load.data + "/zeus_many", {});
  const int many = 12 * load.ranks;
  register_ranks(server, load, new_job(server, zeus_job_json(many, load.stages, "")), many, load.ranks / 16, false);
  rows.push_back({fmt::format("{} Zeus ranks registered: memory", many), "MB", server.resident_mb(), 0, 0});
}

}  // namespace perseus::bench
