// What `perseus trace` found in a timeline, as text, JSON and a page.
//
// Input:   a traced job and what slows it down.
// Output:  text for a terminal; one JSON object; a page for write_static_page().
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <vector>

#include "evaluation/what_if/other_plans.h"
#include "io/report/static_page.h"
#include "plan/trace_input.h"
#include "trace/advise.h"

namespace perseus::cli {

struct TraceAnswer : UnderstoodTrace {
  std::vector<what_if::Waiting> waiting;
  std::vector<what_if::OtherPlan> others;
  AdviceTable saving;
  std::string modeled_gpu;   ///< which, and why; empty: a measured profile says
  std::string timeline_svg;  ///< a pipeline as measured and as replayed
};

/// Of the whole job.
int gpus_of(const UnderstoodTrace& trace);
/// What was read and how far the rest can be believed, and the answers in one sentence each.
std::vector<report::ReportFact> trace_facts(const TraceAnswer& answer);
std::string trace_text(const TraceAnswer& answer);
boost::json::object trace_json(const TraceAnswer& answer);
report::StaticPage trace_page(const TraceAnswer& answer, const std::vector<report::ReportFact>& inputs);

}  // namespace perseus::cli
