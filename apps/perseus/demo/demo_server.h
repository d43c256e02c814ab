// The server of `perseus demo`: a process of its own, and the calls to it.
//
// Input:   a program, the scratch folder for its database and log.
// Output:  answers as JSON.
// Errors:  unavailable: it did not start, has ended (and how), is stopped by a signal, or did not answer.
// Threads: one; a call waits on a second one.
#pragma once

#include <boost/json/value.hpp>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "demo/demo_job.h"
#include "demo/demo_scratch.h"
#include "demo/demo_stage.h"
#include "remote/server_call.h"
#include "simulation/replay/child_process.h"

namespace perseus::cli {

class DemoServer {
 public:
  DemoServer(DemoStage& stage, const DemoScratch& scratch) : stage_(stage), scratch_(scratch) {}

  Status start(const std::string& program, const DemoOptions& options);
  /// SIGKILL, in the middle of whatever it does.
  void kill();
  /// After kill(): on the same port and the same database.
  Status restart(const std::string& program, DemoOptions options);
  [[nodiscard]] const std::string& url() const { return peer_.url; }

  /// Called again and again while a call waits for its answer.
  void while_waiting(std::function<void()> work) { while_waiting_ = std::move(work); }
  Result<boost::json::value> ask(const std::string& method, const std::string& target, const std::string& body = {});

  /// The error if the process has ended.
  [[nodiscard]] std::optional<Error> ended() const;
  void remark_if_stopped();
  /// After a signal that stopped it: a stopped server cannot end in order.
  void continue_if_stopped() const;
  /// Keeps the dashboard running until Ctrl-C.
  void keep() const;
  void stop();

 private:
  [[nodiscard]] bool is_stopped() const;
  [[nodiscard]] std::string name() const;
  [[nodiscard]] Error has_ended(const std::string& how) const;
  [[nodiscard]] std::string first_line();
  Result<std::string> call_patiently(const http::HttpCall& call);

  DemoStage& stage_;
  const DemoScratch& scratch_;
  http::HttpPeer peer_;
  std::unique_ptr<replay::ChildProcess> process_;
  std::function<void()> while_waiting_;
};

/// The number, or text, at that path of an answer.
double number_at(const boost::json::value& value, std::initializer_list<std::string_view> path, double otherwise = 0);
std::string text_at(const boost::json::value& value, std::initializer_list<std::string_view> path);

}  // namespace perseus::cli
