#include "base/utf8.h"

#include <utf8.h>

#include <algorithm>
#include <iterator>
#include <span>

namespace perseus {
namespace {

struct CodePointRange {
  char32_t first, last;
};

/// Marks drawn over the character before them, and joiners; the scripts that job names are likely to have.
constexpr CodePointRange kZeroWidth[] = {
    {0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x5BF, 0x5BF},    {0x5C1, 0x5C2},   {0x5C4, 0x5C5},
    {0x5C7, 0x5C7},   {0x610, 0x61A},   {0x64B, 0x65F},   {0x670, 0x670},    {0x6D6, 0x6DC},   {0x6DF, 0x6E4},
    {0x6E7, 0x6E8},   {0x6EA, 0x6ED},   {0x900, 0x902},   {0x93A, 0x93A},    {0x93C, 0x93C},   {0x941, 0x948},
    {0x94D, 0x94D},   {0xE31, 0xE31},   {0xE34, 0xE3A},   {0xE47, 0xE4E},    {0x1160, 0x11FF}, {0x1AB0, 0x1ACE},
    {0x1DC0, 0x1DFF}, {0x200B, 0x200D}, {0x2060, 0x2064}, {0x20D0, 0x20F0},  {0x302A, 0x302D}, {0x3099, 0x309A},
    {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF}};
/// East Asian Wide and Fullwidth by blocks, and the emoji that are two columns wide by default.
constexpr CodePointRange kDoubleWidth[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},   {0x2705, 0x2705},
    {0x2728, 0x2728},   {0x274C, 0x274C},   {0x2E80, 0x3029},   {0x302E, 0x303E},   {0x3041, 0x3098},
    {0x309B, 0x3247},   {0x3250, 0x4DBF},   {0x4E00, 0xA4CF},   {0xA960, 0xA97C},   {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE10, 0xFE19},   {0xFE30, 0xFE6B},   {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},
    {0x17000, 0x18CFF}, {0x1B000, 0x1B2FF}, {0x1F300, 0x1F320}, {0x1F32D, 0x1F335}, {0x1F337, 0x1F37C},
    {0x1F37E, 0x1F393}, {0x1F3A0, 0x1F3CA}, {0x1F3E0, 0x1F3F0}, {0x1F3F8, 0x1F43E}, {0x1F440, 0x1F440},
    {0x1F442, 0x1F4FC}, {0x1F4FF, 0x1F53D}, {0x1F550, 0x1F567}, {0x1F5FB, 0x1F64F}, {0x1F680, 0x1F6C5},
    {0x1F6D5, 0x1F6DF}, {0x1F900, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x2FFFD}, {0x30000, 0x3FFFD}};

constexpr CodePointRange kInvisible[] = {
    {0xAD, 0xAD},     {0x34F, 0x34F},   {0x61C, 0x61C},     {0x115F, 0x1160},   {0x17B4, 0x17B5},   {0x180B, 0x180F},
    {0x200B, 0x200B}, {0x200E, 0x200F}, {0x202A, 0x202E},   {0x2060, 0x206F},   {0x3164, 0x3164},   {0xFEFF, 0xFEFF},
    {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3}, {0x1D173, 0x1D17A}, {0xE0000, 0xE00FF}, {0xE01F0, 0xE0FFF}};

bool is_in(std::span<const CodePointRange> ranges, char32_t point) {
  const auto range = std::ranges::lower_bound(ranges, point, {}, &CodePointRange::last);
  return range != ranges.end() && range->first <= point;
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  constexpr std::size_t longest = 4;
  const std::string_view window = text.substr(0, longest);
  if (::utf8::find_invalid(window) == 0) return {};
  const char* end = window.data();
  const char32_t value = ::utf8::unchecked::next(end);
  return {value, static_cast<std::size_t>(end - window.data())};
}

void append_utf8(std::string& out, char32_t point) { ::utf8::unchecked::append(point, std::back_inserter(out)); }

std::string valid_utf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const std::size_t good = std::min(::utf8::find_invalid(text), text.size());
    valid += text.substr(0, good);
    text.remove_prefix(good);
    if (text.empty()) break;
    valid += '?';
    text.remove_prefix(1);
  }
  return valid;
}

std::size_t display_columns(char32_t point) {
  if (is_in(kZeroWidth, point)) return 0;
  return is_in(kDoubleWidth, point) ? 2 : 1;
}

std::size_t display_columns(std::string_view utf8) {
  std::size_t columns = 0;
  for (const char* at = utf8.data(); at < utf8.data() + utf8.size();) {
    columns += display_columns(static_cast<char32_t>(::utf8::unchecked::next(at)));
  }
  return columns;
}

bool is_invisible(char32_t point) { return is_in(kInvisible, point); }

bool is_joiner(char32_t point) {
  return point == 0x200C || point == 0x200D || (point >= 0xFE00 && point <= 0xFE0F) ||
         (point >= 0xE0100 && point <= 0xE01EF);
}

bool changes_display(char32_t point) {
  return point < 0x20 || (point >= 0x7F && point <= 0x9F) || point == 0x61C || point == 0x200E || point == 0x200F ||
         (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
}

}  // namespace perseus
