#include <fmt/core.h>

#include <imgui.h>
#include <imgui_stdlib.h>
#include <algorithm>

#include "views/actions.h"
#include "views/imgui_versions.h"
#include "views/line.h"
#include "views/panels/browser.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

using verbs::FolderListing;
using verbs::ListedPlace;
using verbs::PlaceKind;
using verbs::RecentPlace;

bool contains(std::string_view name, std::string_view part) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::search(name.begin(), name.end(), part.begin(), part.end(),
                     [&](char a, char b) { return lower(a) == lower(b); }) != name.end();
}

const std::vector<BrowserRow>& rows_of(const Frame& frame, BrowserState& browser) {
  BrowserRows& found = browser.found;
  std::vector<BrowserRow>& rows = found.rows;
  if (found.text == browser.text && found.folder == frame.snapshot.folder &&
      found.recent == frame.snapshot.recent)
    return rows;
  found = {frame.snapshot.folder, frame.snapshot.recent, browser.text, {}};
  auto [folder, part] = split_typed_path(browser.text);
  const FolderListing* listing = frame.snapshot.folder.get();
  if (listing != nullptr && listing->asked == folder) {
    // First names that begin with the typed text, then names that contain it.
    for (bool begins : {true, false}) {
      for (const ListedPlace& place : listing->places) {
        bool does = place.name.starts_with(part);
        if (does == begins && (does || contains(place.name, part)))
          rows.push_back({nullptr, &place});
      }
    }
  }
  if (frame.snapshot.recent != nullptr) {
    for (const RecentPlace& recent : *frame.snapshot.recent) {
      if (part.empty() || contains(recent.path, part)) rows.push_back({&recent, nullptr});
    }
  }
  return rows;
}

void set_text(BrowserState& browser, std::string text) {
  if (!browser.pending) browser.replaces = browser.text;
  browser.text = text;
  browser.pending = std::move(text);
  browser.row = -1;
}

// An absolute or home path that was typed or pasted after the existing text, such as "/runs/7/"
// followed by "/data/x"; empty if there is none.
std::string path_typed_after_another(std::string_view text) {
  std::size_t root = text.rfind("//"), home = text.rfind("/~/");
  std::size_t at = root == text.npos ? home : home == text.npos ? root : std::max(root, home);
  return at == text.npos ? "" : std::string(text.substr(at + 1));
}

// Callback of the text field: a focused field owns its text, so completions are inserted here.
int insert_completion(ImGuiInputTextCallbackData* data) {
  auto& browser = *static_cast<BrowserState*>(data->UserData);
  if (!browser.pending) return 0;
  // The field already contains this frame's key presses, which must be kept.
  std::string_view held{data->Buf, static_cast<std::size_t>(data->BufTextLen)};
  std::string text = *browser.pending;
  // A field that was entered again has taken the longer text already.
  if (text.size() > browser.replaces.size() && text.starts_with(browser.replaces) &&
      held.starts_with(text)) {
    browser.pending.reset();
    return 0;
  }
  if (held.starts_with(browser.replaces)) text += held.substr(browser.replaces.size());
  data->DeleteChars(0, data->BufTextLen);
  data->InsertChars(0, text.c_str());
  data->ClearSelection();
  browser.pending.reset();
  return 0;
}

void draw_field(Frame& frame, UiState& state, Column& column) {
  BrowserState& browser = state.browser;
  ImVec2 end{column.right, column.y + frame.px(36)};
  column.draw->AddRectFilled({column.left, column.y}, end, frame.theme.field, frame.px(5));
  column.draw->AddRect({column.left, column.y}, end, frame.theme.control, frame.px(5));
  push_font(frame.fonts.mono_small);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding,
                      ImVec2{frame.px(12), std::floor((frame.px(36) - ImGui::GetFontSize()) / 2)});
  ImGui::PushStyleColor(ImGuiCol_FrameBg, IM_COL32_BLACK_TRANS);
  ImGui::SetCursorScreenPos({column.left, column.y});
  ImGui::SetNextItemWidth(column.width());
  if (browser.wanted) ImGui::SetKeyboardFocusHere();
  browser.wanted = false;
  // With the completion flag Tab stays in the field; the key handler below handles Tab.
  InputStyle look;
  look.hint = "a path; Tab completes it";
  look.flags = ImGuiInputTextFlags_CallbackAlways | ImGuiInputTextFlags_CallbackCompletion;
  look.callback = insert_completion;
  look.user = &browser;
  if (edit_line(frame, "browser/path", browser.text, look,
                "The path of a checkpoint or a folder. Tab completes it, arrows choose a row.")) {
    browser.row = -1;
    if (std::string anew = path_typed_after_another(browser.text); !anew.empty())
      set_text(browser, anew);
  }
  ImGui::PopStyleColor();
  ImGui::PopStyleVar();
  ImGui::PopFont();
  column.take(frame.px(46));
}

void complete(BrowserState& browser, const std::vector<BrowserRow>& rows) {
  auto [folder, part] = split_typed_path(browser.text);
  if (browser.row >= 0 && static_cast<std::size_t>(browser.row) < rows.size()) {
    const BrowserRow& row = rows[static_cast<std::size_t>(browser.row)];
    if (row.recent != nullptr) return set_text(browser, row.recent->path);
    return set_text(browser,
                    folder + row.place->name + (row.place->kind == PlaceKind::kFile ? "" : "/"));
  }
  std::vector<std::string_view> names;
  const ListedPlace* only = nullptr;
  for (const BrowserRow& row : rows) {
    if (row.place == nullptr || !row.place->name.starts_with(part)) continue;
    names.push_back(row.place->name);
    only = row.place;
  }
  if (names.empty()) return;
  bool whole = names.size() == 1 && only->kind != PlaceKind::kFile;
  set_text(browser, folder + common_prefix(names) + (whole ? "/" : ""));
}

// Opens a checkpoint, or enters a folder.
void take(Frame& frame, UiState& state, const BrowserRow& row) {
  if (row.recent != nullptr) return open_place(frame, state, reopen_recent_command(*row.recent));
  const FolderListing& listing = *frame.snapshot.folder;
  if (row.place->is_openable()) {
    std::string base = listing.path == "/" ? "/" : listing.path + "/";
    return open_place(frame, state, {base + row.place->name});
  }
  set_text(state.browser, split_typed_path(state.browser.text).first + row.place->name + "/");
  state.browser.wanted = true;
}

void open_typed_or_chosen_path(Frame& frame, UiState& state, const std::vector<BrowserRow>& rows) {
  BrowserState& browser = state.browser;
  if (browser.row >= 0 && static_cast<std::size_t>(browser.row) < rows.size())
    return take(frame, state, rows[static_cast<std::size_t>(browser.row)]);
  auto [folder, part] = split_typed_path(browser.text);
  const FolderListing* listing = frame.snapshot.folder.get();
  bool listed = listing != nullptr && listing->asked == folder && !listing->error;
  if (listed && part.empty() && (listing->here.is_openable() || listing->here.contains_checkpoints))
    return open_place(frame, state, {listing->path});
  for (const BrowserRow& row : rows) {
    if (row.place != nullptr && row.place->name == part) return take(frame, state, row);
  }
  if (part.empty()) return;
  // A path outside the list is opened as typed; its error explains what is wrong.
  std::string base = listed ? (listing->path == "/" ? "/" : listing->path + "/") : folder;
  open_place(frame, state, {base + part});
}

void draw_place(Frame& frame, ImDrawList* draw, const ListedPlace& place, ImVec2 min, ImVec2 max) {
  float middle = (min.y + max.y) / 2, x = min.x + frame.px(8), right = max.x - frame.px(8);
  std::string what = place.looked ? place.what : "…";
  if (place.tensors) what += fmt::format(", {}", plural(*place.tensors, "tensor"));
  const Measure small = measure_with(frame.fonts.small);
  right -= draw_text_ending_at(draw, frame.fonts.small, right, middle,
                               place.is_openable() ? frame.theme.ok : frame.theme.quiet,
                               elide_middle(what, (right - x) * 0.5f, small));
  std::string name = place.name + (place.kind == PlaceKind::kFile ? "" : "/");
  text_from(draw, place.is_openable() ? frame.fonts.mono_strong : frame.fonts.mono_small, x, middle,
            frame.theme.text,
            elide_middle(name, right - x - frame.px(16), measure_with(frame.fonts.mono_small)));
}

std::string browser_tip(const BrowserRow& row) {
  if (row.recent != nullptr) return printable(row.recent->path) + "\nOpens it as it was before.";
  const bool opens = row.place->is_openable() || row.place->kind == PlaceKind::kFile;
  return printable(row.place->name) + (opens ? "\nOpens it.  (Enter)" : "\nLists this folder.");
}

void draw_rows(Frame& frame, UiState& state, Column& column, const std::vector<BrowserRow>& rows,
               float bottom) {
  float line = frame.px(27);
  begin_region(frame, "browser/list",
               {{column.left - frame.px(8), column.y}, {column.right + frame.px(8), bottom}},
               frame.theme.side, true);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2{0, 0});
  ImGui::SetCursorPos({0, 0});
  if (state.browser.reveal && state.browser.row >= 0) {
    float top = line * static_cast<float>(state.browser.row), high = bottom - column.y;
    if (top < ImGui::GetScrollY()) ImGui::SetScrollY(top);
    if (top + line > ImGui::GetScrollY() + high) ImGui::SetScrollY(top + line - high);
  }
  state.browser.reveal = false;
  float width = ImGui::GetContentRegionAvail().x;
  std::optional<std::size_t> taken;
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()), line);
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const BrowserRow& row = rows[static_cast<std::size_t>(i)];
      ImVec2 min = ImGui::GetCursorScreenPos(), max{min.x + width, min.y + line};
      ImGui::PushID(i);
      const auto tip = [&] { return browser_tip(row); };
      if (row_control(frame, "row", fmt::format("browser/row/{}", i), {width, line},
                      i == state.browser.row, tip))
        taken = static_cast<std::size_t>(i);
      ImDrawList* draw = ImGui::GetWindowDrawList();
      if (i == state.browser.row || ImGui::IsItemHovered())
        draw->AddRectFilled(
            min, max, i == state.browser.row ? frame.theme.selected : frame.theme.raised_hover,
            frame.px(4));
      if (row.recent != nullptr)
        draw_recent(
            frame, draw, *row.recent,
            "opened before" + (row.recent->summary.empty() ? "" : ". " + row.recent->summary), min,
            max);
      else
        draw_place(frame, draw, *row.place, min, max);
      focus_ring(frame, draw);
      ImGui::PopID();
    }
  }
  ImGui::PopStyleVar();
  end_region();
  if (taken) take(frame, state, rows[*taken]);
}

// Describes the folder itself and how much of it is not listed.
std::string folder_text(const FolderListing* listing, const std::string& folder) {
  if (listing == nullptr || listing->asked != folder) return "Listing…";
  if (listing->error) return listing->error->message;
  std::string text = listing->path;
  if (listing->here.looked && !listing->here.what.empty()) text += ": " + listing->here.what;
  if (listing->here.tensors) text += ", " + plural(*listing->here.tensors, "tensor");
  if (!listing->is_complete())
    text += fmt::format("; checked {} of {}", human_count(listing->looked),
                        human_count(listing->places.size()));
  else if (!listing->places.empty())
    text += "; " + human_count(listing->places.size()) + " listed";
  if (listing->other_files > 0) text += ", " + plural(listing->other_files, "other entry");
  return text;
}

}  // namespace

void draw_recent(Frame& frame, ImDrawList* draw, const verbs::RecentPlace& recent,
                 const std::string& said, ImVec2 min, ImVec2 max) {
  Sign sign = recent.verdict == "clean"      ? Sign::kOk
              : recent.verdict == "findings" ? Sign::kBad
              : recent.verdict == "warnings" ? Sign::kWarn
                                             : Sign::kUnknown;
  const float middle = (min.y + max.y) / 2, x = min.x + frame.px(8 + 22);
  draw_sign(frame, draw, {min.x + frame.px(8 + 6), middle}, frame.px(6), sign);
  float room = max.x - x - frame.px(8);
  const Measure small = measure_with(frame.fonts.small);
  std::string shown = elide_middle(said, room * 0.45f, small);
  room -= draw_text_ending_at(draw, frame.fonts.small, max.x - frame.px(8), middle,
                              frame.theme.quiet, shown);
  text_from(draw, frame.fonts.mono_small, x, middle, frame.theme.text,
            elide_path(recent.path, room - frame.px(12), measure_with(frame.fonts.mono_small)));
}

void draw_browser(Frame& frame, UiState& state) {
  BrowserState& browser = state.browser;
  ImVec2 screen = ImGui::GetIO().DisplaySize;
  ImVec2 size{std::min(frame.px(760), screen.x - frame.px(48)),
              std::min(frame.px(620), screen.y - frame.px(48))};
  Column column;
  if (!begin_overlay(frame, "##browser", size, column)) browser.open = false;
  const char* verb = browser.compares ? "Compare" : "Open";
  paragraph(frame, column, frame.fonts.title, frame.theme.text,
            browser.compares     ? "Compare with another checkpoint"
            : browser.in_new_tab ? "Open a checkpoint in a new tab"
                                 : "Open a checkpoint",
            Gap::kMedium);
  draw_field(frame, state, column);
  std::string folder = split_typed_path(browser.text).first;
  if (browser.asked != folder) {
    browser.asked = folder;
    frame.emit(BrowseCommand{folder});
  }
  const std::vector<BrowserRow>& rows = rows_of(frame, browser);
  const FolderListing* listing = frame.snapshot.folder.get();
  Column below = column;
  below.y = column.bottom - frame.px(46);
  for (KeyPress key : frame.keys) {
    bool moves = key.key == Key::kDown || key.key == Key::kUp;
    if (moves && !key.alt) browser.row += key.key == Key::kDown ? 1 : -1;
    if (moves) browser.reveal = true;
    if (key == KeyPress{Key::kTab}) complete(browser, rows);
  }
  browser.row = std::clamp(browser.row, -1, static_cast<int>(rows.size()) - 1);
  bool wrong = listing != nullptr && listing->asked == folder && listing->error;
  text_line(frame, column, frame.fonts.small, wrong ? frame.theme.bad : frame.theme.quiet,
            folder_text(listing, folder), Gap::kSmall);
  draw_rows(frame, state, column, rows, below.y - frame.px(10));
  Line line(frame, below);
  bool click =
      line.button_at_end("browser/open", verb,
                         browser.compares ? "Compares with the chosen checkpoint.  (Enter)"
                                          : "Opens the chosen checkpoint or folder.  (Enter)",
                         ButtonStyle::kPrimary);
  if (line.button_at_end("browser/close", "Cancel", "Closes this panel and opens nothing.  (Esc)"))
    browser.open = false;
  line.text(frame.fonts.small, frame.theme.quiet,
            browser.compares
                ? "Tab completes, arrows choose, Enter compares"
                : "Tab completes, arrows choose, Enter opens, Ctrl+Enter in a new tab");
  const bool in_tab = !browser.compares && is_possible(Action::kOpenInTab, frame, state) &&
                      frame.pressed({Key::kEnter, true, false, false});
  if (in_tab) browser.in_new_tab = true;
  bool enter = in_tab || frame.pressed({Key::kEnter});
  if (browser.open && (click || enter)) {
    open_typed_or_chosen_path(frame, state, rows);
    browser.wanted = browser.open;
  }
  end_overlay();
}

}  // namespace shw
