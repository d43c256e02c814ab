// The document of the site in the store: the limits that all servers on a database keep.
//
// Problem: several operators and servers change one document; a change may not be lost, and applies only once stored.
// Output:  current(), and calls of `applied` and `removed`.
// Errors:  those of the store. conflict: the document is not the expected one, or another server is changing it.
// Cost:    a claim, a read and a write per change; a read every `site_poll_s`.
// Threads: io thread.
// Source:  docs/decisions/0052.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "server/jobs/site_document.h"
#include "server/service/service_options.h"
#include "server/service/store_access.h"
#include "server/service/store_turns.h"

namespace perseus::service {

class SiteDocuments : public std::enable_shared_from_this<SiteDocuments> {
 public:
  SiteDocuments(const ServiceOptions& options, StoreAccess& store, const Clock& clock);

  /// Reads the document, on this thread: for the start.
  Status open(store::Store& from);
  /// Stores the document before it applies. `expected`: the tag of the document that it replaces (jobs::site_tag()), or
  /// "*" for any; conflict: there is another one, none, or another server is changing it.
  void set(jobs::SiteDocument document, std::optional<std::string> expected, Done<Ok> done, const std::string& by = {});
  /// not_found: there is none.
  void clear(Done<Ok> done, const std::string& by = {});
  void read(Done<std::string> done);
  /// The document of this server now; null: none.
  [[nodiscard]] const jobs::SiteDocument* current() const { return document_ ? &*document_ : nullptr; }

  void tick(double now_s);
  [[nodiscard]] std::optional<double> next_wake() const;

  std::function<void()> applied;            ///< current() is another one, or null. Never empty.
  std::function<void()> removed;            ///< by this server; after `applied`. Never empty.
  std::function<void()> changed_elsewhere;  ///< by another server; after `applied`. May be empty.
  /// This server has stored another document; null: there was, or is, none. May be empty.
  std::function<void(const jobs::SiteDocument* before, const jobs::SiteDocument* after, const std::string& by)> changed;

 private:
  void put(const jobs::SiteDocument& document, const std::string& by, Done<Ok> done);
  void remove(const std::string& by, Done<Ok> done);
  void changed_to(std::optional<jobs::SiteDocument> document, std::string text, const std::string& by);
  void apply(std::optional<jobs::SiteDocument> document, std::string text);

  const ServiceOptions& options_;
  StoreAccess& store_;
  std::shared_ptr<StoreTurns> turns_;  ///< what one has read stays until it has put
  std::optional<jobs::SiteDocument> document_;
  std::string text_;  ///< of the document
  double next_read_s_ = 0;
};

}  // namespace perseus::service
