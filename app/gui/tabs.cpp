#include "app/gui/tabs.h"

#include <fmt/core.h>

#include <algorithm>

#include "app/gui/view_state.h"
#include "views/panels/panels.h"

namespace shw {

Tabs::Tabs(std::function<std::unique_ptr<Workbench>()> make) : make_(std::move(make)) {
  append();
}

void Tabs::append() {
  tabs_.push_back({next_id_++, make_()});
  Workbench& bench = *tabs_.back().bench;
  bench.record_in(record_);
  if (tabs_.size() == 1) return;
  const UiState& before = shown().desk();
  PanelsState& panel_state = bench.desk().panel_state;
  panel_state.settings_file = before.panel_state.settings_file;
  panel_state.cache_folder = before.panel_state.cache_folder;
  verbs::UiSettings settings = settings_of(before);
  settings.panel = verbs::UiPanel::kMap;
  apply_settings(bench.desk(), settings);
  bench.apply(bench.desk().sort);
}

void Tabs::add_empty() {
  if (tabs_.size() >= kMaxTabs) return;
  note("new-tab");
  append();
  show(tabs_.size() - 1);
}

void Tabs::open_all(const GuiOptions& options) {
  if (options.checkpoint.empty()) return;
  shown().open(options);
  GuiOptions next = options;
  for (const std::string& checkpoint : options.more) {
    if (tabs_.size() == kMaxTabs) break;
    next.checkpoint = checkpoint;
    add_empty();
    shown().open(next);
  }
  show(0);
}

Status Tabs::record_in(const std::string& file) {
  auto record = std::make_shared<std::ofstream>(file, std::ios::trunc);
  if (!*record) return fail(ErrorKind::kIo, "cannot write the record", {file});
  *record << "# shardwright-gui --replay plays it\n" << std::flush;
  record_ = std::move(record);
  for (Tab& tab : tabs_) tab.bench->record_in(record_);
  return {};
}

void Tabs::note(std::string line) {
  if (record_ == nullptr || line.find_first_of("\n\r") != line.npos) return;
  *record_ << line << std::endl;
}

// Records panels, colours, zoom and slice once they have stood still for a frame.
void Tabs::record_view_if_stable() {
  if (record_ == nullptr || shown().busy()) return;
  Tab& tab = tabs_[shown_];
  std::string line = view_state_to_line(tab.bench->desk());
  if (line == tab.view && line != tab.noted_view) {
    if (!tab.noted_view.empty()) note(line);
    tab.noted_view = line;
  }
  tab.view = std::move(line);
}

void Tabs::autosave_settings_to(const std::string& file) {
  if (file.empty()) return;
  UiState& desk = shown().desk();
  keeper_ = std::make_unique<SettingsAutosaver>(file, desk.panel_state);
  apply_settings(desk, keeper_->read());
  if (!desk.panel_state.settings_refused.empty()) {
    desk.toast = "Settings were not loaded from " + file + ": " + desk.panel_state.settings_refused;
    desk.toast_until = 12;
  }
  shown().apply(desk.sort);
}

OpenTabs Tabs::described() const {
  OpenTabs described;
  described.shown = shown_;
  described.id = tabs_[shown_].id;
  described.tabs.resize(tabs_.size());
  // A single tab needs no tab strip.
  if (tabs_.size() == 1) return described;
  for (std::size_t t = 0; t < tabs_.size(); ++t) described.tabs[t] = tabs_[t].bench->described();
  return described;
}

// Theme, scale and columns belong to the window; the panel and the sort order belong to the tab.
void Tabs::show(std::size_t tab) {
  if (tab == shown_ || tab >= tabs_.size()) return;
  verbs::UiSettings settings = settings_of(shown().desk());
  UiState& next = tabs_[tab].bench->desk();
  const verbs::UiSettings own = settings_of(next);
  settings.sort = own.sort;
  settings.descending = own.descending;
  settings.panel = verbs::UiPanel::kMap;
  apply_settings(next, settings);
  shown_ = tab;
  note(fmt::format("tab {}", tab));
}

// Selects the tensor with the same name in the other checkpoint, if it exists; also the same slice
// and zoom if it has the same shape.
void Tabs::show_same_tensor_in_tab(std::size_t tab) {
  if (tab >= tabs_.size() || tab == shown_) return;
  const auto here = shown().snapshot();
  const MapState map = shown().desk().map;
  show(tab);
  const auto there = shown().snapshot();
  if (here->checkpoint == nullptr || there->checkpoint == nullptr || !here->tensor) return;
  const std::string fqn(here->checkpoint->fqn(*here->tensor));
  const std::optional<TensorId> found = there->checkpoint->find(fqn);
  UiState& desk = shown().desk();
  if (!found) {
    desk.toast = "This checkpoint has no tensor " + fqn + ".";
    desk.toast_until = ImGui::GetTime() + 6;
    return;
  }
  shown().apply(SelectTensorCommand{fqn});
  desk.summary_open = false;
  if (std::ranges::equal(there->checkpoint->shape(*found), here->checkpoint->shape(*here->tensor)))
    desk.requested_place =
        WantedPlace{*found, map.slice, map.zoom, map.pan_row, map.pan_column, map.leads_after};
}

void Tabs::close(std::size_t tab) {
  if (tabs_.size() == 1) return;
  const std::size_t next = tab == shown_ ? (tab + 1 < tabs_.size() ? tab + 1 : tab - 1) : shown_;
  show(next);
  note(fmt::format("close-tab {}", tab));
  if (shown_ > tab) --shown_;
  closing_.push_back(std::move(tabs_[tab].bench));
  closing_.back()->stop_jobs();
  tabs_.erase(tabs_.begin() + static_cast<std::ptrdiff_t>(tab));
}

void Tabs::handle_tab_request(const TabRequest& request) {
  switch (request.kind) {
    case TabRequest::Kind::kNew:
      if (tabs_.size() >= kMaxTabs) return;
      add_empty();
      if (request.open) shown().apply({Command{*request.open}, Command{CheckCommand{}}});
      return;
    case TabRequest::Kind::kShow:
      return show(request.tab);
    case TabRequest::Kind::kShowSame:
      return show_same_tensor_in_tab(request.tab);
    case TabRequest::Kind::kClose:
      if (request.tab >= tabs_.size()) return;
      if (request.tab != shown_ && tabs_[request.tab].bench->asks_before_closing()) {
        // Shows the tab about which the user is asked.
        show(request.tab);
        shown().desk().close_wanted = true;
        return;
      }
      return close(request.tab);
  }
}

// Quits once every tab whose jobs are asked about has been confirmed.
void Tabs::quit_if_all_tabs_agree() {
  UiState& desk = shown().desk();
  if (desk.quit) {
    tabs_[shown_].has_agreed_to_quit = true;
    auto next = std::find_if(tabs_.begin(), tabs_.end(), [](const Tab& tab) {
      return !tab.has_agreed_to_quit && tab.bench->asks_before_closing();
    });
    if (next == tabs_.end()) {
      has_left_ = true;
      return;
    }
    show(static_cast<std::size_t>(next - tabs_.begin()));
    shown().desk().quit_wanted = true;
  } else if (!desk.quit_wanted && !desk.asked) {
    for (Tab& tab : tabs_) tab.has_agreed_to_quit = tab.bench->desk().quit = false;
  }
}

void Tabs::draw(const Fonts& fonts, float scale, double now, std::span<const KeyPress> keys,
                bool stable) {
  // Frees closed tabs only when idle: a read from a network disk could block the frame for seconds.
  std::erase_if(closing_, [](const auto& bench) { return !bench->busy(); });
  auto request = shown().draw(fonts, scale, now, keys, stable, described());
  UiState& desk = shown().desk();
  if (keeper_ != nullptr) desk.panel_state.settings_trouble = keeper_->keep(settings_of(desk));
  record_view_if_stable();
  quit_if_all_tabs_agree();
  if (request && !has_left_) handle_tab_request(*request);
}

bool Tabs::busy() const {
  if (!closing_.empty()) return true;
  return std::any_of(tabs_.begin(), tabs_.end(), [](const Tab& tab) { return tab.bench->busy(); });
}

void Tabs::settle() {
  closing_.clear();
  for (Tab& tab : tabs_) tab.bench->settle();
}

}  // namespace shw
