#include "core/verbs/ui_settings.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "core/base/json.h"
#include "core/verbs/user_files.h"

namespace shw::verbs {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMark =
    "shardwright-desk";  // identifies the file and the version of its keys
constexpr double kMinPart = 0.05, kMaxPart = 0.9;

template <class T>
using Words = std::span<const std::pair<T, std::string_view>>;

constexpr std::pair<UiTheme, std::string_view> kThemeWords[] = {
    {UiTheme::kDark, "dark"}, {UiTheme::kLight, "light"}, {UiTheme::kContrast, "contrast"}};
constexpr std::pair<SortKey, std::string_view> kSortWords[] = {
    {SortKey::kRecorded, "recorded"}, {SortKey::kName, "name"},         {SortKey::kBytes, "bytes"},
    {SortKey::kChunks, "tiles"},      {SortKey::kFindings, "findings"}, {SortKey::kShape, "shape"},
    {SortKey::kDtype, "dtype"}};
constexpr std::pair<UiPanel, std::string_view> kPanelWords[] = {{UiPanel::kMap, "map"},
                                                                {UiPanel::kOverview, "overview"},
                                                                {UiPanel::kBytes, "bytes"},
                                                                {UiPanel::kValues, "values"},
                                                                {UiPanel::kTable, "table"}};
constexpr std::pair<TableColumn, const char*> kColumnWords[] = {{TableColumn::kShape, "shape"},
                                                                {TableColumn::kDtype, "dtype"},
                                                                {TableColumn::kBytes, "bytes"},
                                                                {TableColumn::kTiles, "tiles"}};
constexpr double kMinColumn = 40, kMaxColumn = 2000;

template <class T>
std::string_view word_of(T value, Words<T> words) {
  for (auto [each, word] : words) {
    if (each == value) return word;
  }
  return {};
}

// Reads keys of an object; remembers the first invalid one.
class Keys {
 public:
  Keys(const Json& json, std::string& wrong) : json_(json), wrong_(wrong) {}

  void take(const char* key, double& into, double least, double most) {
    if (const Json* found = find(key)) {
      if (!found->is_number()) return say(key, "is not a number");
      // JSON has no NaN, and overflows were rejected by the parser.
      into = std::clamp(found->get<double>(), least, most);
    }
  }
  void take(const char* key, bool& into) {
    if (const Json* found = find(key)) {
      if (!found->is_boolean()) return say(key, "is neither true nor false");
      into = found->get<bool>();
    }
  }
  template <class T>
  void take(const char* key, T& into, Words<T> words) {
    const Json* found = find(key);
    if (found == nullptr) return;
    std::string known;
    for (auto [value, word] : words) {
      if (found->is_string() && found->get_ref<const std::string&>() == word) {
        into = value;
        return;
      }
      known += (known.empty() ? "" : ", ") + std::string(word);
    }
    say(key, "is none of " + known);
  }
  void take(const char* key, SideSettings& into) {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_object()) return say(key, "is not an object");
    Keys inside(*found, wrong_);
    inside.take("open", into.open);
    inside.take("part", into.part, 0, kMaxPart);
    if (into.part > 0) into.part = std::max(into.part, kMinPart);
  }
  void take(const char* key, ColumnWidths& into) {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_object()) return say(key, "is not an object");
    Keys inside(*found, wrong_);
    for (auto [column, word] : kColumnWords) {
      double& width = into[static_cast<std::size_t>(column)];
      inside.take(word, width, 0, kMaxColumn);
      if (width > 0) width = within(width);
    }
  }

 private:
  const Json* find(const char* key) const {
    auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  void say(const char* key, const std::string& what) {
    if (wrong_.empty()) wrong_ = fmt::format("\"{}\" {}", key, what);
  }

  const Json& json_;
  std::string& wrong_;
};

Json json_of(const ColumnWidths& widths) {
  Json json = Json::object();
  for (auto [column, word] : kColumnWords) json[word] = widths[static_cast<std::size_t>(column)];
  return json;
}
Json json_of(const SideSettings& side) {
  return {{"open", side.open}, {"part", side.part}};
}

tl::unexpected<Error> refuse(std::string why) {
  return fail(ErrorKind::kDamaged, std::move(why));
}

}  // namespace

double within(double width) {
  return std::clamp(width, kMinColumn, kMaxColumn);
}

std::string_view name(UiTheme theme) {
  return word_of<UiTheme>(theme, kThemeWords);
}

std::optional<UiTheme> ui_theme(std::string_view name) {
  for (auto [theme, word] : kThemeWords) {
    if (word == name) return theme;
  }
  return std::nullopt;
}

std::string ui_settings_file(const char* config_home, const char* home) {
  return user_file_path(config_home, home, ".config", "desk.json");
}

Result<UiSettings> parse_ui_settings(std::string_view text) {
  Json json = parse_json<Json>(text).tree;
  if (json.is_discarded()) return refuse("it is not JSON");
  if (!json.is_object() || !json.contains(kMark))
    return refuse(fmt::format("it has no \"{}\": another program wrote it", kMark));
  UiSettings settings;
  std::string wrong;
  Keys keys(json, wrong);
  keys.take<UiTheme>("theme", settings.theme, kThemeWords);
  keys.take("scale", settings.scale, kMinScale, kMaxScale);
  keys.take("left", settings.left);
  keys.take("right", settings.right);
  keys.take<SortKey>("sort", settings.sort, kSortWords);
  keys.take("descending", settings.descending);
  keys.take<UiPanel>("panel", settings.panel, kPanelWords);
  keys.take("tour_seen", settings.tour_seen);
  keys.take("columns", settings.columns);
  double ranks = 0;
  keys.take("ranks_per_node", ranks, 0, kMaxRanksPerNode);
  settings.ranks_per_node = static_cast<std::uint32_t>(ranks);
  if (!wrong.empty()) return refuse(std::move(wrong));
  return settings;
}

std::string to_text(const UiSettings& settings) {
  Json json;
  json[kMark] = 1;
  json["theme"] = name(settings.theme);
  json["scale"] = settings.scale;
  json["left"] = json_of(settings.left);
  json["right"] = json_of(settings.right);
  json["sort"] = word_of<SortKey>(settings.sort, kSortWords);
  json["descending"] = settings.descending;
  json["panel"] = word_of<UiPanel>(settings.panel, kPanelWords);
  json["tour_seen"] = settings.tour_seen;
  json["columns"] = json_of(settings.columns);
  json["ranks_per_node"] = settings.ranks_per_node;
  return json.dump(1) + "\n";
}

LoadedUiSettings read_ui_settings(const Store& store, const std::string& file) {
  if (!store.exists(file)) return {};
  auto text = read_user_file(file);
  if (!text) return {{}, text.error().message};
  auto settings = parse_ui_settings(*text);
  if (!settings) return {{}, settings.error().message};
  return {*settings};
}

Status write_ui_settings(Store& store, const std::string& file, const UiSettings& settings,
                         bool set_aside) {
  if (set_aside && store.exists(file)) {
    std::size_t slash = file.rfind('/');
    SHW_TRY(auto folder, store.edit_folder(file.substr(0, slash)));
    SHW_CHECK(folder->rename(file.substr(slash + 1), file.substr(slash + 1) + ".old"));
  }
  return write_user_file(store, file, to_text(settings));
}

}  // namespace shw::verbs
