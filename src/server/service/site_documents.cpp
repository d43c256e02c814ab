#include "server/service/site_documents.h"

#include <utility>

#include "server/service/site_names.h"

namespace perseus::service {
namespace {

constexpr const char* kDocumentKey = "site/document";
constexpr const char* kChange = "site/change";

}  // namespace

SiteDocuments::SiteDocuments(const ServiceOptions& options, StoreAccess& store, const Clock& clock)
    : options_(options),
      store_(store),
      turns_(std::make_shared<StoreTurns>(kChange,
                                          Error{ErrorCode::conflict, "another server is changing the site: try again"},
                                          options, store, clock)) {}

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
  applied();
}

void SiteDocuments::changed_to(std::optional<jobs::SiteDocument> document, std::string text, const std::string& by) {
  const std::optional<jobs::SiteDocument> before = document_;
  apply(std::move(document), std::move(text));
  if (changed) changed(before ? &*before : nullptr, current(), by);
}

void SiteDocuments::set(jobs::SiteDocument document, std::optional<std::string> expected, Done<Ok> done,
                        const std::string& by) {
  if (const Status names = check_site_names(document); !names) return done(names.error());
  const auto change = [weak = weak_from_this(), document = std::move(document), expected = std::move(expected),
                       by](const Done<Ok>& ended) {
    const auto self = weak.lock();
    if (!self) return;
    if (!expected) return self->put(document, by, ended);
    self->read([weak, document, expected, by, ended](const Result<std::string>& there) {
      const auto still = weak.lock();
      if (!still) return;
      if (!there && there.error().code != ErrorCode::not_found) return ended(there.error());
      const bool same = there && (*expected == "*" || *expected == jobs::site_tag(*there));
      if (same) return still->put(document, by, ended);
      ended(Error{ErrorCode::conflict, "the site is not the one of If-Match any more: read it again"});
    });
  };
  turns_->add(change, std::move(done));
}

void SiteDocuments::put(const jobs::SiteDocument& document, const std::string& by, Done<Ok> done) {
  std::string text = jobs::format_site_document(document);
  store::Blob blob{kDocumentKey, text};
  store_.put_blob(std::move(blob), [weak = weak_from_this(), document, by, text = std::move(text),
                                    done = std::move(done)](const Result<Ok>& put) {
    const auto self = weak.lock();
    if (self && put) self->changed_to(document, text, by);
    done(put);
  });
}

void SiteDocuments::clear(Done<Ok> done, const std::string& by) {
  const auto change = [weak = weak_from_this(), by](const Done<Ok>& ended) {
    const auto self = weak.lock();
    if (self) self->remove(by, ended);
  };
  turns_->add(change, std::move(done));
}

void SiteDocuments::remove(const std::string& by, Done<Ok> done) {
  read([weak = weak_from_this(), by, done = std::move(done)](const Result<std::string>& there) {
    const auto self = weak.lock();
    if (!self) return;
    if (!there) return done(there.error());
    self->store_.remove_blob(kDocumentKey, [weak, by, done](const Result<Ok>& result) {
      const auto still = weak.lock();
      if (still && result) {
        still->changed_to(std::nullopt, "", by);
        still->removed();
      }
      done(result);
    });
  });
}

void SiteDocuments::read(Done<std::string> done) {
  store_.read<std::optional<std::string>>(
      [](store::Store& from) { return from.blob(kDocumentKey); },
      [weak = weak_from_this(), done = std::move(done)](const Result<std::optional<std::string>>& text) {
        if (!text) return done(text.error());
        const auto self = weak.lock();
        if (self && text->value_or("") != self->text_) {  // another server changed it
          auto document = jobs::parse_site_document(text->value_or(""), "the stored site");
          self->apply(*text && document ? std::optional(*std::move(document)) : std::nullopt, text->value_or(""));
          if (self->changed_elsewhere) self->changed_elsewhere();
        }
        if (!*text) {
          return done(Error{ErrorCode::not_found,
                            "this server has no site: set one with perseus site set FILE.toml or PUT /v1/site"});
        }
        done(**text);
      });
}

void SiteDocuments::tick(double now_s) {
  if (options_.site_poll_s <= 0 || now_s < next_read_s_) return;
  next_read_s_ = now_s + options_.site_poll_s;
  read([](const Result<std::string>&) {});
}

std::optional<double> SiteDocuments::next_wake() const {
  return options_.site_poll_s > 0 ? std::optional(next_read_s_) : std::nullopt;
}

}  // namespace perseus::service
