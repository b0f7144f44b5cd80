// The context menu of a tile or tensor row: copy as text, and show only its
// rank.
#include "views/actions.h"
#include "views/copy_text.h"
#include "views/imgui_versions.h"
#include "views/parts.h"

namespace shw {

namespace {

// Entries for the clicked tile; the click selects it.
void add_view_entries(Frame& frame, UiState& state) {
  struct {
    const char* label;
    Action action;
  } looks[] = {{"Show the bytes", Action::kShowBytes}, {"Show the values", Action::kShowValues}};
  for (const auto& look : looks) {
    const bool chosen =
        menu_entry(frame, std::string("menu/") + look.label, look.label, false, look.action);
    if (!chosen) continue;
    state.map.hovered = state.menu.chunk;
    run(look.action, frame, state);
  }
}

}  // namespace

void draw_context_menu(Frame& frame, UiState& state) {
  const Checkpoint* checkpoint = frame.snapshot.checkpoint.get();
  MenuState& menu = state.menu;
  bool valid = checkpoint != nullptr && menu.tensor &&
               index_of(*menu.tensor) < checkpoint->tensor_count() &&
               (!menu.chunk || index_of(*menu.chunk) < checkpoint->chunk_count());
  if (menu.wanted && valid) ImGui::OpenPopup("context-menu");
  menu.wanted = false;
  push_font(frame.fonts.small);
  // Rows are high enough to click easily.
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2{0, frame.px(8)});
  if (ImGui::BeginPopup("context-menu")) {
    auto offer = [&](const char* label, const char* tip, auto&& text) {
      if (!valid || !menu_entry(frame, std::string("menu/") + label, label, false, tip)) return;
      std::string copied = text();
      ImGui::SetClipboardText(copied.c_str());
      state.toast = "Copied: " + copied;
      state.toast_until = frame.now + 4;
    };
    offer("Copy name", "Copies the full name of the tensor.",
          [&] { return std::string(checkpoint->fqn(*menu.tensor)); });
    offer("Copy Python slice", "Copies Python that takes this chunk out of the tensor.",
          [&] { return python_text(*checkpoint, *menu.tensor, menu.chunk); });
    offer("Copy command", "Copies the command that shows this tensor in a terminal.",
          [&] { return show_command(frame.snapshot, *menu.tensor); });
    offer("Copy JSON", "Copies what is known of it as JSON.",
          [&] { return json_text(*checkpoint, *menu.tensor, menu.chunk); });
    offer("Copy Markdown", "Copies what is known of it as a Markdown table.",
          [&] { return markdown_text(*checkpoint, *menu.tensor, menu.chunk); });
    auto writer = valid && menu.chunk ? checkpoint->writer(*menu.chunk) : std::nullopt;
    if (writer) {
      if (menu_entry(frame, "menu/Show this rank alone", "Show this rank alone", false,
                     "Makes the tiles of the other ranks pale."))
        state.isolated = *writer;
    }
    if (valid && menu.chunk) add_view_entries(frame, state);
    if (!valid) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

}  // namespace shw
