// Answers the reports that events ask for: what a domain has drawn, interval by interval.
//
// Problem: an answer of the utility's server may be lost, and this process may be killed at any moment; a report must
//          neither be missing nor be there twice, and nothing of it may keep limits from being followed.
// Method:  a report has a name that follows from its event, descriptor and first interval. Before it is sent, the
//          server's reports of that event are read: one with this name and these intervals is the report, one with
//          other intervals (the event has changed since) is replaced. After a restart only the last due report of each
//          descriptor is looked for, as OpenADR wants it (User Guide, 7.5).
// Input:   the known events after each poll; powers of the domain, which are complete kLater_s after a step.
// Output:  reports in order of time per descriptor, at most kMostAttempts per call and none after the first that fails;
//          those that fail are tried again after 1 min to 1 h.
// Errors:  are lines for the log, each once until it changes; what is not reported has one line per descriptor.
// Cost:    per report: powers, one list, one call. Nothing while none is due.
// Threads: one; blocks in the receiver and in `powers`, each call up to its time-out.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/openadr/report_text.h"
#include "server/openadr/watt_steps.h"

namespace perseus::openadr {

/// The utility's server, or a test. Errors: unavailable, with the call and the reason.
class ReportReceiver {
 public:
  ReportReceiver() = default;
  ReportReceiver(const ReportReceiver&) = delete;
  ReportReceiver& operator=(const ReportReceiver&) = delete;
  virtual ~ReportReceiver() = default;
  virtual Result<std::vector<StoredReport>> reports(const std::string& event, const std::string& client_name) = 0;
  virtual Status create(const std::string& report) = 0;
  virtual Status replace(const std::string& id, const std::string& report) = 0;
  /// After an error: how long the server asks to wait before the next call; 0: it does not say.
  [[nodiscard]] virtual double asked_wait_s() const { return 0; }
};

/// The server that has the powers, and the process that reports.
class ReporterHost {
 public:
  /// Mean powers of the domain within a time, by start.
  virtual Result<std::vector<DrawnStep>> powers(double from_s, double to_s) = 0;
  virtual void log(const std::string& line) = 0;

 protected:
  ~ReporterHost() = default;
};

struct ReporterParts {
  ReportReceiver* receiver = nullptr;
  ReporterHost* host = nullptr;
  const Clock* unstepped = nullptr;  ///< of retries
};

struct ReporterOptions {
  ReportAuthor author;
  std::string seed;                  ///< of random shifts, as for the events
  std::vector<std::string> targets;  ///< of this client; a descriptor for others is not answered
};

class EventReporter {
 public:
  static constexpr double kLater_s = 70;  ///< the server writes a minute when it is over
  static constexpr int kMostAttempts = 4;

  EventReporter(ReporterOptions options, ReporterParts parts);
  /// Sends what is due.
  void report(std::span<const SeenEvent> events, double now_s);

 private:
  struct Progress {
    std::int64_t next = -1;             ///< number of the next report; -1: the last due one
    std::vector<ReportInterval> first;  ///< intervals of report 0: others if the event has changed
    int failures = 0;
    double retry_s = 0;
  };
  /// True if it made calls.
  bool advance(const SeenEvent& seen, const ReportRequest& request, Progress& progress, double now_s);
  Status send(const GridEvent& event, const ReportRequest& request, const std::vector<ReportInterval>& intervals);
  [[nodiscard]] bool concerns_us(const ReportRequest& request) const;
  void log_once(const std::string& text);

  ReporterOptions options_;
  ReporterParts parts_;
  std::map<std::string, Progress> progress_;  ///< by event and descriptor
  std::set<std::string> logged_;
  std::string failure_;
};

}  // namespace perseus::openadr
