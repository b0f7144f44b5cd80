#include "views/ui_state.h"

namespace shw {

bool panel_is_open(const UiState& state) {
  const PanelsState& panel_state = state.panel_state;
  return state.plan_open || state.certificate_open || state.explain_open || state.mesh_open ||
         state.browser.open || panel_state.settings_open || panel_state.errors_open ||
         panel_state.report_open || panel_state.expect_open || panel_state.pins_open ||
         state.write.open || state.save.open;
}

void close_panels(UiState& state) {
  PanelsState& panel_state = state.panel_state;
  state.plan_open = state.certificate_open = state.explain_open = state.mesh_open =
      state.browser.open = panel_state.settings_open = panel_state.errors_open =
          panel_state.report_open = panel_state.expect_open = panel_state.pins_open =
              state.write.open = state.save.open = false;
}

bool is_covered(const UiState& state) {
  return state.palette_open || panel_is_open(state);
}

Colouring colouring_of(const Frame& frame, const UiState& state) {
  Colouring colouring;
  colouring.only = state.isolated;
  colouring.palette = frame.theme.tiles;
  const auto& axes = frame.digest.mesh->axes;
  if (state.colour_axis < 0 || static_cast<std::size_t>(state.colour_axis) >= axes.size())
    return colouring;
  std::int64_t stride = 1;
  for (std::size_t a = axes.size() - 1; a > static_cast<std::size_t>(state.colour_axis); --a)
    stride *= axes[a].size;
  auto axis = axes[static_cast<std::size_t>(state.colour_axis)].size;
  if (stride < 1 || stride > 10'000'000 || axis < 1 || axis > 10'000'000) return colouring;
  colouring.stride = static_cast<std::uint32_t>(stride);
  colouring.size = static_cast<std::uint32_t>(axis);
  return colouring;
}

std::optional<ChunkId> current_tile(const Frame& frame, const UiState& state) {
  auto valid = [&](std::optional<ChunkId> chunk) {
    return chunk && frame.snapshot.checkpoint != nullptr &&
           index_of(*chunk) < frame.snapshot.checkpoint->chunk_count();
  };
  for (auto chunk : {state.map.pinned, state.map.hovered, frame.snapshot.chunk}) {
    if (valid(chunk)) return chunk;
  }
  return std::nullopt;
}

}  // namespace shw
