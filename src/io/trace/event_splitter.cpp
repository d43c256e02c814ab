#include "io/trace/event_splitter.h"

#include <fmt/format.h>

namespace perseus::trace {
namespace {

Error bad(std::string message) { return {ErrorCode::invalid_input, std::move(message)}; }

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool is_byte_order_mark(char c) { return c == '\xef' || c == '\xbb' || c == '\xbf'; }

std::string shown(char c) {
  return c > ' ' && c <= '~' ? fmt::format("'{}'", c) : fmt::format("the byte {:#04x}", static_cast<unsigned char>(c));
}

}  // namespace

Status EventSplitter::feed(std::string_view piece, const Visit& visit) {
  if (!text_.empty()) text_.resize(text_.size() - kPadding);
  text_ += piece;
  const std::size_t length = text_.size();
  text_.append(kPadding, ' ');
  for (std::size_t at = scanned_; at < length; ++at) {
    if (string_ != kNowhere) {
      if (escaped_) {
        escaped_ = false;
      } else if (text_[at] == '\\') {
        escaped_ = true;
      } else if (text_[at] == '"') {
        if (depth_ == 1 && !is_list_) key_.assign(text_, string_ + 1, at - string_ - 1);
        string_ = kNowhere;
      }
    } else if (Status status = read(text_[at], at, visit); !status) {
      return status.error();
    }
  }
  std::size_t keep = length;  // what begins before the next piece stays
  if (string_ != kNowhere) keep = string_;
  if (object_ != kNowhere) keep = object_;
  if (length - keep > kMostEventBytes)
    return bad(fmt::format("an event of more than {} MiB; allowed: less", kMostEventBytes >> 20U));
  text_.erase(0, keep);
  scanned_ = length - keep;
  if (string_ != kNowhere) string_ -= keep;
  if (object_ != kNowhere) object_ = 0;
  return Ok{};
}

Status EventSplitter::read(char c, std::size_t at, const Visit& visit) {
  switch (c) {
    case '"':
      string_ = at;
      break;
    case '[':
      if (depth_ == 0) is_list_ = began_ = true;
      if (depth_ == 1 && !is_list_) in_list_ = true;
      ++depth_;
      break;
    case '{':
      began_ = true;
      if (object_ == kNowhere && depth_ > 0 && depth_ == (in_list_ ? 2 : 1)) object_ = at, object_depth_ = depth_;
      ++depth_;
      break;
    case '}':
    case ']':
      if (depth_ == 0)
        return bad("it does not begin with [ or {; expected a list of events or an object with traceEvents");
      --depth_;
      if (object_ != kNowhere && depth_ == object_depth_) {
        const std::string_view object(text_.data() + object_, at + 1 - object_);
        object_ = kNowhere;
        return visit(is_list_ || (in_list_ && key_ == "traceEvents") ? std::string_view() : key_, object);
      }
      if (depth_ == 1 && !is_list_) in_list_ = false;
      break;
    default:
      if (depth_ > 0 || is_space(c) || (!began_ && is_byte_order_mark(c))) break;
      return bad(fmt::format("{}; expected a list of events or an object with traceEvents",
                             began_ ? shown(c) + " after its end" : "it begins with " + shown(c)));
  }
  return Ok{};
}

Status EventSplitter::finish() const {
  if (object_ != kNowhere || string_ != kNowhere) return bad("it ends within an event; expected a whole file");
  return Ok{};
}

}  // namespace perseus::trace
