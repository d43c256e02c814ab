// A training process for kill tests: sets clocks at random moments until its standard input closes.
//
// usage: clock_control_trainer GPU SEED [RESTART [exit]]
// RESTART: seconds until a new helper replaces one that ended
// exit:    call exit() at the end, while the controller runs
// It prints "supervisor worker" (process ids) when it has control.
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>

#include "training/clock_control/clock_controller.h"

int main(int argc, char** argv) {
  using namespace perseus;
  if (argc < 3 || argc > 5) return 64;
  const double pause_s = argc > 3 ? std::atof(argv[3]) : 0;
  const bool exits = argc > 4 && std::string_view(argv[4]) == "exit";
  auto controller = clock_control::ClockController::start({argv[1], PERSEUS_CLOCKD_PROGRAM, 60, {pause_s, pause_s}});
  if (!controller || (*controller)->working_helper() == 0) return std::fputs("no control\n", stderr), 1;
  std::printf("%d %d\n", (*controller)->supervisor_pid(), (*controller)->helper_pid());
  std::fflush(stdout);
  std::mt19937 random(static_cast<unsigned>(std::atoi(argv[2])));
  int requests = 0;
  for (pollfd input{STDIN_FILENO, POLLIN, 0}; ::poll(&input, 1, 0) == 0;) {
    if (requests++ % 4 == 0) (*controller)->begin_step();  // so that the helper expects some of them
    const int clocks[] = {1400, 700, 350, 0};
    (*controller)->set(Megahertz(clocks[random() % 16 == 0 ? 3 : random() % 3]));
    ::usleep(static_cast<unsigned>(random() % 400));
  }
  if (exits) std::exit(0);
  return 0;
}
