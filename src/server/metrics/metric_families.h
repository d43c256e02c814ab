// The families of one scrape, each made by the first value of its name.
//
// Threads: plain value.
#pragma once

#include <prometheus/metric_family.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace perseus::metrics {

class MetricFamilies {
 public:
  using Labels = std::vector<prometheus::ClientMetric::Label>;

  template <class Number>
  void gauge(const char* name, const char* help, Number value, Labels labels = {}) {
    metric_of(prometheus::MetricType::Gauge, name, help, std::move(labels)).gauge.value = static_cast<double>(value);
  }
  template <class Number>
  void counter(const char* name, const char* help, Number value, Labels labels = {}) {
    metric_of(prometheus::MetricType::Counter, name, help, std::move(labels)).counter.value =
        static_cast<double>(value);
  }
  void add(prometheus::MetricFamily family) { families_.push_back(std::move(family)); }
  [[nodiscard]] const std::vector<prometheus::MetricFamily>& all() const { return families_; }

 private:
  prometheus::ClientMetric& metric_of(prometheus::MetricType type, const char* name, const char* help, Labels labels) {
    // A job's values come one after the other.
    auto family = std::find_if(families_.rbegin(), families_.rend(), [&](const auto& one) { return one.name == name; });
    if (family == families_.rend()) {
      families_.push_back({name, help, type, {}});
      family = families_.rbegin();
    }
    prometheus::ClientMetric& metric = family->metric.emplace_back();
    metric.label = std::move(labels);
    return metric;
  }

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace perseus::metrics
