#include "app/gui/export_view.h"

#include <imgui.h>
#include <string>
#include <utility>

#include "app/gui/svg_view.h"
#include "core/base/printable.h"
#include "core/io/output_file.h"
#include "core/verbs/new_file.h"

namespace shw {
namespace {

Result<std::string> write_view(PictureFile kind, Workbench& bench, const Image& screen) {
  const bool is_svg = kind == PictureFile::kSvg;
  const verbs::NewFile file = is_svg ? verbs::NewFile::kSvg : verbs::NewFile::kPng;
  SHW_TRY(std::string path,
          verbs::free_path(posix_store(),
                           verbs::place_request(file, bench.snapshot()->options.checkpoint, {},
                                                bench.desk().panel_state.picture_path)));
  if (!is_svg) {
    SHW_CHECK(write_png(path, screen));
    return path;
  }
  SHW_TRY(const std::string svg, svg_of(*ImGui::GetDrawData(), bench.marks().texts, screen));
  SHW_CHECK(write_output_file(path, svg));
  return path;
}

}  // namespace

void ViewExport::begin(Workbench& bench) {
  is_recording_ = bench.desk().panel_state.picture_wanted != PictureFile::kNone;
  if (!is_recording_) return;
  bench.marks().wants_texts = true;
  ImGui::GetStyle().AntiAliasedLinesUseTex = false;  // lines as shapes, not as textures
}

bool ViewExport::finish(Workbench& bench, const std::function<Image()>& pixels) {
  if (!is_recording_) return false;
  is_recording_ = false;
  ImGui::GetStyle().AntiAliasedLinesUseTex = true;
  UiState& ui = bench.desk();
  const PictureFile kind = std::exchange(ui.panel_state.picture_wanted, PictureFile::kNone);
  if (kind == PictureFile::kNone) return false;  // another tab is shown since
  auto written = write_view(kind, bench, pixels());
  ui.toast = written ? "Wrote " + printable(*written) : written.error().message;
  ui.toast_until = ImGui::GetTime() + 6;
  bench.marks().wants_texts = false;
  return true;
}

}  // namespace shw
