#include "zeusd_stand_in.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <regex>

namespace perseus::device {
namespace {

std::string http(int status, const std::string& body = {}) {
  return fmt::format("HTTP/1.1 {} x\r\ncontent-length: {}\r\ncontent-type: application/json\r\n\r\n{}", status,
                     body.size(), body);
}

std::map<std::string, std::string> parameters_of(const std::string& query) {
  std::map<std::string, std::string> parameters;
  static const std::regex each("([^&=]+)=([^&]*)");
  for (std::sregex_iterator i(query.begin(), query.end(), each), end; i != end; ++i) parameters[(*i)[1]] = (*i)[2];
  return parameters;
}

std::map<std::string, std::string> members_of(const std::string& json) {
  std::map<std::string, std::string> members;
  static const std::regex each("\"([a-z_]+)\":([a-z0-9]+)");
  for (std::sregex_iterator i(json.begin(), json.end(), each), end; i != end; ++i) members[(*i)[1]] = (*i)[2];
  return members;
}

std::size_t body_size_of(const std::string& head) {
  static const std::regex length("Content-Length: ([0-9]+)");
  std::smatch found;
  return std::regex_search(head, found, length) ? std::stoul(found[1]) : 0;
}

}  // namespace

ZeusdStandIn::ZeusdStandIn(const std::string& socket_path, const std::vector<std::string>& gpu_files, Habits habits)
    : habits_(std::move(habits)) {
  for (const std::string& file : gpu_files) {
    auto driver = simulated_gpu::SimulatedDriver::attach(file);
    PERSEUS_CHECK(driver.ok(), "the stand-in's GPU");
    gpus_.push_back(std::move(*driver));
  }
  listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  PERSEUS_CHECK(socket_path.size() < sizeof address.sun_path, "the stand-in's path is too long");
  std::ranges::copy(socket_path, address.sun_path);
  unlink(socket_path.c_str());
  PERSEUS_CHECK(
      bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 && listen(listener_, 8) == 0,
      "the stand-in cannot listen");
  thread_ = std::thread([this] { serve(); });
}

ZeusdStandIn::~ZeusdStandIn() {
  stopping_ = true;
  shutdown(listener_, SHUT_RDWR);
  thread_.join();
  close(listener_);
}

std::vector<std::string> ZeusdStandIn::requests() {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void ZeusdStandIn::set_habits(Habits habits) {
  const std::lock_guard lock(mutex_);
  habits_ = std::move(habits);
}

void ZeusdStandIn::serve() {
  std::vector<std::thread> connected;
  while (!stopping_) {
    const int socket = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    ++connections_;
    connected.emplace_back([this, socket] {
      serve_connection(socket);
      close(socket);
    });
  }
  for (std::thread& serving : connected) serving.join();
}

void ZeusdStandIn::serve_connection(int socket) {
  std::string text;
  int served = 0;
  while (!stopping_) {
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos || text.size() < end + 4 + body_size_of(text)) {
      pollfd polled{socket, POLLIN, 0};
      constexpr int look_whether_to_stop_ms = 20;
      if (poll(&polled, 1, look_whether_to_stop_ms) == 0) continue;
      std::array<char, 4096> bytes;
      const ssize_t got = recv(socket, bytes.data(), bytes.size(), 0);
      if (got <= 0) return;
      text.append(bytes.data(), static_cast<std::size_t>(got));
      continue;
    }
    std::string reply;
    int most = 0;
    {
      const std::lock_guard lock(mutex_);
      reply = answer(text.substr(0, end + 2), text.substr(end + 4));
      most = habits_.requests_a_connection;
    }
    text.clear();  // the client sends one request at a time
    if (!reply.empty()) send(socket, reply.data(), reply.size(), MSG_NOSIGNAL);
    if (++served == most) return;
  }
}

std::string ZeusdStandIn::answer(const std::string& head, const std::string& body) {
  static const std::regex line("^([A-Z]+) ([^ ?]+)[?]?([^ ]*) HTTP/1\\.1\r\n");
  std::smatch parts;
  if (!std::regex_search(head, parts, line)) return http(400);
  const std::string method = parts[1], path = parts[2], query = parts[3];
  requests_.push_back(method + " " + path + (query.empty() ? "" : "?" + query) + (body.empty() ? "" : " " + body));
  if (habits_.silent) return {};
  if (!habits_.nonsense.empty()) return habits_.nonsense;
  if (path == "/discover") {
    if (habits_.older) return http(404);
    std::vector<std::string> gpus;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      gpus.push_back(fmt::format(R"({{"id":{},"name":"{}","pci_address":"{}","cumulative_energy_available":true}})", i,
                                 habits_.name.empty() ? gpus_[i]->name() : habits_.name,
                                 habits_.pci.empty() ? gpus_[i]->pci_bus_id() : habits_.pci.at(i)));
    }
    return http(200,
                fmt::format(R"({{"gpus":[{}],"cpus":[],"enabled_api_groups":[{}"gpu-read"],"auth_required":{}}})",
                            fmt::join(gpus, ","), habits_.controls ? R"("gpu-control",)" : "", !habits_.token.empty()));
  }
  if (!habits_.token.empty() && head.find("Authorization: Bearer " + habits_.token + "\r\n") == std::string::npos) {
    return http(401, R"({"error":"invalid token"})");
  }
  if (method == "GET") return reading(path, query);
  if (habits_.failure != 0) return http(habits_.failure, R"({"errors":{"0":"the driver says no"}})");
  return command(path, query, body);
}

std::string ZeusdStandIn::reading(const std::string& path, const std::string& query) {
  const std::string id = parameters_of(query)["gpu_ids"];
  if (id.empty() || std::stoul(id) >= gpus_.size()) return http(400, R"({"error":"no such GPU"})");
  simulated_gpu::SimulatedDriver& gpu = *gpus_[std::stoul(id)];
  const auto milli = [](double value) { return std::llround(value * 1000); };
  const auto limit = [&](Watts watts) { return habits_.unknown_limits ? 1271310319 : milli(watts.value()); };
  if (path == "/gpu/get_cumulative_energy") {
    return http(200, fmt::format(R"({{"{}":{{"energy_mj":{}}}}})", id, milli(gpu.counter().value())));
  }
  if (path == "/gpu/get_power") {
    return http(200, fmt::format(R"({{"timestamp_ms":1,"power_mw":{{"{}":{}}}}})", id, milli(gpu.power().value())));
  }
  if (path == "/gpu/get_power_limit") {
    return http(200, fmt::format(R"({{"{}":{{"power_limit_mw":{}}}}})", id, limit(gpu.power_limit())));
  }
  if (path != "/gpu/get_power_limit_constraints") return http(404);
  const auto [least, most] = gpu.power_limit_range();
  return http(200, fmt::format(R"({{"{}":{{"min_power_limit_mw":{},"max_power_limit_mw":{}}}}})", id, limit(least),
                               limit(most)));
}

std::string ZeusdStandIn::command(const std::string& path, const std::string& query, const std::string& body) {
  std::string name, id;
  std::map<std::string, std::string> parameters;
  std::smatch parts;
  static const std::regex older("^/gpu/([0-9]+)/([a-z_]+)$"), newer("^/gpu/([a-z_]+)$");
  if (habits_.older) {
    if (!std::regex_match(path, parts, older) || !query.empty()) return http(404);
    id = parts[1];
    name = parts[2];
    parameters = members_of(body);
  } else {
    if (!std::regex_match(path, parts, newer) || !body.empty()) return http(400, R"({"error":"body"})");
    name = parts[1];
    parameters = parameters_of(query);
    id = parameters["gpu_ids"];
    parameters.erase("gpu_ids");
  }
  const bool sets = name == "set_gpu_locked_clocks";
  if (!sets && !name.starts_with("reset_")) return http(404);
  if (!sets && habits_.amd != (name == "reset_locked_clocks")) {
    return http(400, R"({"errors":{"0":"AMD GPUs cannot reset a single clock domain"}})");
  }
  for (const auto& [key, value] : parameters) {
    const bool known = key == "block" || (sets && (key == "min_clock_mhz" || key == "max_clock_mhz"));
    if (!known) return http(400, fmt::format(R"({{"error":"unknown parameter {}"}})", key));
  }
  if (id.empty() || std::stoul(id) >= gpus_.size()) return http(400, R"({"error":"no such GPU"})");
  if (!parameters.contains("block") || (sets && parameters.size() != 3)) { return http(400, R"({"error":"missing"})"); }
  simulated_gpu::SimulatedDriver& gpu = *gpus_[std::stoul(id)];
  if (sets && habits_.refuses_maximum) {
    gpu.lock_clocks(gpu.clocks().back(), gpu.clocks().front());
    return http(400, fmt::format(R"({{"errors":{{"{}":"AMDSMI error 2"}}}})", id));
  }
  const int code = sets ? gpu.lock_clocks(Megahertz(std::stoi(parameters["min_clock_mhz"])),
                                          Megahertz(std::stoi(parameters["max_clock_mhz"])))
                        : gpu.unlock_clocks();
  if (code == 0 || parameters["block"] == "false") return http(200);
  return http(code == 2 ? 400 : 500, fmt::format(R"({{"errors":{{"{}":"NVML {}"}}}})", id, code));
}

}  // namespace perseus::device
