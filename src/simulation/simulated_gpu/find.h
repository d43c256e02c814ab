// The simulated GPUs that this process sees, from $PERSEUS_SIMULATED_GPUS.
//
// Input:   the variable: state files, or folders of nothing but state files, separated by colons.
// Output:  the files, in the order of the variable, those of a folder by name; a part that does not exist is skipped.
// Cost:    reads folders.
// Threads: any, as long as none changes the environment.
#pragma once

#include <string>
#include <vector>

namespace perseus::simulated_gpu {

std::vector<std::string> simulated_gpu_files();

}  // namespace perseus::simulated_gpu
