// The message of Prometheus Alertmanager's webhooks, version 4, with one alert.
#pragma once

#include <string>

#include "server/jobs/alert.h"

namespace perseus::alerts {

/// Its group is the alert itself, so its group key and fingerprint stay the same from "firing" to "resolved", and from
/// server to server.
std::string format_alert_message(const jobs::Alert& alert);
/// "job j_7c 'gpt'", "domain 'hall'"
std::string name_of_subject(const jobs::Alert& alert);

}  // namespace perseus::alerts
