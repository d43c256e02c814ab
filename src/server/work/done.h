// The type of callbacks that answer a call.
//
// Output:  the result, or the error; called once, on the io thread, inside the call or later.
// Threads: io thread.
#pragma once

#include <functional>

#include "base/result.h"

namespace perseus::work {

template <class T>
using Done = std::function<void(Result<T>)>;

}  // namespace perseus::work
