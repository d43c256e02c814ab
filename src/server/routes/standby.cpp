#include "server/routes/standby.h"

#include <fmt/format.h>

#include "base/json_writer.h"

namespace perseus::routes {

http::HttpResponse standby_answer(const http::HttpRequest& request, std::string_view active) {
  if (request.path == "/healthz") {
    return http::json_response(200, json_object([](JsonWriter& f) {
                                 f.always("status", "ok");
                                 f.always("standby", true);
                               }));
  }
  if (request.path == "/metrics") {
    http::HttpResponse metrics = http::json_response(200,
                                                     "# HELP perseus_standby Another server on this database "
                                                     "serves.\n# TYPE perseus_standby gauge\nperseus_standby 1\n");
    metrics.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return metrics;
  }
  constexpr int unavailable = 503;
  http::HttpResponse answer =
      http::error_response(unavailable, fmt::format("this server stands by; the one that serves is {}", active));
  answer.headers.emplace_back(http::kStandbyHeader, "1");
  answer.headers.emplace_back("Retry-After", "1");
  return answer;
}

}  // namespace perseus::routes
