// Calls of /v1 that list what live jobs have: stragglers and policies.
#include <memory>

#include "base/json_writer.h"
#include "server/jobs/describe_view.h"
#include "server/routes/api.h"
#include "server/routes/call_input.h"
#include "server/views/job_list.h"

namespace perseus::routes {
namespace {

constexpr std::size_t kPageJobs = 100, kMostPageJobs = 1000;

/// A page of jobs, while their views are read.
struct JobPage {
  std::size_t left = 0;
  std::vector<std::vector<std::string>> rows;  ///< per job, in the order of the list
  std::optional<Error> failed;
  std::string next;  ///< empty: no more jobs
};

/// An element of a job's list, after the job's id and name.
template <class Element>
std::string row_of(const jobs::JobView& view, const Element& element) {
  return json_object([&](JsonWriter& f) {
    f.always("job", view.header.job);
    f.always("job_name", view.header.name);
    describe(f, element);
  });
}

template <auto list>
std::vector<std::string> rows_of(const jobs::JobView& view) {
  std::vector<std::string> rows;
  for (const auto& element : view.*list) rows.push_back(row_of(view, element));
  return rows;
}

void answer_page(const Call& call, std::string_view list, const JobPage& page) {
  if (page.failed) return call.fail(*page.failed);
  std::vector<std::string> all;
  for (const auto& rows : page.rows) all.insert(all.end(), rows.begin(), rows.end());
  call.answer(json_object([&](JsonWriter& f) {
    f.always(list, JsonList{all, [](const std::string& row) { return JsonRaw{row}; }});
    if (!page.next.empty()) f.always("next", page.next);
  }));
}

}  // namespace

void Api::list_stragglers(Call call) { list_of_jobs(call, "stragglers", rows_of<&jobs::JobView::stragglers>); }
void Api::list_policies(Call call) { list_of_jobs(call, "policies", rows_of<&jobs::JobView::policies>); }

void Api::list_of_jobs(const Call& call, std::string_view list, RowsOfJob rows_of) {
  Parameters parameters(call.request);
  views::JobList::Query query{
      parameters.limit("jobs", kPageJobs, kMostPageJobs), parameters.after(views::parse_cursor), {}};
  if (const auto error = parameters.error()) return call.fail(*error);
  query.wanted = [&](const views::JobList::Place& place, const views::JobList::Row& row) {
    return row.is_live && row.state != views::kDamagedState && reaches(call.identity, place.job) == true;
  };
  const views::JobList::Page found = service_.list.list().page(query);
  const auto page = std::make_shared<JobPage>();
  page->left = found.rows.size();
  page->rows.resize(found.rows.size());
  if (found.next) page->next = views::format_cursor(*found.next);
  if (found.rows.empty()) return answer_page(call, list, *page);
  std::vector<std::string> ids;  // reading a job may change the list
  for (const auto& [place, row] : found.rows) ids.push_back(place->job);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    service_.job(ids[i], [call, list, page, i, rows_of](const Result<jobs::JobView>& view) {
      if (view) page->rows[i] = rows_of(*view);
      // Others were deleted meanwhile, or are damaged.
      if (!view && view.error().code == ErrorCode::unavailable) page->failed = view.error();
      if (--page->left == 0) answer_page(call, list, *page);
    });
  }
}

}  // namespace perseus::routes
