// A profile of two equal stages at two clocks, small enough to plan by hand.
#pragma once

namespace perseus::testing {

inline constexpr const char* kTwoStages =
    "stage,instruction,frequency,time,energy\n"
    "0,forward,1400,0.1,40\n0,forward,700,0.2,30\n0,backward,1400,0.2,80\n0,backward,700,0.4,60\n"
    "1,forward,1400,0.1,40\n1,forward,700,0.2,30\n1,backward,1400,0.2,80\n1,backward,700,0.4,60\n";

}  // namespace perseus::testing
