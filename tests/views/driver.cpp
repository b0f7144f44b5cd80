#include "views/driver.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>

#include "app/gui/fonts.h"
#include "app/gui/imgui_setup.h"

#include "views/imgui_versions.h"

namespace shw {
namespace {

// Nothing is drawn, but imgui requires its font atlas to be uploaded: at once until 1.91, after
// each frame since.
void start_null_renderer() {
#if IMGUI_VERSION_NUM < 19200
  unsigned char* pixels = nullptr;
  int width = 0, height = 0;
  ImGui::GetIO().Fonts->GetTexDataAsRGBA32(&pixels, &width, &height);
#else
  ImGui::GetIO().BackendFlags |= ImGuiBackendFlags_RendererHasTextures;
#endif
}

void render_nowhere() {
  ImGui::Render();
#if IMGUI_VERSION_NUM >= 19200
  for (ImTextureData* texture : *ImGui::GetDrawData()->Textures) {
    if (texture->Status == ImTextureStatus_WantDestroy) {
      texture->SetTexID(ImTextureID_Invalid);
      texture->SetStatus(ImTextureStatus_Destroyed);
    } else {
      texture->SetStatus(ImTextureStatus_OK);
    }
  }
#endif
}

}  // namespace

Driver::Driver(std::shared_ptr<const Snapshot> snapshot, ImVec2 size, float scale)
    : scale_(scale > 0 ? scale : 1) {
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.DisplaySize = size;
  io.DeltaTime = 1.0f / 60;
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  init_headless_input();
  // Real fonts, for tests of elided or overlapping text; they take 0.2 s to rasterise.
  ImFont* font = scale > 0 ? nullptr : io.Fonts->AddFontDefault();
  fonts_ = {font, font, font, font, font, font, font, font};
  if (scale > 0) fonts_ = load_fonts(scale);
  start_null_renderer();
  show(std::move(snapshot));
}

Driver::~Driver() {
  ImGui::DestroyContext();
}

void Driver::show(std::shared_ptr<const Snapshot> snapshot, JobState job,
                  std::vector<JobState> beside) {
  digest_ = make_digest(std::move(snapshot), digest_.get());
  job_ = job;
  beside_ = std::move(beside);
}

std::vector<Command> Driver::frame(std::vector<KeyPress> keys) {
  std::vector<Command> commands;
  ImGui::NewFrame();
  Frame frame{*digest_, *digest_->snapshot, job_,     theme_of(desk.panel_state.settings.theme),
              fonts_,   layouts_,           commands, keys};
  frame.now = now_ += 1.0 / 60;
  frame.scale = scale_;
  frame.concurrent_jobs = beside_;
  frame.marks = &marks;
  marks.wants_texts = marks.wants_tips = true;
  frame.open_tabs = &tabs;
  draw_ui(frame, desk);
  if (frame.tab_request) tab_request = frame.tab_request;
  render_nowhere();
  return commands;
}

ImVec2 Driver::middle(const std::string& name) const {
  auto found = marks.items.find(name);
  REQUIRE_MESSAGE(found != marks.items.end(), name);
  return {(found->second.x + found->second.z) / 2, (found->second.y + found->second.w) / 2};
}

std::vector<Command> Driver::click(const std::string& name) {
  frame();
  frame();
  move_mouse(middle(name));
  std::vector<Command> all;
  auto step = [&] {
    for (Command& command : frame()) all.push_back(std::move(command));
  };
  step();
  press_mouse(true);
  step();
  press_mouse(false);
  step();
  step();
  return all;
}

void Driver::drag(ImVec2 from, ImVec2 to) {
  move_mouse(from);
  frame();
  press_mouse(true);
  frame();
  for (int step = 1; step <= 4; ++step) {
    float part = static_cast<float>(step) / 4;
    move_mouse({from.x + (to.x - from.x) * part, from.y + (to.y - from.y) * part});
    frame();
  }
  press_mouse(false);
  frame();
  frame();
}

std::string Driver::drawn_text() const {
  std::string text;
  for (const TextMark& mark : marks.texts) text += mark.text + " ";
  return text;
}

std::vector<std::string> Driver::text_faults() const {
  std::vector<std::string> faults;
  auto say = [&](const char* what, const TextMark& a, const std::string& with) {
    if (faults.size() < 8)
      faults.push_back(fmt::format("{} \"{}\" at {:.0f},{:.0f}{}", what, a.text,
                                   static_cast<double>(a.box.x), static_cast<double>(a.box.y),
                                   with));
  };
  float slack = 1.5f * scale_;
  std::vector<TextMark> seen;
  for (const TextMark& mark : marks.texts) {
    const ImVec4 &box = mark.box, &clip = mark.clip;
    if (box.w <= clip.y || box.y >= clip.w) {
      if (!mark.scrolls) say("hidden", mark, "");
      continue;
    }
    if (box.x < clip.x - slack || box.z > clip.z + slack) say("cut off", mark, "");
    float bearing = (box.w - box.y) * 0.2f;  // glyphs do not fill the whole height of their line
    if (!mark.scrolls && (box.y < clip.y - bearing || box.w > clip.w + bearing))
      say("cut off below or above", mark, "");
    seen.push_back(mark);
  }
  for (std::size_t a = 0; a < seen.size(); ++a) {
    for (std::size_t b = a + 1; b < seen.size(); ++b) {
      if (seen[a].layer != seen[b].layer || seen[a].text == " " || seen[b].text == " ") continue;
      const ImVec4 &one = seen[a].box, &two = seen[b].box;
      float x = std::min({one.z, two.z, seen[a].clip.z, seen[b].clip.z}) - std::max(one.x, two.x);
      float y = std::min({one.w, two.w, seen[a].clip.w, seen[b].clip.w}) -
                std::max({one.y, two.y, seen[a].clip.y, seen[b].clip.y});
      if (x > slack && y > (one.w - one.y) * 0.25f)
        say("overprinted", seen[a], " by \"" + seen[b].text + "\"");
    }
  }
  return faults;
}

std::vector<Command> Driver::type(const std::string& text) {
  ImGui::GetIO().AddInputCharactersUTF8(text.c_str());
  auto all = frame();
  for (Command& command : frame()) all.push_back(std::move(command));
  return all;
}

}  // namespace shw
