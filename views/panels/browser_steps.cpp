#include "views/panels/browser.h"

#include <algorithm>
#include <array>
#include <utility>

#include "views/action_rows.h"
#include "views/parts.h"

namespace shw {

std::pair<std::string, std::string> split_typed_path(const std::string& text) {
  if (text == "~") return {"~/", ""};
  std::size_t slash = text.rfind('/');
  if (slash == std::string::npos) return {"", text};
  return {text.substr(0, slash + 1), text.substr(slash + 1)};
}

std::string common_prefix(const std::vector<std::string_view>& names) {
  if (names.empty()) return {};
  std::string_view start = names.front();
  for (std::string_view name : names) {
    std::size_t same = 0;
    while (same < start.size() && same < name.size() && start[same] == name[same]) ++same;
    start = start.substr(0, same);
  }
  return std::string(start);
}

void open_browser(Frame& frame, UiState& state, std::string folder) {
  if (folder.empty()) folder = split_typed_path(frame.snapshot.options.checkpoint).first;
  if (folder.empty()) folder = "~/";
  if (!folder.ends_with('/')) folder += '/';
  state.browser = {};
  state.browser.open = state.browser.wanted = true;
  state.browser.text = state.browser.replaces = folder;
  state.browser.pending = std::move(folder);  // cursor at its end, nothing selected
}

void browse_to_compare(Frame& frame, UiState& state) {
  open_browser(frame, state, split_typed_path(state.compare_path).first);
  state.browser.compares = true;
}

OpenCommand reopen_recent_command(const verbs::RecentPlace& recent) {
  OpenCommand open{recent.path, recent.spec, recent.against, recent.mesh};
  open.remembered = true;
  return open;
}

void open_place(Frame& frame, UiState& state, OpenCommand what) {
  bool compares = state.browser.open && state.browser.compares;
  state.browser.open = false;
  if (compares) {
    state.compare_path = what.path;
    if (!frame.runs("compare")) frame.emit(CompareCommand{what.path, false});
    return;
  }
  if (std::exchange(state.browser.in_new_tab, false)) {
    frame.tab_request = TabRequest{TabRequest::Kind::kNew, 0, std::move(what)};
    return;
  }
  state.filter.clear();
  frame.emit(FilterCommand{});
  frame.emit(std::move(what));
  frame.emit(CheckCommand{});
}

void handle_dropped_path(Frame& frame, UiState& state) {
  if (!state.browser.dropped) return;
  std::string path = *state.browser.dropped;
  const verbs::FolderListing* listing = frame.snapshot.folder.get();
  bool listed = state.browser.is_drop_listing_requested && listing != nullptr &&
                listing->asked == path && (listing->error || listing->here.looked);
  if (!listed) {
    // The result may belong to an earlier drop: asks again for the latest.
    if (!state.browser.is_drop_listing_requested) frame.emit(BrowseCommand{path});
    state.browser.is_drop_listing_requested = true;
    return;
  }
  // Not a folder: a checkpoint file, or a file whose open error explains.
  const bool is_run = listing->here.contains_checkpoints;
  bool opens = listing->error || listing->here.is_openable() || is_run || listing->places.empty();
  state.browser.dropped.reset();
  state.browser.is_drop_listing_requested = false;
  if (opens) return open_place(frame, state, OpenCommand{path});
  open_browser(frame, state, path);
}

namespace {

template <int kSteps>
void open_run_steps(Frame& frame, UiState& /*state*/) {
  frame.emit(GoCommand{kSteps});
}

constexpr std::array kBrowserRows{
    ActionRow{Action::kOpen, "Open a checkpoint", ctrl(Key::kO), always,
              [](Frame& frame, UiState& state) { open_browser(frame, state, ""); },
              OverlayPolicy::kReplaces},
    ActionRow{Action::kBack, "Go back", alt(Key::kLeft),
              [](const Frame& frame, const UiState&) {
                return frame.snapshot.can_go_back && !frame.job.running;
              },
              open_run_steps<-1>},
    ActionRow{Action::kForward, "Go forward", alt(Key::kRight),
              [](const Frame& frame, const UiState&) {
                return frame.snapshot.can_go_forward && !frame.job.running;
              },
              open_run_steps<1>},
    ActionRow{Action::kRun, "Show the steps of the run", alt(Key::kHome),
              [](const Frame& frame, const UiState&) {
                return frame.snapshot.run != nullptr && !run_is_shown(frame.snapshot) &&
                       !frame.job.running;
              },
              [](Frame& frame, UiState& state) {
                open_place(frame, state, OpenCommand{frame.snapshot.run->path});
              }},
    ActionRow{Action::kRunNumbers, "Count norms and NaN of every step", ctrl_shift(Key::kN),
              [](const Frame& frame, const UiState&) {
                return run_is_shown(frame.snapshot) && frame.snapshot.run->is_complete() &&
                       frame.digest.run != nullptr &&
                       frame.digest.run->counted < frame.digest.run->steps() &&
                       !frame.runs("run-numbers");
              },
              emit_one<RunNumbersCommand>},
};

}  // namespace

std::span<const ActionRow> browser_actions() {
  return kBrowserRows;
}

}  // namespace shw
