// What /metrics says, in Prometheus' text format.
//
// Problem: how long requests take and, since one thread serves all of them, what holds that thread up.
// Input:   requests that were answered, spans of the io thread's time by what they were spent on, and counts from
//          elsewhere when asked.
// Output:  text/plain; version=0.0.4.
// Errors:  none.
// Cost:    a look-up and some 50 ns per observation; the text some microseconds per route.
// Threads: io thread. Decision: docs/decisions/0023.
#pragma once

#include <prometheus/family.h>
#include <prometheus/histogram.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "io/http/http_server.h"
#include "server/service/service.h"

namespace perseus::routes {

class Metrics {
 public:
  void served(const http::ServedRequest& request);
  /// The io thread was at that for so long. `what` must live as long as this.
  void on_io_thread(std::string_view what, double seconds);
  /// `version` is the program's.
  [[nodiscard]] std::string text(const std::string& version, const service::ServiceCounts& service,
                                 const std::optional<http::HttpServerCounts>& http) const;

  /// Counts the time until its end.
  class IoSpan {
   public:
    IoSpan(Metrics& metrics, std::string_view what) : metrics_(metrics), what_(what) {}
    IoSpan(const IoSpan&) = delete;
    IoSpan& operator=(const IoSpan&) = delete;
    ~IoSpan() {
      metrics_.on_io_thread(what_, std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count());
    }

   private:
    Metrics& metrics_;
    std::string_view what_;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  };

 private:
  using Histograms = prometheus::Family<prometheus::Histogram>;
  Histograms requests_{"perseus_requests_seconds", "Time from a request to its answer, waits included", {}};
  Histograms io_thread_{"perseus_io_thread_seconds", "Spans in which the io thread did nothing else", {}};
  // The library finds a histogram by its labels' texts, which is not for every request.
  std::map<std::pair<std::string_view, int>, prometheus::Histogram*> by_route_;
  std::map<std::string_view, prometheus::Histogram*> by_task_;
};

}  // namespace perseus::routes
