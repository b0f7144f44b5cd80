#include "views/driver.h"

#include <doctest/doctest.h>

#include "views/imgui_versions.h"

namespace shw {
namespace {

// Nothing is drawn, but imgui wants its letters taken over: at once until 1.91, after each frame
// since.
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

Driver::Driver(std::shared_ptr<const Snapshot> snapshot, ImVec2 size) : layouts_(dark_theme()) {
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.DisplaySize = size;
  io.DeltaTime = 1.0f / 60;
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  take_own_input();
  ImFont* font = io.Fonts->AddFontDefault();
  fonts_ = {font, font, font, font, font, font, font, font};
  start_null_renderer();
  show(std::move(snapshot));
}

Driver::~Driver() {
  ImGui::DestroyContext();
}

void Driver::show(std::shared_ptr<const Snapshot> snapshot, JobState job) {
  digest_ = make_digest(std::move(snapshot), digest_.get());
  job_ = job;
}

std::vector<Command> Driver::frame(std::vector<KeyPress> keys) {
  std::vector<Command> commands;
  ImGui::NewFrame();
  Frame frame{*digest_, *digest_->snapshot, job_, dark_theme(), fonts_, layouts_, commands, keys};
  frame.now = now_ += 1.0 / 60;
  frame.marks = &marks;
  draw_desk(frame, desk);
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

std::vector<Command> Driver::type(const std::string& text) {
  ImGui::GetIO().AddInputCharactersUTF8(text.c_str());
  auto all = frame();
  for (Command& command : frame()) all.push_back(std::move(command));
  return all;
}

}  // namespace shw
