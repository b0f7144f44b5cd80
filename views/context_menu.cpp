// The context menu of a tile or tensor row: copy as text, and show only its
// rank.
#include "views/actions.h"
#include "views/copy_text.h"
#include "views/imgui_versions.h"
#include "views/parts.h"

namespace shw {

namespace {

// For the clicked tile, which is selected by the click.
void offer_looks(Frame& frame, UiState& state) {
  struct {
    const char* label;
    Action action;
  } looks[] = {{"Show the bytes", Action::kShowBytes}, {"Show the values", Action::kShowValues}};
  for (const auto& look : looks) {
    bool chosen = ImGui::Selectable(look.label);
    mark(frame, std::string("menu/") + look.label);
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
  // Rows large enough to hit.
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, ImVec2{0, frame.px(8)});
  if (ImGui::BeginPopup("context-menu")) {
    auto offer = [&](const char* label, auto&& text) {
      bool chosen = valid && ImGui::Selectable(label);
      mark(frame, std::string("menu/") + label);
      if (!chosen) return;
      std::string copied = text();
      ImGui::SetClipboardText(copied.c_str());
      state.toast = "Copied: " + copied;
      state.toast_until = frame.now + 4;
    };
    offer("Copy name", [&] { return std::string(checkpoint->fqn(*menu.tensor)); });
    offer("Copy Python slice", [&] { return python_text(*checkpoint, *menu.tensor, menu.chunk); });
    offer("Copy command", [&] { return show_command(frame.snapshot, *menu.tensor); });
    offer("Copy JSON", [&] { return json_text(*checkpoint, *menu.tensor, menu.chunk); });
    offer("Copy Markdown", [&] { return markdown_text(*checkpoint, *menu.tensor, menu.chunk); });
    auto writer = valid && menu.chunk ? checkpoint->writer(*menu.chunk) : std::nullopt;
    if (writer) {
      if (ImGui::Selectable("Show this rank alone")) state.isolated = *writer;
      mark(frame, "menu/Show this rank alone");
    }
    if (valid && menu.chunk) offer_looks(frame, state);
    if (!valid) ImGui::CloseCurrentPopup();
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

}  // namespace shw
