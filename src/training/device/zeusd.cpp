#include "training/device/zeusd.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstdlib>
#include <fstream>
#include <iomanip>

#include "base/json_writer.h"
#include "training/device/amdgpu_files.h"

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

std::string zeusd_token() {
  const std::string file = variable("ZEUSD_TOKEN_FILE");
  if (file.empty()) return variable("ZEUSD_TOKEN");
  std::string token;
  constexpr int longest = 8192;
  std::ifstream(file) >> std::setw(longest) >> token;
  return token;
}

std::unique_ptr<UnixHttp> connection() {
  return std::make_unique<UnixHttp>(zeusd_socket(), zeusd_token(), kAnswerLimit);
}

DeviceError no_permission(const UnixHttp& http, std::string_view why) {
  return {DeviceFault::no_permission, fmt::format("zeusd at {} {}", http.path(), why)};
}

constexpr std::string_view kNoControl = "does not offer gpu-control";
constexpr std::string_view kNoToken = "requires a token: set ZEUSD_TOKEN_FILE or ZEUSD_TOKEN";

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
    const json::value* name = gpu->if_contains("name");
    offer.gpus.push_back({static_cast<int>(id->get_int64()), *bus_id,
                          name != nullptr && name->is_string() ? std::string(name->get_string()) : ""});
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

DeviceResult<ZeusdOffer> ask_zeusd() {
  const auto http = connection();
  const auto answer = http->call("GET", "/discover");
  if (!answer) return DeviceError{answer.error().fault, "no zeusd: " + answer.error().message};
  if (answer->status != kOk) return refusal(http->path(), "/discover", *answer, false);
  return parse_zeusd_offer(answer->body);
}

DeviceResult<Zeusd> Zeusd::open(const std::string& pci_bus_id, int nvml_index) {
  auto http = connection();
  const auto answer = http->call("GET", "/discover");
  if (!answer) return DeviceError{answer.error().fault, "no zeusd: " + answer.error().message};
  if (answer->status == kNotFound) {
    if (nvml_index < 0) return DeviceError{DeviceFault::lost, "zeusd is old and NVML does not give the GPU's index"};
    return Zeusd(std::move(http), {nvml_index, {}, {}}, true);
  }
  if (answer->status != kOk) return refusal(http->path(), "/discover", *answer, false);
  const auto offer = parse_zeusd_offer(answer->body);
  if (!offer) return offer.error();
  if (!offer->controls) return no_permission(*http, kNoControl);
  if (offer->needs_token && http->token().empty()) return no_permission(*http, kNoToken);
  const auto wanted = parse_pci_bus_id(pci_bus_id);
  const auto found = std::ranges::find_if(offer->gpus, [&](const auto& gpu) { return gpu.pci == wanted; });
  if (found == offer->gpus.end()) {
    return DeviceError{DeviceFault::lost, fmt::format("zeusd at {} does not list GPU {}", http->path(), pci_bus_id)};
  }
  return Zeusd(std::move(http), *found, false);
}

DeviceResult<Zeusd> Zeusd::open_amd(const std::string& which) {
  const auto offer = ask_zeusd();
  if (!offer) return offer.error();
  auto http = connection();
  if (offer->needs_token && http->token().empty()) return no_permission(*http, kNoToken);
  const auto wanted = parse_pci_bus_id(which);
  const auto found = std::ranges::find_if(offer->gpus, [&](const auto& gpu) {
    return (wanted ? gpu.pci == *wanted : std::to_string(gpu.id) == which) && is_amd_gpu(gpu.pci);
  });
  if (found == offer->gpus.end()) {
    return DeviceError{DeviceFault::lost, fmt::format("zeusd at {} lists no AMD GPU {}", http->path(), which)};
  }
  Zeusd zeusd(std::move(http), *found, false);
  zeusd.amd_ = true;
  zeusd.controls_ = offer->controls;
  zeusd.partition_ =
      std::ranges::count_if(offer->gpus, [&](const auto& gpu) { return gpu.pci.same_card(found->pci); }) > 1;
  // The driver gives the energy of both dies to the even one.
  if (found->name.find("MI250") != std::string::npos) zeusd.counted_with_ -= found->id % 2;
  return zeusd;
}

/// Tokens expire: a refused one is read again from where it came.
DeviceResult<UnixHttpAnswer> Zeusd::call(std::string_view method, const std::string& target, const std::string& json) {
  auto answer = http_->call(method, target, json);
  if (!answer || answer->status != kUnauthorized) return answer;
  std::string token = zeusd_token();
  if (token.empty() || token == http_->token()) {
    const bool from_file = !variable("ZEUSD_TOKEN_FILE").empty();
    answer->body += from_file ? "; write a valid token into the file of ZEUSD_TOKEN_FILE"
                              : "; a token that expires belongs into a file: set ZEUSD_TOKEN_FILE";
    return answer;
  }
  http_->set_token(std::move(token));
  return http_->call(method, target, json);
}

DeviceStatus Zeusd::command(std::string_view name, Megahertz lowest, Megahertz clock, bool block) {
  std::string target, body;
  const bool sets_clock = clock != Megahertz(0);
  if (older_) {
    target = fmt::format("/gpu/{}/{}", gpu_.id, name);
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
    target = fmt::format("/gpu/{}?gpu_ids={}{}&block={}", name, gpu_.id, clocks, block);
  }
  const auto answer = call("POST", target, body);
  if (!answer) return answer.error();
  if (answer->status != kOk) return refusal(http_->path(), target, *answer, sets_clock);
  return Ok{};
}

DeviceStatus Zeusd::lock_clocks(Megahertz lowest, Megahertz highest) {
  if (lowest <= Megahertz(0)) {
    return DeviceError{DeviceFault::bad_clock, fmt::format("zeusd: {} MHz is not a clock of this GPU", lowest.value())};
  }
  if (!controls_) return no_permission(*http_, kNoControl);
  const bool block = locks_ % kBlockingEvery == 0;
  DeviceStatus done = command("set_gpu_locked_clocks", lowest, highest, block);
  locks_ = done ? locks_ + 1 : 0;  // after a failure, detect the next one at once
  if (!done && amd_) {
    // AMD's two limits are set one after the other: where the second is refused, the first must not stay.
    if (const DeviceStatus undone = unlock_clock(); !undone) {
      return DeviceError{DeviceFault::busy, fmt::format("{}; a part of the limit may have stayed: {}",
                                                        done.error().message, undone.error().message)};
    }
  }
  return done;
}

DeviceStatus Zeusd::unlock_clock() {
  locks_ = 0;
  return command(amd_ ? "reset_locked_clocks" : "reset_gpu_locked_clocks", Megahertz(0), Megahertz(0), true);
}

DeviceStatus Zeusd::limit_clock(Megahertz lowest, Megahertz highest) {
  locks_ = 0;
  return lock_clocks(lowest, highest);
}

DeviceResult<double> Zeusd::read(std::string_view name, std::initializer_list<std::string_view> keys) {
  const std::string target = fmt::format("/gpu/{}?gpu_ids={}", name, gpu_.id), id = std::to_string(gpu_.id);
  const auto answer = call("GET", target);
  if (!answer) return answer.error();
  if (answer->status != kOk) return refusal(http_->path(), target, *answer, false);
  boost::system::error_code problem;
  const json::value all = json::parse(answer->body, problem);
  const json::value* value = problem ? nullptr : &all;
  for (const std::string_view key : keys) {
    const json::object* object = value == nullptr ? nullptr : value->if_object();
    const std::string_view wanted = key.empty() ? id : key;
    value = object == nullptr ? nullptr : object->if_contains(json::string_view(wanted.data(), wanted.size()));
  }
  if (value == nullptr || !value->is_number()) {
    return DeviceError{DeviceFault::busy, fmt::format("zeusd at {}: {}: no number", http_->path(), target)};
  }
  return value->to_number<double>();
}

}  // namespace perseus::device
