// Reads, creates and replaces reports on a utility's server.
//
// Problem: a token with the scope of reports may be refused, and then no list of events may fail for it.
// Input:   a client with a token of its own, of the scope of reports.
// Errors:  those of the client.
// Cost:    a call per report, one per page of a list.
// Threads: one; blocks.
// Source:  OpenADR 3.1.0, /reports.
#pragma once

#include <string>
#include <vector>

#include "server/openadr/event_reporter.h"
#include "server/openadr/vtn_client.h"

namespace perseus::openadr {

class VtnReports final : public ReportReceiver {
 public:
  /// `client` must outlive it.
  explicit VtnReports(VtnClient& client) : client_(client) {}
  Result<std::vector<StoredReport>> reports(const std::string& event, const std::string& client_name) override;
  Status create(const std::string& report) override;
  Status replace(const std::string& id, const std::string& report) override;
  [[nodiscard]] double asked_wait_s() const override { return client_.asked_wait_s(); }

 private:
  VtnClient& client_;
};

}  // namespace perseus::openadr
