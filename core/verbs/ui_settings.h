// Settings of the graphical interface in a file of the user, which is
// untrusted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/io/store.h"
#include "core/verbs/names/sort.h"
#include "core/verbs/options.h"

namespace shw::verbs {

enum class UiTheme : std::uint8_t { kDark, kLight, kContrast };
inline constexpr std::array kUiThemes{UiTheme::kDark, UiTheme::kLight, UiTheme::kContrast};
std::string_view name(UiTheme theme);  // "dark", "light", "contrast"
std::optional<UiTheme> ui_theme(std::string_view name);

// The central panel when the interface was closed.
enum class UiPanel : std::uint8_t { kMap, kOverview, kBytes, kValues, kTable };

// Columns of the table of tensors, besides names.
enum class TableColumn : std::uint8_t { kShape, kDtype, kBytes, kTiles };
inline constexpr std::size_t kTableColumns = 4;
// At scale 1; 0: default.
using ColumnWidths = std::array<double, kTableColumns>;
double within(double width);  // limits a column's width

struct SideSettings {
  bool open = true;
  double part = 0;  // fraction of the window's width; 0: default
  friend bool operator==(const SideSettings&, const SideSettings&) = default;
};

inline constexpr double kMinScale = 1, kMaxScale = 3;

struct UiSettings {
  UiTheme theme = UiTheme::kDark;
  double scale = 1;  // multiple of the monitor's scale
  SideSettings left, right;
  SortKey sort = SortKey::kRecorded;
  bool descending = false;
  UiPanel panel = UiPanel::kMap;
  bool tour_seen = false;
  ColumnWidths columns{};            // by TableColumn
  std::uint32_t ranks_per_node = 0;  // of the user's cluster; 0: not given
  friend bool operator==(const UiSettings&, const UiSettings&) = default;
};

// "$XDG_CONFIG_HOME/shardwright/desk.json"; empty if neither folder is set.
std::string ui_settings_file(const char* config_home, const char* home);

// Rejects the whole file if it has our mark and an invalid value, with the reason. Unknown keys are
// ignored, numbers are limited to their ranges.
Result<UiSettings> parse_ui_settings(std::string_view text);
std::string to_text(const UiSettings& settings);

struct LoadedUiSettings {
  UiSettings settings;       // defaults if there is no file or it is refused
  std::string refused = {};  // "line 3: ..."; empty: no file, or accepted
};
LoadedUiSettings read_ui_settings(const Store& store, const std::string& file);
// Refused files are the user's work, so they are renamed to FILE.old before writing.
Status write_ui_settings(Store& store, const std::string& file, const UiSettings& settings,
                         bool set_aside);

}  // namespace shw::verbs
