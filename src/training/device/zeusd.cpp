#include "training/device/zeusd.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <cstdlib>

#include "base/json_writer.h"

namespace perseus::device {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kAnswerLimit{10};  // a site may have wrapped commands in sudo
constexpr long kBlockingEvery = 64;
constexpr int kOk = 200, kBadRequest = 400, kUnauthorized = 401, kForbidden = 403, kNotFound = 404;

DeviceError refusal(const std::string& path, const std::string& target, const UnixHttpAnswer& answer, bool sets_clock) {
  DeviceFault fault = DeviceFault::busy;
  switch (answer.status) {
    case kBadRequest:
      fault = sets_clock ? DeviceFault::bad_clock : DeviceFault::not_supported;
      break;
    case kUnauthorized:
    case kForbidden:
      fault = DeviceFault::no_permission;
      break;
    case kNotFound:
      fault = DeviceFault::not_supported;
      break;
    default:
      break;
  }
  std::string words = answer.body.substr(0, 200);
  std::ranges::replace_if(
      words, [](unsigned char c) { return c < ' '; }, ' ');
  return {fault, fmt::format("zeusd at {}: {}: HTTP {} {}", path, target, answer.status, words)};
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

}  // namespace

DeviceResult<ZeusdOffer> parse_zeusd_offer(std::string_view text) {
  const DeviceError none{DeviceFault::busy, "zeusd: /discover does not list its features"};
  boost::system::error_code problem;
  const json::value value = json::parse(json::string_view(text.data(), text.size()), problem);
  const json::object* object = problem ? nullptr : value.if_object();
  const json::value* gpus = object == nullptr ? nullptr : object->if_contains("gpus");
  if (gpus == nullptr || !gpus->is_array()) return none;
  ZeusdOffer offer;
  for (const json::value& entry : gpus->get_array()) {
    const json::object* gpu = entry.if_object();
    const json::value* id = gpu == nullptr ? nullptr : gpu->if_contains("id");
    const json::value* pci = gpu == nullptr ? nullptr : gpu->if_contains("pci_address");
    if (id == nullptr || !id->is_int64() || pci == nullptr || !pci->is_string()) return none;
    constexpr std::int64_t most_id = 1023;
    const auto bus_id = parse_pci_bus_id(std::string_view(pci->get_string().data(), pci->get_string().size()));
    if (id->get_int64() < 0 || id->get_int64() > most_id || !bus_id) return none;
    offer.gpus.push_back({static_cast<int>(id->get_int64()), *bus_id});
  }
  if (const json::value* groups = object->if_contains("enabled_api_groups"); groups != nullptr && groups->is_array()) {
    offer.controls = std::ranges::any_of(groups->get_array(), [](const json::value& group) {
      return group.is_string() && group.get_string() == "gpu-control";
    });
  }
  const json::value* auth = object->if_contains("auth_required");
  offer.needs_token = auth != nullptr && auth->is_bool() && auth->get_bool();
  return offer;
}

std::string zeusd_socket() {
  if (std::string given = variable("ZEUSD_SOCK_PATH"); !given.empty()) return given;
  const std::string usual = "/run/zeusd/zeusd.sock", older = "/var/run/zeusd.sock";
  return access(usual.c_str(), F_OK) != 0 && access(older.c_str(), F_OK) == 0 ? older : usual;
}

DeviceResult<Zeusd> Zeusd::open(const std::string& pci_bus_id, int nvml_index) {
  const std::string token = variable("ZEUSD_TOKEN");
  auto http = std::make_unique<UnixHttp>(zeusd_socket(), token, kAnswerLimit);
  const auto answer = http->call("GET", "/discover");
  if (!answer) return DeviceError{answer.error().fault, "no zeusd: " + answer.error().message};
  if (answer->status == kNotFound) {
    if (nvml_index < 0) return DeviceError{DeviceFault::lost, "zeusd is old and NVML does not give the GPU's index"};
    return Zeusd(std::move(http), nvml_index, true);
  }
  if (answer->status != kOk) return refusal(http->path(), "/discover", *answer, false);
  const auto offer = parse_zeusd_offer(answer->body);
  if (!offer) return offer.error();
  if (!offer->controls) {
    return DeviceError{DeviceFault::no_permission, fmt::format("zeusd at {} does not offer gpu-control", http->path())};
  }
  if (offer->needs_token && token.empty()) {
    return DeviceError{DeviceFault::no_permission,
                       fmt::format("zeusd at {} requires a token: set ZEUSD_TOKEN", http->path())};
  }
  const auto wanted = parse_pci_bus_id(pci_bus_id);
  const auto found = std::ranges::find_if(offer->gpus, [&](const auto& gpu) { return gpu.pci == wanted; });
  if (found == offer->gpus.end()) {
    return DeviceError{DeviceFault::lost, fmt::format("zeusd at {} does not list GPU {}", http->path(), pci_bus_id)};
  }
  return Zeusd(std::move(http), found->id, false);
}

DeviceStatus Zeusd::command(std::string_view name, Megahertz lowest, Megahertz clock, bool block) {
  std::string target, body;
  const bool sets_clock = clock != Megahertz(0);
  if (older_) {
    target = fmt::format("/gpu/{}/{}", id_, name);
    body = json_object([&](JsonWriter& f) {
      if (sets_clock) {
        f.always("min_clock_mhz", lowest);
        f.always("max_clock_mhz", clock);
      }
      f.always("block", block);
    });
  } else {
    const std::string clocks =
        sets_clock ? fmt::format("&min_clock_mhz={}&max_clock_mhz={}", lowest.value(), clock.value()) : "";
    target = fmt::format("/gpu/{}?gpu_ids={}{}&block={}", name, id_, clocks, block);
  }
  const auto answer = http_->call("POST", target, body);
  if (!answer) return answer.error();
  if (answer->status != kOk) return refusal(http_->path(), target, *answer, sets_clock);
  return Ok{};
}

DeviceStatus Zeusd::lock_clock(Megahertz clock) {
  if (clock <= Megahertz(0)) {
    return DeviceError{DeviceFault::bad_clock, fmt::format("zeusd: {} MHz is not a clock of this GPU", clock.value())};
  }
  const bool block = locks_ % kBlockingEvery == 0;
  DeviceStatus done = command("set_gpu_locked_clocks", clock, clock, block);
  locks_ = done ? locks_ + 1 : 0;  // after a failure, detect the next one at once
  return done;
}

DeviceStatus Zeusd::unlock_clock() {
  locks_ = 0;
  return command("reset_gpu_locked_clocks", Megahertz(0), Megahertz(0), true);
}

DeviceStatus Zeusd::set_power_limit(Watts limit) {
  const long milliwatts = std::lround(limit.value() * 1000);
  std::string target = fmt::format("/gpu/set_power_limit?gpu_ids={}&power_limit_mw={}&block=true", id_, milliwatts);
  std::string body;
  if (older_) {
    target = fmt::format("/gpu/{}/set_power_limit", id_);
    body = json_object([&](JsonWriter& f) {
      f.always("power_limit_mw", milliwatts);
      f.always("block", true);
    });
  }
  const auto answer = http_->call("POST", target, body);
  if (!answer) return answer.error();
  if (answer->status != kOk) return refusal(http_->path(), target, *answer, false);
  return Ok{};
}

DeviceStatus Zeusd::limit_clock(Megahertz lowest, Megahertz highest) {
  locks_ = 0;
  return command("set_gpu_locked_clocks", lowest, highest, true);
}

}  // namespace perseus::device
