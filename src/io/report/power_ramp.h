// The colors for power: dark and light variants of one perceptually uniform ramp.
//
// The ramp is "inferno" (Smith & van der Walt, CC0): its lightness increases evenly, so that it is readable in gray
// and with any color vision. More power always means more contrast to the page: dark on a light page, bright on a
// dark one. The ends that would be invisible on the page are cut off. web/src/power-ramp.js is the same ramp (a test
// compares them).
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace perseus::report {

enum class Theme { light, dark };

struct Rgb {
  std::uint8_t red, green, blue;
  [[nodiscard]] std::string hex() const;  ///< "#rrggbb"
};

inline constexpr std::array<Rgb, 10> kInfernoStops = {{{0x00, 0x00, 0x04},
                                                       {0x1b, 0x0c, 0x41},
                                                       {0x4a, 0x0c, 0x6b},
                                                       {0x78, 0x1c, 0x6d},
                                                       {0xa5, 0x2c, 0x60},
                                                       {0xcf, 0x44, 0x46},
                                                       {0xed, 0x69, 0x25},
                                                       {0xfb, 0x9b, 0x06},
                                                       {0xf7, 0xd1, 0x3d},
                                                       {0xfc, 0xff, 0xa4}}};

/// The color of `position` in 0..1 (see PowerRange::position).
Rgb power_color(double position, Theme theme);

}  // namespace perseus::report
