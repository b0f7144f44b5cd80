// The mesh panel: the given, recorded or inferred mesh with confidence and contradictions, and an
// input for it.
#include <fmt/core.h>

#include <imgui.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "views/actions.h"
#include "views/imgui_versions.h"
#include "views/line.h"
#include "views/map/tensor_view.h"
#include "views/map/tile_map.h"
#include "views/parts.h"
#include "views/text.h"

namespace shw {
namespace {

constexpr std::size_t kShownGuesses = 3, kShownAgainst = 2;
constexpr std::uint32_t kMaxNumbers = 256;  // with more ranks a cell has no room for its number
constexpr std::uint32_t kMaxCells = 16'384;

std::string mesh_axes_text(const Mesh& mesh) {
  std::string text;
  for (const MeshAxis& axis : mesh.axes)
    text += fmt::format("{}{} {}", text.empty() ? "" : " × ", axis.name, axis.size);
  return text.empty() ? "one rank" : text;
}

std::string source_text(const MeshGuess& guess) {
  if (guess.source == "given") return "given by you";
  if (guess.source == "spec") return "named by the spec";
  // Rounds down: 99.6 % is not "100 % sure".
  int percent = static_cast<int>(std::floor(std::clamp(guess.confidence, 0.0, 1.0) * 100));
  return fmt::format("inferred from who wrote what, {} % sure", percent);
}

void draw_guess(Frame& frame, UiState& state, Column& column, const MeshGuess& guess, int number,
                bool first) {
  const Theme& theme = frame.theme;
  Line line(frame, column, 22, Gap::kTight);
  line.text(frame.fonts.mono_strong, first ? theme.text : theme.quiet, mesh_axes_text(guess.mesh));
  line.text(frame.fonts.small, theme.quiet, source_text(guess));
  if (!first || !frame.snapshot.mesh) {
    ImGui::PushID(number);
    if (line.chip_button_at_end("take", "use", "Writes this mesh into the field below."))
      state.mesh_text = mesh_option_text(guess.mesh);
    mark(frame, fmt::format("mesh/take/{}", number));
    ImGui::PopID();
  }
  if (guess.looked_at > 0) {
    std::string text = "explains the chunks of " +
                       human_count(static_cast<std::uint64_t>(guess.explained)) + " of " +
                       plural(static_cast<std::uint64_t>(guess.looked_at), "tensor") +
                       " that several ranks cut";
    paragraph(frame, column, frame.fonts.small,
              guess.explained == guess.looked_at ? theme.ok : theme.quiet, text);
  }
  for (std::size_t i = 0; i < std::min(guess.against.size(), kShownAgainst); ++i)
    paragraph(frame, column, frame.fonts.small, theme.warn, "against: " + guess.against[i]);
  if (guess.against.size() > kShownAgainst)
    caption(frame, column,
            "and " + plural(guess.against.size() - kShownAgainst, "more tensor") +
                " that it does not explain");
  gap(frame, column, Gap::kMedium);
}

// The rank under the mouse: shows what it wrote; a click highlights its tiles.
void point_at_rank(Frame& frame, UiState& state, const MeshGrid& grid, ImVec2 at, float width,
                   float height) {
  ImGui::SetCursorScreenPos(at);
  ImVec2 size{width * static_cast<float>(grid.columns), height * static_cast<float>(grid.rows)};
  bool clicked = picture_control(frame, "mesh/cells", size);
  focus_ring(frame, ImGui::GetWindowDrawList());
  if (!mouse_is_over()) return;
  ImVec2 mouse = ImGui::GetMousePos();
  auto cell = [](float from, float to, float side, std::uint32_t count) {
    return static_cast<std::uint32_t>(
        std::clamp((to - from) / side, 0.0f, static_cast<float>(count - 1)));
  };
  std::uint32_t rank = cell(at.y, mouse.y, height, grid.rows) * grid.columns +
                       cell(at.x, mouse.x, width, grid.columns);
  if (clicked) toggle_isolated_rank(frame, state, rank);
  if (!frame.stable)
    tooltip(frame, "rank " + rank_text(frame, rank) + "\n" + share_text(frame, rank) +
                       "\na click sets its tiles apart");
}

// Draws a cell per rank, arranged as in the left column, with numbers if they fit.
void draw_grid(Frame& frame, UiState& state, Column& column) {
  const MeshInfo& mesh = *frame.digest.mesh;
  std::uint32_t places = mesh.grid.rows * mesh.grid.columns;
  if (mesh.ranks == 0) return caption(frame, column, mesh.text, Gap::kLarge);
  if (places == 0 || places > kMaxCells) return;
  float width = column.width() / static_cast<float>(mesh.grid.columns);
  float least = std::max(1.0f, frame.px(places > kMaxNumbers ? 2 : 16));
  float room = frame.px(places > kMaxNumbers ? 256 : 160);
  float height =
      std::clamp(std::floor(room / static_cast<float>(mesh.grid.rows)), least, frame.px(30));
  float between = width >= 5 && height >= 5 ? frame.px(1) : 0;
  ImVec2 corner{column.left, column.y};
  Colouring colouring = colouring_of(frame, state);
  // All numbers or none.
  const float widest = text_width(frame.fonts.mono_small, std::to_string(places - 1));
  const bool has_numbers =
      places <= kMaxNumbers && widest + frame.px(4) <= std::floor(width) - between;
  for (std::uint32_t rank = 0; rank < places; ++rank) {
    std::uint32_t row = rank / mesh.grid.columns;
    float x = corner.x + width * static_cast<float>(rank % mesh.grid.columns);
    float y = corner.y + height * static_cast<float>(row);
    ImVec2 min{std::floor(x), y}, max{std::floor(x + width) - between, y + height - between};
    Rgba fill = tile_colour(rank, mesh.grid, colouring);
    bool damaged = rank < mesh.shares.size() && mesh.shares[rank].unreadable_tiles != 0;
    column.draw->AddRectFilled(min, max, fill);
    if (damaged) draw_damaged_rank(frame, column.draw, min, max);
    if (!has_numbers) continue;
    std::string text = std::to_string(rank);
    float wide = text_width(frame.fonts.mono_small, text);
    text_from(column.draw, frame.fonts.mono_small, (min.x + max.x - wide) / 2, (min.y + max.y) / 2,
              readable_on(fill, frame.theme.dark_ink, frame.theme.light_ink), text);
  }
  point_at_rank(frame, state, mesh.grid, corner, width, height);
  column.take(height * static_cast<float>(mesh.grid.rows) + frame.px(8));
  caption(frame, column, mesh.text, Gap::kLarge);
}

// Why the typed mesh is invalid; empty if it is valid.
std::string mesh_text_error(const Frame& frame, const std::string& text) {
  if (text.empty()) return "";
  auto mesh = parse_mesh(text);
  if (!mesh) return mesh.error().message;
  std::uint32_t ranks = frame.digest.mesh->ranks;
  if (ranks > 0 && mesh->size() != static_cast<std::int64_t>(ranks))
    return mesh_axes_text(*mesh) + " is " + human_count(static_cast<std::uint64_t>(mesh->size())) +
           " ranks; " + human_count(ranks) + " wrote.";
  return "";
}

// The axes of the typed mesh, outermost first; a click moves an axis outwards.
void draw_axes(Frame& frame, UiState& state, Column& column) {
  auto mesh = parse_mesh(state.mesh_text);
  if (state.mesh_text.empty() || !mesh || mesh->axes.size() < 2) return;
  Line line(frame, column, 24);
  std::optional<std::size_t> moved;
  for (std::size_t a = 0; a < mesh->axes.size(); ++a) {
    const MeshAxis& axis = mesh->axes[a];
    std::string text = fmt::format("{}{} {}", a == 0 ? "" : "\u2190 ", axis.name, axis.size);
    ImGui::PushID(static_cast<int>(a));
    const bool pressed = line.chip_button(
        "axis", text, a == 0 ? "The outermost axis." : "Moves this axis outwards by one.");
    if (pressed && a > 0) moved = a;
    mark(frame, fmt::format("mesh/axis/{}", a));
    ImGui::PopID();
  }
  if (moved) {
    std::swap(mesh->axes[*moved - 1], mesh->axes[*moved]);
    state.mesh_text = mesh_option_text(*mesh);
  }
}

void emit_mesh(Frame& frame, UiState& state, const std::string& text) {
  std::optional<Depth> depth;
  if (frame.snapshot.report != nullptr) depth = frame.snapshot.report->depth;
  frame.emit(MeshCommand{text});
  frame.emit(CheckCommand{depth});
  frame.emit(PlanCommand{});
  state.mesh_open = false;
}

// Returns true if Enter was pressed.
bool draw_line(Frame& frame, UiState& state, Column& column) {
  head(frame, column, "SET THE MESH");
  const bool entered = field(frame, column, "mesh/text", "dp=4,tp=2", state.mesh_text,
                             "Names and sizes of the axes, outermost first: dp=4,tp=2.");
  draw_axes(frame, state, column);
  std::string wrong = mesh_text_error(frame, state.mesh_text);
  paragraph(frame, column, frame.fonts.small, wrong.empty() ? frame.theme.quiet : frame.theme.warn,
            wrong.empty() ? "Outermost axis first: ranks that follow one another differ in the "
                            "last one. The check and the plan are recreated with it."
                          : wrong,
            Gap::kLarge);
  return entered;
}

void draw_mesh_buttons(Frame& frame, UiState& state, Column column, bool entered) {
  Line line(frame, column);
  const bool can = !state.mesh_text.empty() && parse_mesh(state.mesh_text).has_value();
  if (can && (line.button_at_end("mesh/use", "Use this mesh",
                                 "Checks and plans again with this mesh.  (Enter)",
                                 ButtonStyle::kPrimary) ||
              entered))
    emit_mesh(frame, state, state.mesh_text);
  if (frame.snapshot.mesh && line.button_at_end("mesh/forget", "Infer it again",
                                                "Forgets your mesh, checks and plans again."))
    emit_mesh(frame, state, "");
  if (close_button(line, "mesh/close")) state.mesh_open = false;
}

}  // namespace

void draw_damaged_rank(Frame& frame, ImDrawList* draw, ImVec2 min, ImVec2 max) {
  const float bar = std::max(1.0f, std::min(frame.px(4), (max.y - min.y) / 3));
  if (max.x - min.x >= 5) add_frame(draw, min, max, frame.theme.bad, frame.px(1), 0);
  draw->AddRectFilled({min.x, max.y - bar}, max, frame.theme.bad);
}

void draw_mesh_panel(Frame& frame, UiState& state) {
  OverlayPanel panel;
  if (!begin_panel(frame, state, "##mesh", 680, state.mesh_height, "Mesh of ranks", panel))
    state.mesh_open = false;
  Column& column = panel.content;
  const MeshInfo& mesh = *frame.digest.mesh;
  paragraph(frame, column, frame.fonts.text, frame.theme.quiet,
            "A repair that needs the mesh uses yours first, then the spec's. A mesh that is "
            "only inferred is used where it explains every chunk.",
            Gap::kLarge);
  draw_grid(frame, state, column);
  head(frame, column, frame.snapshot.mesh ? "YOUR MESH, AND OTHER LIKELY ONES" : "LIKELY MESHES");
  if (mesh.guesses.empty())
    paragraph(
        frame, column, frame.fonts.text, frame.theme.quiet,
        mesh.looked
            ? "No tensor was sharded by several ranks, so there is no mesh."
            : "More than 400,000 tiles: the mesh was not inferred. `shardwright map` infers it.");
  for (std::size_t g = 0; g < std::min(mesh.guesses.size(), kShownGuesses); ++g)
    draw_guess(frame, state, column, mesh.guesses[g], static_cast<int>(g), g == 0);
  gap(frame, column, Gap::kSmall);
  const bool entered = draw_line(frame, state, column);
  state.mesh_height = end_panel_content(frame, panel);
  draw_mesh_buttons(frame, state, panel.all, entered);
  end_overlay();
}

}  // namespace shw
