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

enum class DeskTheme : std::uint8_t { kDark, kLight, kContrast };
inline constexpr std::array kDeskThemes{DeskTheme::kDark, DeskTheme::kLight, DeskTheme::kContrast};
std::string_view name(DeskTheme theme);  // "dark", "light", "contrast"
std::optional<DeskTheme> desk_theme(std::string_view name);

// What stood in the middle when the desk was left.
enum class DeskPanel : std::uint8_t { kMap, kOverview, kBytes, kValues, kTable };

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

struct DeskSettings {
  DeskTheme theme = DeskTheme::kDark;
  double scale = 1;  // times what the monitor asks for
  SideSettings left, right;
  SortKey sort = SortKey::kRecorded;
  bool descending = false;
  DeskPanel panel = DeskPanel::kMap;
  bool tour_seen = false;
  ColumnWidths columns{};  // by TableColumn
  friend bool operator==(const DeskSettings&, const DeskSettings&) = default;
};

// "$XDG_CONFIG_HOME/shardwright/desk.json"; empty where neither folder is said.
std::string desk_settings_file(const char* config_home, const char* home);

// All of it or nothing: what has our mark and a key that makes no sense is refused with the reason.
// Keys that are not known are passed over, numbers out of bounds are brought into them.
Result<DeskSettings> parse_desk_settings(std::string_view text);
std::string to_text(const DeskSettings& settings);

struct KeptSettings {
  DeskSettings settings;     // as shipped where there is no file, or it is refused
  std::string refused = {};  // "line 3: ..."; empty: nothing was there, or it was taken
};
KeptSettings read_desk_settings(const Store& store, const std::string& file);
// A refused file is somebody's work: it is set aside as FILE.old before ours takes its name.
Status write_desk_settings(Store& store, const std::string& file, const DeskSettings& settings,
                           bool set_aside);

}  // namespace shw::verbs
