// The document of the site in the store: the limits that the server keeps.
//
// Problem: several operators change one document; a change may not be lost, and applies only once stored.
// Output:  current(), and calls of SiteDocumentUser.
// Errors:  those of the store. conflict: the document is not the expected one.
// Cost:    a write per change.
// Threads: io thread.
// Source:  docs/decisions/0052.
#pragma once

#include <optional>
#include <string>

#include "server/jobs/site_document.h"
#include "server/work/store_access.h"
#include "server/work/store_turns.h"

namespace perseus::power {

Error no_site();

class SiteDocumentUser {
 public:
  /// current() is another one, or null.
  virtual void document_applied() = 0;
  /// Another document is stored; null: there was, or is, none.
  virtual void document_changed(const jobs::SiteDocument* before, const jobs::SiteDocument* after,
                                const std::string& by) = 0;

 protected:
  ~SiteDocumentUser() = default;
};

class SiteDocuments {
 public:
  SiteDocuments(work::StoreAccess& store, SiteDocumentUser& user) : store_(store), user_(user) {}

  /// Reads the document, on this thread: for the start.
  Status open(store::Store& from);
  /// Stores the document before it applies. `expected`: the tag of the document that it replaces (jobs::site_tag()), or
  /// "*" for any; conflict: there is another one, or none.
  void set(jobs::SiteDocument document, std::optional<std::string> expected, work::Done<Ok> done,
           const std::string& by = {});
  /// not_found: there is none.
  void clear(work::Done<Ok> done, const std::string& by = {});
  /// not_found: there is none.
  [[nodiscard]] Result<std::string> text() const;
  /// Null: none.
  [[nodiscard]] const jobs::SiteDocument* current() const { return document_ ? &*document_ : nullptr; }

  /// Of the present site.
  [[nodiscard]] bool has(std::string_view domain) const { return document_ && document_->site.has(domain); }

 private:
  void put(const jobs::SiteDocument& document, const std::string& by, work::Done<Ok> done);
  void remove(const std::string& by, work::Done<Ok> done);
  void changed_to(std::optional<jobs::SiteDocument> document, std::string text, const std::string& by);
  void apply(std::optional<jobs::SiteDocument> document, std::string text);

  work::StoreAccess& store_;
  SiteDocumentUser& user_;
  work::StoreTurns turns_;  ///< what one has read stays until it has put
  std::optional<jobs::SiteDocument> document_;
  std::string text_;  ///< of the document
};

}  // namespace perseus::power
