#include "server/power/site_documents.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "server/live/registration_checks.h"

namespace perseus::power {
namespace {

constexpr const char* kDocumentKey = "site/document";
constexpr std::size_t kMostBytes = 256;

Status check_name(const std::string& what, const std::string& name) {
  if (name.find_first_not_of(' ') == std::string::npos) {
    return Error{ErrorCode::usage, fmt::format("{}: blank; allowed: a name", what)};
  }
  return check_text(what, name, kMostBytes);
}

/// The first name that hides something, is blank, or stands twice. A stored document is read without it.
Status check_site_names(const jobs::SiteDocument& document) {
  if (Status named = check_text("site: name", document.site.name, kMostBytes); !named) return named;
  for (std::size_t d = 0; d < document.site.domains.size(); ++d) {
    Status named = check_name(fmt::format("site: domains[{}].name", d), document.site.domains[d].name);
    if (!named) return named;
  }
  std::set<std::string> hosts, prefixes;
  for (std::size_t h = 0; h < document.hosts.size(); ++h) {
    const jobs::HostRule& rule = document.hosts[h];
    const bool exact = rule.prefix.empty();
    const std::string& name = exact ? rule.host : rule.prefix;
    const std::string what = fmt::format("site: hosts[{}].{}", h, exact ? "host" : "prefix");
    if (Status named = check_name(what, name); !named) return named;
    if (!(exact ? hosts : prefixes).insert(name).second) {
      return Error{ErrorCode::usage, fmt::format("{}: '{}' appears twice", what, name)};
    }
  }
  return Ok{};
}

}  // namespace

Error no_site() {
  return {ErrorCode::not_found, "this server has no site: set one with perseus site set FILE.toml or PUT /v1/site"};
}

Status SiteDocuments::open(store::Store& from) {
  const auto text = from.blob(kDocumentKey);
  if (!text) return text.error();
  if (!*text) return Ok{};
  auto document = jobs::parse_site_document(**text, "the stored site");
  if (!document) return document.error();
  apply(*std::move(document), **text);
  return Ok{};
}

void SiteDocuments::apply(std::optional<jobs::SiteDocument> document, std::string text) {
  document_ = std::move(document);
  text_ = std::move(text);
  user_.document_applied();
}

void SiteDocuments::changed_to(std::optional<jobs::SiteDocument> document, std::string text, const std::string& by) {
  const std::optional<jobs::SiteDocument> before = document_;
  apply(std::move(document), std::move(text));
  user_.document_changed(before ? &*before : nullptr, current(), by);
}

void SiteDocuments::set(jobs::SiteDocument document, std::optional<std::string> expected, work::Done<Ok> done,
                        const std::string& by) {
  if (const Status names = check_site_names(document); !names) return done(names.error());
  turns_.add(
      [this, document = std::move(document), expected = std::move(expected), by](const work::Done<Ok>& ended) {
        const bool same = !expected || (document_ && (*expected == "*" || *expected == jobs::site_tag(text_)));
        if (same) return put(document, by, ended);
        ended(Error{ErrorCode::conflict, "the site is not the one of If-Match any more: read it again"});
      },
      std::move(done));
}

void SiteDocuments::put(const jobs::SiteDocument& document, const std::string& by, work::Done<Ok> done) {
  std::string text = jobs::format_site_document(document);
  store::Blob blob{kDocumentKey, text};
  store_.put_blob(std::move(blob),
                  [this, document, by, text = std::move(text), done = std::move(done)](const Result<Ok>& put) {
                    if (put) changed_to(document, text, by);
                    done(put);
                  });
}

void SiteDocuments::clear(work::Done<Ok> done, const std::string& by) {
  const auto change = [this, by](const work::Done<Ok>& ended) { remove(by, ended); };
  turns_.add(change, std::move(done));
}

void SiteDocuments::remove(const std::string& by, work::Done<Ok> done) {
  if (!document_) return done(no_site());
  store_.remove_blob(kDocumentKey, [this, by, done = std::move(done)](const Result<Ok>& result) {
    if (result) changed_to(std::nullopt, "", by);
    done(result);
  });
}

Result<std::string> SiteDocuments::text() const {
  return document_ ? Result<std::string>(text_) : Result<std::string>(no_site());
}

}  // namespace perseus::power
