#include "server/openadr/ven_registration.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/json_writer.h"
#include "base/percent_encode.h"
#include "io/formats/json_reader.h"

namespace perseus::openadr {
namespace {

constexpr int kConflict = 409;

}  // namespace

Status VenRegistration::register_once() {
  if (done_) return Ok{};
  const std::string ven = json_object([&](JsonWriter& f) {
    f.always("objectType", "VEN_VEN_REQUEST");
    f.always("venName", ven_);
  });
  const auto ven_id = found_or_made("/vens", "?venName=" + percent_encode(ven_), "venName", ven_, ven);
  if (!ven_id) return ven_id.error();
  if (ven_id->empty()) return Error{ErrorCode::unavailable, "POST /vens: 409, and GET /vens does not have it"};
  const std::string resource = json_object([&](JsonWriter& f) {
    f.always("objectType", "VEN_RESOURCE_REQUEST");
    f.always("resourceName", resource_);
    f.always("venID", *ven_id);
  });
  const auto made =
      found_or_made("/resources", "?resourceName=" + percent_encode(resource_) + "&venID=" + percent_encode(*ven_id),
                    "resourceName", resource_, resource);
  if (!made) return made.error();
  done_ = true;
  return Ok{};
}

Result<std::string> VenRegistration::found_or_made(const std::string& list, const std::string& query,
                                                   const std::string& name_member, const std::string& name,
                                                   const std::string& body) {
  for (const bool again : {false, true}) {
    const auto objects = client_.list<NamedObject>(
        list + query + "&", [&](const auto& page) { return parse_named_objects(page, "GET " + list, name_member); },
        nullptr, [&](const NamedObject& object) { return object.name == name; });
    if (!objects) return objects.error();
    const auto found = std::ranges::find(*objects, name, &NamedObject::name);
    if (found != objects->end()) return found->id;
    if (again) break;
    const auto made = client_.call({"POST", list, body}, kConflict);
    if (!made) return made.error();
    if (made->status != kConflict) return parse_object_id(made->body, "POST " + list);
  }
  return std::string();
}

Result<std::vector<NamedObject>> parse_named_objects(std::string_view text, const std::string& what,
                                                     std::string_view name_member) {
  const auto document = formats::parse_json(text, what);
  if (!document) return document.error();
  std::vector<NamedObject> objects;
  const Status read = document->root().for_each([&](const formats::JsonReader& element) -> Status {
    if (std::ssize(objects) >= kMostObjects) return element.error(fmt::format("at most {} objects", kMostObjects));
    formats::JsonFields fields(element);
    NamedObject object{std::string(fields.string("id")), std::string(fields.string(name_member))};
    if (!fields.error() && !object.id.empty() && object.id.size() <= kMostText) objects.push_back(std::move(object));
    return Ok{};
  });
  if (!read) return read.error();
  return objects;
}

Result<std::string> parse_object_id(const std::string& text, const std::string& what) {
  const auto document = formats::parse_json(text, what);
  if (!document) return Error{ErrorCode::unavailable, document.error().message};
  formats::JsonFields fields(document->root());
  std::string id(fields.string("id"));
  if (fields.error()) return Error{ErrorCode::unavailable, fields.error()->message};
  if (id.empty() || id.size() > kMostText) {
    return Error{ErrorCode::unavailable, fmt::format("{}: an id of 1 to {} bytes is missing", what, kMostText)};
  }
  return id;
}

}  // namespace perseus::openadr
