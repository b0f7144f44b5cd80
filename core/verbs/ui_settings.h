// How a person has set up the desk, kept from one day to the next: a file of their own, that
// anybody may have written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/io/store.h"
#include "core/verbs/sort.h"

namespace shw::verbs {

enum class UiTheme : std::uint8_t { kDark, kLight, kContrast };
inline constexpr std::array kUiThemes{UiTheme::kDark, UiTheme::kLight, UiTheme::kContrast};
std::string_view name(UiTheme theme);  // "dark", "light", "contrast"
std::optional<UiTheme> ui_theme(std::string_view name);

// What stood in the middle when the desk was left.
enum class UiPanel : std::uint8_t { kMap, kOverview, kBytes, kValues, kTable };

// Of the table of tensors, beside their names.
enum class TableColumn : std::uint8_t { kShape, kDtype, kBytes, kTiles };
inline constexpr std::size_t kTableColumns = 4;
// At scale 1; 0: the standard one.
using ColumnWidths = std::array<double, kTableColumns>;
double within(double width);  // what a column's may be

struct SideSettings {
  bool open = true;
  double part = 0;  // of the window's width; 0: the standard one
  friend bool operator==(const SideSettings&, const SideSettings&) = default;
};

inline constexpr double kLeastScale = 1, kMostScale = 3;

struct UiSettings {
  UiTheme theme = UiTheme::kDark;
  double scale = 1;  // times what the monitor asks for
  SideSettings left, right;
  SortKey sort = SortKey::kRecorded;
  bool descending = false;
  UiPanel panel = UiPanel::kMap;
  bool tour_seen = false;
  ColumnWidths columns{};  // by TableColumn
  friend bool operator==(const UiSettings&, const UiSettings&) = default;
};

// "$XDG_CONFIG_HOME/shardwright/desk.json"; empty where neither folder is said.
std::string ui_settings_file(const char* config_home, const char* home);

// All of it or nothing: what has our mark and a key that makes no sense is refused with the reason.
// Keys that are not known are passed over, numbers out of bounds are brought into them.
Result<UiSettings> parse_ui_settings(std::string_view text);
std::string to_text(const UiSettings& settings);

struct KeptSettings {
  UiSettings settings;       // as shipped where there is no file, or it is refused
  std::string refused = {};  // "line 3: ..."; empty: nothing was there, or it was taken
};
KeptSettings read_ui_settings(const Store& store, const std::string& file);
// A refused file is somebody's work: it is set aside as FILE.old before ours takes its name.
Status write_ui_settings(Store& store, const std::string& file, const UiSettings& settings,
                         bool set_aside);

}  // namespace shw::verbs
