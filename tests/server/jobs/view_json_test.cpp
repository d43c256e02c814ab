#include "server/jobs/view_json.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace perseus::jobs {
namespace {

using boost::json::parse;

JobView deployed_job() {
  JobView view;
  view.header = {"j_1", "a \"name\" </script>", "deployed", 1790000000.25, 1790000001};
  view.now_s = 1790000002;
  view.sequence = 42;
  view.schedule = "1f1b";
  view.microbatches = 24;
  view.degrees = {2, 8, 4};
  view.ranks_registered = 64;
  view.facts = {{"accelerator", "A100"}};
  view.plan = {
      3, 120, 1790000001, Seconds(4), Seconds(3.9), Seconds(5.25), Seconds(4.5), Seconds(4.5), "pipeline 1 is slow"};
  view.pipelines.resize(2);
  view.pipelines[0] = {0, false, 0, 300, Seconds(4.5), Joules(9000), "key"};
  view.pipelines[1].pipeline = 1;
  view.stragglers.push_back({"s1", {}, 1, 1.2, 1790000001, true, true});
  view.stragglers[0].target.pipeline = 1;
  view.policies = {{PowerCap{Watts(250000)}, "power cap 250 kW"}};
  view.per_iteration = {Joules(9000), Joules(10000), Seconds(4.5), Seconds(4.5)};
  view.total = {1200, Joules(1.5e6), Joules(9e6), false, 0, Joules(0)};
  return view;
}

TEST(ServerViewJson, OfAJobInFull) {
  const auto json = parse(job_json(deployed_job(), {0.25, "EUR", std::nullopt}));
  EXPECT_EQ(json, parse(R"({"id":"j_1","name":"a \"name\" </script>","state":"deployed",
    "created_at_s":1790000000.25,"updated_at_s":1790000001,"now_s":1790000002,"sequence":42,"schedule":"1f1b",
    "microbatches":24,"degrees":{"dp":2,"pp":8,"tp":4},"world_size":64,"ranks":{"expected":64,"registered":64,"waiting":0},
    "facts":{"accelerator":"A100"},
    "plan":{"version":3,"from_iteration":120,"deployed_at_s":1790000001,"t_max_s":4,"t_min_s":3.9,"t_star_s":5.25,
            "t_straggler_s":4.5,"t_opt_s":4.5,"reason":"pipeline 1 is slow"},
    "pipelines":[{"pipeline":0,"point":0,"points":300,"time_s":4.5,"energy_j":9000,"frontier":"key"},{"pipeline":1}],
    "stragglers":[{"id":"s1","target":"pipeline 1","pipeline":1,"degree":1.2,"state":"in_force","at_s":1790000001,
                   "origin":"detected"}],
    "policies":[{"kind":"power_cap","text":"power cap 250 kW","power_cap":{"average_w":250000}}],
    "savings":{"per_iteration":{"energy_j":9000,"all_max_energy_j":10000,"time_s":4.5,"all_max_time_s":4.5},
               "total":{"iterations":1200,"saved_j":1500000,"all_max_energy_j":9000000,"measured":false,"estimated_iterations":0,"estimated_saved_j":0},
               "factors":{"price_per_kwh":0.25,"currency":"EUR"}}})"));
}

TEST(ServerViewJson, OmitsUnknownMembers) {
  JobView view;
  view.header = {"j_2", "", "profiling", 1, 2};
  JobView::Profiling profiling;
  profiling.windows = 3;
  profiling.iterations = 7;
  profiling.uncertainty_pct = 0.5;
  profiling.waiting_for = {1};
  view.profiling = profiling;
  const auto json = parse(job_json(view)).as_object();
  for (const char* member : {"name", "reason", "schedule", "facts", "savings"}) EXPECT_FALSE(json.contains(member));
  EXPECT_TRUE(!json.contains("plan") || json.at("plan").is_null());
  EXPECT_EQ(json.at("profiling"), parse(R"({"windows":3,"iterations":7,"uncertainty_pct":0.5,"waiting_for":[1]})"));
  EXPECT_EQ(json.at("ranks"), parse(R"({"expected":1,"registered":0,"waiting":0})"));
}

TEST(ServerViewJson, OfAJobInTheListAndOfAnEvent) {
  EXPECT_EQ(parse(job_list_entry_json({{"b", "two", "finished", 3, 4}, {}})),
            parse(R"({"id":"b","name":"two","state":"finished","created_at_s":3,"updated_at_s":4})"));
  EXPECT_EQ(parse(job_list_entry_json({{"a", "", "registered", 1, 2}, {}})),
            parse(R"({"id":"a","state":"registered","created_at_s":1,"updated_at_s":2})"));
  EXPECT_EQ(parse(event_json({"a", 7, "job_seen", 1.5, "a rank asked\nabout it"})),
            parse(R"({"job":"a","sequence":7,"kind":"job_seen","at_s":1.5,"text":"a rank asked\nabout it"})"));
  EXPECT_EQ(parse(event_json({"a", 8, "job_finished", 2, "finished", "alice"})).at("by"), "alice");
  EXPECT_EQ(event_json({"a", 7, "job_seen", 1.5, "two\nlines"}).find('\n'), std::string::npos);  // one line of a stream
}

}  // namespace
}  // namespace perseus::jobs
