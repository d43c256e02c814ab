// The programs and libraries that `perseus demo` starts: beside this one in a build, in lib/perseus once installed.
//
// Errors:  not_found naming the one that is missing, before any starts.
#pragma once

#include <string>

#include "base/result.h"
#include "demo/demo_job.h"

namespace perseus::cli {

struct DemoPrograms {
  std::string server;
  std::string worker;
  std::string cuda;    ///< the simulated driver
  std::string helper;  ///< of the clocks; empty: the one on the path
};

Result<DemoPrograms> find_demo_programs(const DemoOptions& options);

}  // namespace perseus::cli
