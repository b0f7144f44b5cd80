#include "core/verbs/recent.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/utf8.h"
#include "core/io/place.h"
#include "core/io/source.h"

namespace shw::verbs {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostRecentBytes = 1 << 20;
constexpr std::size_t kMostPathText = 4096;  // of one path: PATH_MAX

std::string text_in(const Json& json, const char* key) {
  auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return {};
  auto text = found->get<std::string>();
  return text.size() > kMostPathText ? std::string() : text;
}

}  // namespace

std::string recent_file(const char* state_home, const char* home) {
  constexpr const char* kName = "/shardwright/recent.json";
  // A relative one is to be passed over, as the XDG specification has it.
  if (state_home != nullptr && state_home[0] == '/') return std::string(state_home) + kName;
  if (home == nullptr || home[0] != '/') return {};
  return std::string(home) + "/.local/state" + kName;
}

RecentPlaces parse_recent(std::string_view text) {
  RecentPlaces places;
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) return places;
  auto list = json.find("recent");
  if (list == json.end() || !list->is_array()) return places;
  for (const Json& each : *list) {
    if (!each.is_object() || places.size() == kMostRecent) continue;
    RecentPlace place{text_in(each, "path"), text_in(each, "spec"),    text_in(each, "against"),
                      text_in(each, "mesh"), text_in(each, "verdict"), text_in(each, "summary")};
    if (!place.path.empty()) places.push_back(std::move(place));
  }
  return places;
}

RecentPlaces read_recent(const std::string& file) {
  auto source = open_file(file, file);
  if (!source || (*source)->size() > kMostRecentBytes) return {};
  auto bytes = read_bytes(**source, 0, (*source)->size());
  if (!bytes) return {};
  return parse_recent({reinterpret_cast<const char*>(bytes->data()), bytes->size()});
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
  // JSON has no other names; such a place is opened by hand.
  if (place.path.empty() || !is_utf8(place.path)) return places;
  std::erase_if(places, [&](const RecentPlace& other) { return other.path == place.path; });
  places.insert(places.begin(), std::move(place));
  if (places.size() > kMostRecent) places.resize(kMostRecent);
  return places;
}

Status write_recent(Store& store, const std::string& file, const RecentPlaces& places) {
  // From the nearest folder that is there: those below it are made on the way.
  std::string base = parent_of(file);
  while (!store.exists(base) && parent_of(base) != base) base = parent_of(base);
  std::string name = file.substr(base == "/" ? 1 : base.size() + 1);
  SHW_TRY(auto folder, store.edit_folder(base));
  std::string half = name + ".new";
  if (store.exists(file + ".new")) SHW_CHECK(folder->remove(half));
  SHW_CHECK(write_text(*folder, half, to_text(places)));
  return folder->rename(half, name);
}

}  // namespace shw::verbs
