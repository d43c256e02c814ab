// Counts what each remote address holds, to limit it.
//
// Input:   an address as text.
// Output:  whether it may take one more; an IPv6 address counts with its /64, which one host has to itself, and an
//          IPv4 address that is mapped into IPv6 as itself. Loopback has no limit: ranks behind a proxy or a tunnel
//          on the server's machine all come from there.
// Errors:  none; text that is no address counts as it is.
// Cost:    a look-up.
// Threads: one.
#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

namespace perseus::http {

/// The text under which an address is counted; empty: loopback, which is not counted.
std::string counted_address(const std::string& address);

class AddressCounts {
 public:
  /// False, and nothing is counted: the address holds `most` already.
  bool take(const std::string& address, std::size_t most);
  void give_back(const std::string& address);

 private:
  std::unordered_map<std::string, std::size_t> held_;  ///< by counted_address()
};

}  // namespace perseus::http
