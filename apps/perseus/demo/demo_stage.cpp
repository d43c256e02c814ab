#include "demo/demo_stage.h"

#include <fmt/format.h>
#include <unistd.h>

#include "base/standard_streams.h"
#include "command_line/terminal_size.h"

namespace perseus::cli {

DemoStage::DemoStage() : terminal_(isatty(STDERR_FILENO) == 1) {}

void DemoStage::begin(const std::string& what) {
  clear();
  remarks_.clear();
  write_error(fmt::format("{:6.1f} s  {}\n", seconds(), what));
}

void DemoStage::remark(const std::string& what) {
  clear();
  write_error(fmt::format("{:6.1f} s    {}\n", seconds(), what));
}

void DemoStage::remark_once(const std::string& topic, const std::string& what) {
  if (remarks_.insert(topic).second) remark(what);
}

void DemoStage::so_far(const std::string& what) {
  if (!terminal_) return;
  show_progress_line("          " + what);
  shown_ = true;
}

void DemoStage::clear() {
  if (shown_) clear_progress_line();
  shown_ = false;
}

double DemoStage::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
}

}  // namespace perseus::cli
