#include "remote/answer_members.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

namespace perseus::cli {

namespace json = boost::json;

const json::value* member_in(const json::value& value, std::string_view name) {
  const json::object* const object = value.if_object();
  return object == nullptr ? nullptr : object->if_contains(name);
}

std::string text_in(const json::value& value, std::string_view name) {
  const json::value* const text = member_in(value, name);
  return text != nullptr && text->is_string() ? std::string(text->get_string().c_str()) : std::string();
}

std::optional<double> number_in(const json::value& value, std::string_view name) {
  const json::value* const number = member_in(value, name);
  return number != nullptr && number->is_number() ? std::optional(number->to_number<double>()) : std::nullopt;
}

const json::array& list_in(const json::value& value, std::string_view name) {
  static const json::array none;
  const json::value* const list = member_in(value, name);
  return list != nullptr && list->is_array() ? list->get_array() : none;
}

json::array* list_to_change(json::value& value, std::string_view name) {
  json::object* const object = value.if_object();
  json::value* const list = object == nullptr ? nullptr : object->if_contains(name);
  return list == nullptr ? nullptr : list->if_array();
}

}  // namespace perseus::cli
