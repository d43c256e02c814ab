// An alert as the text that the webhook sends: the message of Prometheus Alertmanager's webhooks, version 4.
//
// Problem: receivers for chat, pagers and tickets exist for that format.
// Output:  a message with one alert. Its group is the alert itself, so its group key and fingerprint stay the same
//          from the message "firing" to the message "resolved", and from server to server.
// Errors:  none.
// Cost:    linear in the alert's text.
// Threads: pure functions.
// Source:  https://prometheus.io/docs/alerting/latest/configuration/#webhook_config
#pragma once

#include <string>

#include "server/jobs/alert.h"

namespace perseus::alerts {

std::string format_alert_message(const jobs::Alert& alert);
/// "job j_7c 'gpt'", "domain 'hall'"
std::string name_of_subject(const jobs::Alert& alert);

}  // namespace perseus::alerts
