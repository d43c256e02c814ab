// The text of /metrics in Prometheus' format.
//
// Problem: show how long requests take and, since one thread serves all of them, what occupies that thread.
// Input:   answered requests, spans of the io thread's time by activity, and counts from elsewhere at each scrape.
// Output:  text/plain; version=0.0.4.
// Errors:  none.
// Cost:    a lookup and some 50 ns per observation; the text some microseconds per route.
// Threads: io thread.
// Source:  docs/decisions/0023.
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
#include "server/service/service_counts.h"

namespace perseus::metrics {

class Metrics {
 public:
  void served(const http::ServedRequest& request);
  /// Adds time of the io thread to the activity `what`, which must live as long as this object.
  void on_io_thread(std::string_view what, double seconds);
  /// `version` is the program's; `most_jobs` have series of their own.
  [[nodiscard]] std::string text(const std::string& version, const service::ServiceCounts& service,
                                 const std::optional<http::HttpServerCounts>& http, std::size_t most_jobs) const;

  /// Measures the time until its destruction.
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
  Histograms requests_{"perseus_requests_seconds", "Time from a request to its response, including waits", {}};
  Histograms io_thread_{"perseus_io_thread_seconds", "Time for which one task occupies the I/O thread", {}};
  // The library finds a histogram by the text of its labels, which is too slow for every request.
  std::map<std::pair<std::string_view, int>, prometheus::Histogram*> by_route_;
  std::map<std::string_view, prometheus::Histogram*> by_task_;
};

}  // namespace perseus::metrics
