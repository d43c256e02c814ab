// Which simulated GPUs this process is to see: $PERSEUS_SIMULATED_GPUS.
//
// Input: the variable: state files, or folders of nothing but state files, separated by colons. Output: the files, in
// the order of the variable, those of a folder by name; a part that does not exist is left out. Errors: none. Cost:
// reads folders. Threads: any, as long as nobody changes the environment.
#pragma once

#include <string>
#include <vector>

namespace perseus::simulated_gpu {

std::vector<std::string> simulated_gpu_files();

}  // namespace perseus::simulated_gpu
