#include "io/http/address_counts.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

namespace perseus::http {

std::string counted_address(const std::string& address) {
  namespace ip = boost::asio::ip;
  boost::system::error_code problem;
  ip::address parsed = ip::make_address(address, problem);
  if (problem) return address;
  if (parsed.is_v6() && parsed.to_v6().is_v4_mapped()) parsed = ip::make_address_v4(ip::v4_mapped, parsed.to_v6());
  if (parsed.is_loopback()) return "";
  if (parsed.is_v4()) return parsed.to_string();
  auto bytes = parsed.to_v6().to_bytes();
  std::fill(bytes.begin() + 8, bytes.end(), static_cast<unsigned char>(0));
  return ip::make_address_v6(bytes).to_string() + "/64";
}

bool AddressCounts::take(const std::string& address, std::size_t most) {
  const std::string key = counted_address(address);
  if (key.empty()) return true;
  const auto found = held_.find(key);
  if (found == held_.end()) {
    if (most == 0) return false;
    held_.emplace(key, 1);
    return true;
  }
  if (found->second >= most) return false;
  ++found->second;
  return true;
}

void AddressCounts::give_back(const std::string& address) {
  const auto found = held_.find(counted_address(address));
  if (found == held_.end()) return;
  if (--found->second == 0) held_.erase(found);
}

}  // namespace perseus::http
