// docs/openapi.json against the descriptions that the server reads and writes by: members, types, required members.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "server/jobs/api_answers.h"
#include "server/jobs/api_bodies.h"
#include "server/jobs/describe_view.h"
#include "server/savings/job_history.h"

namespace perseus::jobs {
namespace {

namespace json = boost::json;

/// A type as text: "number", "array of integer", "map of string", "object" with its members.
struct Shape {
  std::string type;
  std::map<std::string, Shape> members;
  std::set<std::string> required;
};

template <class T>
Shape shape_of_value(const T& value);

/// Takes the part of a writer, and notes members instead of values.
class Members {
 public:
  template <class T>
  void operator()(std::string_view key, const T& value) {
    shape.members.emplace(key, shape_of_value(value));
  }
  template <class T>
  void always(std::string_view key, const T& value) {
    shape.required.emplace(key);
    (*this)(key, value);
  }
  Shape shape{"object", {}, {}};
};

/// Of a value that may be missing: by its type where it can be made, else just "object".
template <class T>
Shape shape_of_type() {
  if constexpr (requires { T{}; }) {  // the trait is wrong for structs inside a struct that has an optional of them
    return shape_of_value(T{});
  } else {
    return {"object", {}, {}};
  }
}
Shape list_of(Shape element) {
  return {"array of " + element.type, std::move(element.members), std::move(element.required)};
}

template <class T>
Shape form_of(const std::optional<T>& value) {
  return value ? shape_of_value(*value) : shape_of_type<T>();
}
template <class Tag>
Shape form_of(const Quantity<Tag>&) {
  return {"number", {}, {}};
}
Shape form_of(const Megahertz&) { return {"number", {}, {}}; }
template <class Optional>
Shape form_of(const formats::TransferLatencyMember<Optional>&) {
  return {"one of", {}, {}};
}
template <class A, class B>
Shape form_of(const std::pair<A, B>&) {
  return {"pair of " + shape_of_type<A>().type + ", " + shape_of_type<B>().type, {}, {}};
}
template <class Range, class ValueOf>
Shape form_of(const JsonList<Range, ValueOf>& list) {
  return list_of(shape_of_type<std::remove_cvref_t<decltype(list.value_of(*list.range.begin()))>>());
}

template <class T>
Shape shape_of_value(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return {"boolean", {}, {}};
  } else if constexpr (std::is_integral_v<T>) {
    return {"integer", {}, {}};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {"number", {}, {}};
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return {"string", {}, {}};
  } else if constexpr (requires { form_of(value); }) {
    return form_of(value);
  } else if constexpr (requires { typename T::mapped_type; }) {
    return {"map of " + shape_of_type<typename T::mapped_type>().type, {}, {}};
  } else if constexpr (requires { typename T::value_type; }) {
    return list_of(shape_of_type<typename T::value_type>());
  } else {
    Members members;
    describe(members, value);
    return members.shape;
  }
}

const json::object& schemas() {
  static const json::value api = [] {
    std::ifstream file(PERSEUS_SOURCE_DIR "/docs/openapi.json");
    std::ostringstream text;
    text << file.rdbuf();
    return json::parse(text.str());
  }();
  return api.at("components").at("schemas").as_object();
}

Shape shape_in_docs(const json::object& schema) {
  if (const auto* ref = schema.if_contains("$ref")) {
    const std::string name(ref->as_string());
    return shape_in_docs(schemas().at(name.substr(name.rfind('/') + 1)).as_object());
  }
  if (schema.contains("oneOf")) return {"one of", {}, {}};
  if (schema.contains("enum")) return {"string", {}, {}};
  const std::string type(schema.at("type").as_string());
  if (type == "array") {
    if (const auto* parts = schema.if_contains("prefixItems")) {
      return {"pair of " + shape_in_docs(parts->as_array().at(0).as_object()).type + ", " +
                  shape_in_docs(parts->as_array().at(1).as_object()).type,
              {},
              {}};
    }
    return list_of(shape_in_docs(schema.at("items").as_object()));
  }
  if (const auto* values = schema.if_contains("additionalProperties"); values != nullptr && values->is_object()) {
    return {"map of " + shape_in_docs(values->as_object()).type, {}, {}};
  }
  Shape shape{type, {}, {}};
  if (const auto* members = schema.if_contains("properties")) {
    for (const auto& member : members->as_object()) {
      shape.members.emplace(member.key(), shape_in_docs(member.value().as_object()));
    }
  }
  if (const auto* required = schema.if_contains("required")) {
    for (const auto& key : required->as_array()) shape.required.emplace(key.as_string());
  }
  return shape;
}

/// A body's required members are the same; an answer may always have members that its readers must not rely on.
enum class Side { body, answer };

void expect_same(const std::string& where, const Shape& docs, const Shape& described, Side side) {
  EXPECT_EQ(docs.type, described.type) << where;
  if (docs.members.empty()) return;  // described in words
  for (const auto& [key, member] : docs.members) {
    const auto found = described.members.find(key);
    if (found == described.members.end()) {
      ADD_FAILURE() << where << "." << key << ": only in docs/openapi.json";
      continue;
    }
    expect_same(where + "." + key, member, found->second, side);
  }
  for (const auto& [key, member] : described.members) {
    EXPECT_TRUE(docs.members.contains(key)) << where << "." << key << ": missing in docs/openapi.json";
  }
  if (side == Side::body) { EXPECT_EQ(docs.required, described.required) << where; }
  for (const std::string& key : docs.required) EXPECT_TRUE(described.required.contains(key)) << where << "." << key;
}

template <class T>
void expect_body(std::string_view schema, const T& body) {
  expect_same(std::string(schema), shape_in_docs(schemas().at(schema).as_object()), shape_of_value(body), Side::body);
}
template <class T>
void expect_answer(std::string_view schema, const T& answer, const std::set<std::string>& besides = {}) {
  Shape docs = shape_in_docs(schemas().at(schema).as_object());
  for (const std::string& key : besides) {
    EXPECT_EQ(docs.members.erase(key), 1U) << schema << "." << key;
    docs.required.erase(key);
  }
  expect_same(std::string(schema), docs, shape_of_value(answer), Side::answer);
}

TEST(OpenApi, DescribesTheBodiesThatTheServerReads) {
  expect_body("RegisterJobBody", RegisterJobBody{});
  expect_body("Rank", RegisterRank{});
  expect_body("Iterations", ReportIterations{});
  expect_body("PlanDropped", DropPlan{});
  expect_body("Exchange", ExchangeBody{});
  expect_body("JobProfile", ProfileBody{});
  expect_body("Straggler", SetStraggler{});
  expect_body("NewToken", TokenBody{});
}

TEST(OpenApi, DescribesTheAnswersThatTheServerWrites) {
  expect_answer("RegisterJobAnswer", RegisterJobAnswer{});
  expect_answer("Reported", ReportedIterations{});
  expect_answer("PolicyChanged", PolicyChanged{});
  expect_answer("Notices", StragglerSet{});
  expect_answer("StoredProfile", StoredProfile{});
  expect_answer("Profile", NamedProfile{});
  StageSchedule schedule;
  schedule.computations.emplace_back();
  expect_answer("Plan", schedule, {"rank", "pipeline", "unchanged", "sent_at_s", "held_s"});  // those of each rank
}

TEST(OpenApi, DescribesLearnedProfiles) {
  LearnedProfile learned;
  learned.doubted_by = "j";
  const std::vector<LearnedShown> profiles{{learned}};
  const Shape docs = shape_in_docs(schemas().at("LearnedProfiles").as_object());
  expect_same("LearnedProfiles.profiles", docs.members.at("profiles"), list_of(shape_of_value(profiles[0])),
              Side::answer);
}

struct JobAnswer {
  JobView view;
  EnergyFactors factors;
};
void describe(auto& f, const JobAnswer& answer) { describe_job(f, answer.view, answer.factors); }

TEST(OpenApi, DescribesJobsAndTheirRows) {
  JobView view;
  view.no_savings = "x";
  view.possible = JobView::PossibleSaving{14, 0.3};
  expect_answer("Job", JobAnswer{view, {}});
  expect_answer("Ranks", RankPage{{RankView{}}, 1});
  expect_answer("History", savings::HistoryView{60, {{0, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}}, 1});
  expect_answer("ClusterHistory", savings::ClusterHistory{60, {{0, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}}}, 1});
  const std::string job = "j", name = "gpt";
  const Shape hosts = shape_in_docs(schemas().at("Hosts").as_object());
  expect_same("Hosts.hosts", hosts.members.at("hosts"), list_of(shape_of_value(HostShown{job, name, HostView{}})),
              Side::answer);
  const Shape docs = shape_in_docs(schemas().at("Jobs").as_object());
  expect_same("Jobs.jobs", docs.members.at("jobs"), list_of(shape_of_value(JobListEntry{})), Side::answer);
}

}  // namespace
}  // namespace perseus::jobs
