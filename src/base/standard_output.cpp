#include "base/standard_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/error_table.h"

namespace perseus {

int exit_code_after_output(std::string_view program, int code) {
  errno = 0;
  const bool flushed = std::fflush(stdout) == 0;
  const int reason = errno;  // 0: an earlier write failed
  if (flushed && std::ferror(stdout) == 0) return code;
  std::string line(program);
  line += ": standard output: cannot be written";
  if (reason != 0) line.append(": ").append(std::strerror(reason));
  std::fputs((line + "\n").c_str(), stderr);
  return code != 0 ? code : entry_of(ErrorCode::cannot_write).exit_code;
}

}  // namespace perseus
