// Registers this client at a utility's server, for servers that need that before they assign targets to it.
//
// Problem: a server knows a client by its credentials alone; some want an object for it (a VEN), and one for what it
//          controls (a resource), to which the utility gives targets.
// Method:  both are looked up by name and created only if they are not there; a 409 is like finding it.
// Input:   a client with a token of its own, of the scope of registration; the names.
// Errors:  unavailable, with the call and the reason; register_once() may be called again.
// Cost:    two to four calls, once.
// Threads: one; blocks.
// Source:  OpenADR 3.1.0, /vens, /resources; User Guide, section 5.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/openadr/vtn_client.h"

namespace perseus::openadr {

class VenRegistration {
 public:
  /// `client` must outlive it.
  VenRegistration(VtnClient& client, std::string ven, std::string resource)
      : client_(client), ven_(std::move(ven)), resource_(std::move(resource)) {}
  Status register_once();
  [[nodiscard]] bool is_done() const { return done_; }

 private:
  /// The id of an object that the list has, or that is created; empty: another call has created it meanwhile.
  Result<std::string> found_or_made(const std::string& list, const std::string& query, const std::string& name_member,
                                    const std::string& name, const std::string& body);

  VtnClient& client_;
  std::string ven_, resource_;
  bool done_ = false;
};

struct NamedObject {
  std::string id, name;
};
/// Objects of a list that have an id and that name.
Result<std::vector<NamedObject>> parse_named_objects(std::string_view text, const std::string& what,
                                                     std::string_view name_member);
/// An answer of POST.
Result<std::string> parse_object_id(const std::string& text, const std::string& what);

}  // namespace perseus::openadr
