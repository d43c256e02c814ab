#include "io/formats/boost_json_text.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <string_view>

#include "base/json_writer.h"

namespace perseus::formats {
namespace {

/// Makes append_json() find append_json_form() here.
struct Shown {
  const boost::json::value& value;
};

auto elements_of(const boost::json::array& array) {
  return JsonList{array, [](const boost::json::value& element) { return Shown{element}; }};
}
auto members_of(const boost::json::object& object) {
  return JsonObject{[&object](JsonWriter& f) {
    for (const auto& [key, value] : object) f.always(std::string_view(key.data(), key.size()), Shown{value});
  }};
}

void append_json_form(std::string& out, const Shown& shown) {
  using boost::json::kind;
  const boost::json::value& value = shown.value;
  switch (value.kind()) {
    case kind::object:
      return append_json(out, members_of(value.get_object()));
    case kind::array:
      return append_json(out, elements_of(value.get_array()));
    case kind::string:
      return append_json(out, std::string_view(value.get_string().data(), value.get_string().size()));
    case kind::int64:
      return append_json(out, value.get_int64());
    case kind::uint64:
      return append_json(out, value.get_uint64());
    case kind::double_:
      return append_json(out, value.get_double());
    case kind::bool_:
      return append_json(out, value.get_bool());
    case kind::null:
      break;
  }
  append_json(out, JsonRaw{"null"});
}

}  // namespace

std::string json_text(const boost::json::value& value) { return perseus::json_text(Shown{value}); }
std::string json_text(const boost::json::object& object) { return perseus::json_text(members_of(object)); }
std::string json_text(const boost::json::array& array) { return perseus::json_text(elements_of(array)); }

}  // namespace perseus::formats
