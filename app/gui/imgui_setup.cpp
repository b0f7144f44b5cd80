#include "app/gui/imgui_setup.h"

#include <backends/imgui_impl_opengl3.h>

#include <algorithm>

#include "app/gui/fonts.h"
#include "views/imgui_versions.h"
#include "views/shown_text.h"

namespace shw {

void apply_style(const Theme& theme, float scale) {
  ImGuiStyle style;
  style.WindowRounding = 0;
  style.WindowBorderSize = 0;
  style.ChildBorderSize = 0;
  style.PopupBorderSize = 1;
  style.FrameRounding = 4;
  style.PopupRounding = 5;
  style.WindowPadding = {10, 8};
  style.ItemSpacing = {0, 0};
  style.ScrollbarSize = 9;
  style.ScrollbarRounding = 5;
  style.AntiAliasedLines = true;
  style.ScaleAllSizes(scale);
  auto set = [&](ImGuiCol index, Rgba colour) {
    style.Colors[index] = ImGui::ColorConvertU32ToFloat4(colour);
  };
  set(ImGuiCol_Text, theme.text);
  set(ImGuiCol_TextDisabled, theme.head);
  set(ImGuiCol_WindowBg, theme.background);
  set(ImGuiCol_PopupBg, theme.raised);
  set(ImGuiCol_Border, theme.strong_line);
  set(ImGuiCol_FrameBg, theme.field);
  set(ImGuiCol_TextSelectedBg, mix(theme.raised_hover, theme.unknown, 0.35f));
  set(ImGuiCol_ScrollbarBg, with_alpha(theme.side, 0));
  set(ImGuiCol_ScrollbarGrab, theme.raised_hover);
  set(ImGuiCol_ScrollbarGrabHovered, theme.strong_line);
  set(ImGuiCol_ScrollbarGrabActive, theme.head);
  set(kNavColour, theme.frame);
  ImGui::GetStyle() = style;
}

void create_imgui(const Theme& theme, float scale, bool own_input) {
  IMGUI_CHECKVERSION();
  ImGui::CreateContext();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.LogFilename = nullptr;
  io.ConfigFlags |= ImGuiConfigFlags_NavEnableKeyboard;
  io.ConfigInputTextCursorBlink = !own_input;  // pictures must not depend on the moment
  apply_style(theme, scale);
  if (own_input) init_headless_input();
}

void change_style(Look wanted, Look& now, Fonts& fonts) {
  wanted.letters = now.letters;
  for (ImWchar letter : collect_missing_letters()) wanted.letters.push_back(letter);
  if (wanted == now) return;
  apply_style(theme_of(wanted.theme), wanted.scale);
  if (wanted.scale != now.scale || wanted.letters != now.letters) {
    fonts = load_fonts(wanted.scale, wanted.letters);
#if IMGUI_VERSION_NUM < 19200  // since then the backend follows the atlas by itself
    ImGui_ImplOpenGL3_DestroyFontsTexture();
    ImGui_ImplOpenGL3_CreateFontsTexture();
#endif
  }
  now = wanted;
}

float total_scale(float monitor, double own) {
  return std::clamp(monitor * static_cast<float>(own), 0.5f, std::max(6.0f, monitor));
}

}  // namespace shw
