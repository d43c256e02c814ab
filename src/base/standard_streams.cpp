#include "base/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/error_table.h"

namespace perseus {

void prepare_standard_streams() {
  std::signal(SIGXFSZ, SIG_IGN);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) >= 0) continue;
    // The lowest that is free, opened for what nobody does with it.
    if (::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
  }
}

void write_error(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stderr); }

int exit_code_after_output(std::string_view program, int code) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  const int reason = errno;  // 0: an earlier write failed
  if (flushed && std::ferror(stdout) == 0) return code;
  std::string line(program);
  line += ": standard output: cannot be written";
  if (reason != 0) line.append(": ").append(std::strerror(reason));
  write_error(line + "\n");
  return code != 0 ? code : entry_of(ErrorCode::cannot_write).exit_code;
}

}  // namespace perseus
