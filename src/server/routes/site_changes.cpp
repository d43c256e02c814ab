#include "server/routes/site_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "server/routes/site_json.h"

namespace perseus::routes {

void SiteChanges::take(power::SitePowerView view) {
  view_ = std::move(view);
  ++version_;
  take_domains();
  take_jobs();
}

void SiteChanges::take_domains() {
  const auto name = [](const auto& domain) -> const std::string& { return domain.name; };
  if (!std::ranges::equal(domains_, view_.domains, {}, name, name)) {
    domains_.assign(view_.domains.size(), {});
    first_ = version_;  // readers order the domains as in an answer with all of them
  }
  for (std::size_t d = 0; d < domains_.size(); ++d) {
    std::string text = site_domain_json(view_, view_.domains[d]);
    if (text != domains_[d].text) domains_[d] = {view_.domains[d].name, std::move(text), version_};
  }
}

void SiteChanges::take_jobs() {
  for (const power::SiteJobView& job : view_.jobs) {
    JobRow& row = jobs_[job.job];
    row.seen = version_;
    const bool same = row.changed >= first_ && row.of == job;
    if (same) continue;
    row.of = job;
    row.text = site_job_json(view_, job);
    row.changed = version_;
    gone_.erase(job.job);
  }
  std::erase_if(jobs_, [this](const auto& row) {
    const bool goes = row.second.seen != version_;
    if (goes) gone_[row.first] = version_;
    return goes;
  });
  if (gone_.size() <= kMostGone) return;
  gone_.clear();
  first_ = version_;
}

std::uint64_t SiteChanges::version_of(std::string_view since) const {
  if (!since.starts_with(server_ + ".")) return 0;
  since.remove_prefix(server_.size() + 1);
  std::uint64_t version = 0;
  const auto [end, problem] = std::from_chars(since.data(), since.data() + since.size(), version);
  const bool read = problem == std::errc{} && end == since.data() + since.size();
  return read && version >= first_ && version <= version_ ? version : 0;
}

std::string SiteChanges::answer(std::string_view since) const {
  SiteRows rows;
  const std::uint64_t before = version_of(since);
  rows.version = fmt::format("{}.{}", server_, version_);
  if (before != 0) rows.since = since;
  for (const DomainRow& row : domains_) {
    if (row.changed > before) rows.domains.push_back(row.text);
  }
  for (const auto& [id, row] : jobs_) {
    if (row.changed > before) rows.jobs.push_back(row.text);
  }
  for (const auto& [id, version] : gone_) {
    if (before != 0 && version > before) rows.gone.push_back(id);
  }
  return site_rows_json(view_, rows);
}

}  // namespace perseus::routes
