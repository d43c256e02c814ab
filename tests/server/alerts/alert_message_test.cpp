// The message of an alert, as receivers of Alertmanager's webhooks read it.
#include "server/alerts/alert_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace perseus::alerts {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(AlertMessage, HasTheFormatOfAlertmanager) {
  const jobs::Alert alert{
      jobs::AlertKind::over_power, "j_1", "gpt", "the job draws 5 kW", 1'800'000'000.25, 1'800'000'300.5, {}};
  EXPECT_EQ(
      format_alert_message(alert),
      R"({"version":"4","groupKey":"{\"alertname\":\"PerseusOverPower\",\"training_job\":\"j_1\"}","truncatedAlerts":0,)"
      R"("status":"firing","receiver":"perseus","groupLabels":{"alertname":"PerseusOverPower","training_job":"j_1"},)"
      R"("commonLabels":{"alert":"over_power","alertname":"PerseusOverPower","name":"gpt","severity":"warning",)"
      R"("training_job":"j_1"},"commonAnnotations":{"description":"the job draws 5 kW",)"
      R"("since":"2027-01-15T08:00:00.250Z","summary":"job j_1 'gpt': the job draws 5 kW"},"externalURL":"",)"
      R"("alerts":[{"status":"firing","labels":{"alert":"over_power","alertname":"PerseusOverPower","name":"gpt",)"
      R"("severity":"warning","training_job":"j_1"},"annotations":{"description":"the job draws 5 kW",)"
      R"("since":"2027-01-15T08:00:00.250Z","summary":"job j_1 'gpt': the job draws 5 kW"},)"
      R"("startsAt":"2027-01-15T08:05:00.500Z","endsAt":"0001-01-01T00:00:00Z","generatorURL":"",)"
      R"("fingerprint":"bbbfd94a26e11ee4"}]})");
}

TEST(AlertMessage, OfADomainNamesIt) {
  const jobs::Alert alert{
      jobs::AlertKind::watts_missing, jobs::job_of_domain("hall"), "hall", "2 kW are missing", 10, 20, {}};
  const std::string text = format_alert_message(alert);
  EXPECT_THAT(text, HasSubstr(R"("groupLabels":{"alertname":"PerseusWattsMissing","domain":"hall"})"));
  EXPECT_THAT(text, HasSubstr(R"("summary":"domain 'hall': 2 kW are missing")"));
  EXPECT_THAT(text, Not(HasSubstr("training_job")));
}

TEST(AlertMessage, ItsEndHasTheSameGroupAndFingerprint) {
  jobs::Alert alert{jobs::AlertKind::no_permission, "j_2", "", "2 of its ranks cannot set their clocks", 10, 20, {}};
  const std::string raised = format_alert_message(alert);
  alert.resolved_s = 100;
  const std::string resolved = format_alert_message(alert);
  EXPECT_THAT(resolved, HasSubstr(R"("status":"resolved","receiver":"perseus")"));
  EXPECT_THAT(resolved, HasSubstr(R"("alerts":[{"status":"resolved")"));
  EXPECT_THAT(resolved, HasSubstr(R"("endsAt":"1970-01-01T00:01:40.000Z")"));
  const auto part = [](const std::string& text, const std::string& from, const std::string& to) {
    const std::size_t begin = text.find(from);
    return text.substr(begin, text.find(to, begin) - begin);
  };
  EXPECT_EQ(part(raised, "\"groupKey\"", "\"truncated"), part(resolved, "\"groupKey\"", "\"truncated"));
  EXPECT_EQ(part(raised, "\"fingerprint\"", "}"), part(resolved, "\"fingerprint\"", "}"));
  EXPECT_EQ(part(raised, "\"fingerprint\"", "}").size(), std::string(R"("fingerprint":"0123456789abcdef")").size());
}

}  // namespace
}  // namespace perseus::alerts
