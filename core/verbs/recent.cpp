#include "core/verbs/recent.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json.h"
#include "core/base/utf8.h"
#include "core/verbs/user_files.h"

namespace shw::verbs {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxPathText = 4096;  // per path: PATH_MAX

std::string text_in(const Json& json, const char* key) {
  auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return {};
  auto text = found->get<std::string>();
  return text.size() > kMaxPathText ? std::string() : text;
}

}  // namespace

std::string recent_file(const char* state_home, const char* home) {
  return user_file_path(state_home, home, ".local/state", "recent.json");
}

RecentPlaces parse_recent(std::string_view text) {
  RecentPlaces places;
  Json json = parse_json<Json>(text).tree;
  if (!json.is_object()) return places;
  auto list = json.find("recent");
  if (list == json.end() || !list->is_array()) return places;
  for (const Json& each : *list) {
    if (!each.is_object() || places.size() == kMaxRecent) continue;
    RecentPlace place{text_in(each, "path"), text_in(each, "spec"),    text_in(each, "against"),
                      text_in(each, "mesh"), text_in(each, "verdict"), text_in(each, "summary")};
    if (!place.path.empty()) places.push_back(std::move(place));
  }
  return places;
}

RecentPlaces read_recent(const std::string& file) {
  auto text = read_user_file(file);
  return text ? parse_recent(*text) : RecentPlaces{};
}

std::string to_text(const RecentPlaces& places) {
  Json list = Json::array();
  for (const RecentPlace& place : places) {
    Json each;
    each["path"] = place.path;
    for (auto [key, text] : {std::pair{"spec", &place.spec}, std::pair{"against", &place.against},
                             std::pair{"mesh", &place.mesh}, std::pair{"verdict", &place.verdict},
                             std::pair{"summary", &place.summary}}) {
      if (!text->empty()) each[key] = *text;
    }
    list.push_back(std::move(each));
  }
  Json json;
  json["recent"] = std::move(list);
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

RecentPlaces with_place(RecentPlaces places, RecentPlace place) {
  // JSON cannot store other names; such checkpoints are not listed.
  if (place.path.empty() || !is_utf8(place.path)) return places;
  std::erase_if(places, [&](const RecentPlace& other) { return other.path == place.path; });
  places.insert(places.begin(), std::move(place));
  if (places.size() > kMaxRecent) places.resize(kMaxRecent);
  return places;
}

Status write_recent(Store& store, const std::string& file, const RecentPlaces& places) {
  return write_user_file(store, file, to_text(places));
}

}  // namespace shw::verbs
