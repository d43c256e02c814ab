// Counts connections per remote address, to limit them.
//
// Input:   an address as text.
// Output:  whether the address may hold one more. An IPv6 address counts with its /64, which belongs to one host, and
//          an IPv4 address mapped into IPv6 as IPv4. Loopback has no limit: ranks behind a proxy or a tunnel on the
//          server's machine all connect from it.
// Errors:  none; text that is not an address counts as it is.
// Cost:    a lookup.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

namespace perseus::http {

/// The text under which an address is counted; empty: loopback, which is not counted.
std::string counted_address(const std::string& address);

class AddressCounts {
 public:
  /// False, without counting, if the address already holds `most`.
  bool take(const std::string& address, std::size_t most);
  void give_back(const std::string& address);

 private:
  std::unordered_map<std::string, std::size_t> held_;  ///< by counted_address()
};

}  // namespace perseus::http
