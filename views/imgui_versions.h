// Compatibility with Dear ImGui 1.86 (Debian 12), 1.90 (Debian 13, Ubuntu 24.04) and 1.92: one
// function per difference.
#pragma once

#include <imgui.h>
#include <cfloat>
#include <cstdint>

namespace shw {

// The size at which a font was loaded; fonts of 1.92 have no fixed size.
inline float font_size(const ImFont* font) {
#if IMGUI_VERSION_NUM < 19200
  return font->FontSize;
#else
  return font->LegacySize;
#endif
}

inline void push_font(ImFont* font) {
#if IMGUI_VERSION_NUM < 19200
  ImGui::PushFont(font);
#else
  ImGui::PushFont(font, font->LegacySize);
#endif
}

// imgui before 1.92 takes const fonts; since 1.92 drawing rasterises glyphs and needs a mutable
// font.
inline ImFont* face(const ImFont* font) {
  return const_cast<ImFont*>(font);
}

// End of a wrapped line of `width`.
inline const char* wrap_position(const ImFont* font, const char* begin, const char* end,
                                 float width) {
#if IMGUI_VERSION_NUM < 19200
  return font->CalcWordWrapPositionA(1.0f, begin, end, width);
#else
  return face(font)->CalcWordWrapPosition(font->LegacySize, begin, end, width);
#endif
}

// A texture by its number in the renderer: a pointer until 1.91.4, an integer since.
inline ImTextureID texture_id(std::uintptr_t number) {
  return (ImTextureID)number;  // correct for both types
}

// A rectangle outline; 1.92.8 moved the flags to the end.
inline void add_frame(ImDrawList* draw, ImVec2 min, ImVec2 max, ImU32 colour, float rounding,
                      float thickness) {
#if IMGUI_VERSION_NUM < 19280
  draw->AddRect(min, max, colour, rounding, 0, thickness);
#else
  draw->AddRect(min, max, colour, rounding, thickness);
#endif
}

// A child window that keyboard navigation treats as part of its parent.
inline bool begin_flat_child(const char* id, ImVec2 size, ImGuiWindowFlags flags) {
#if IMGUI_VERSION_NUM < 19090
  return ImGui::BeginChild(id, size, false, flags | ImGuiWindowFlags_NavFlattened);
#else
  return ImGui::BeginChild(id, size, ImGuiChildFlags_NavFlattened, flags);
#endif
}

#if IMGUI_VERSION_NUM < 19140
inline constexpr ImGuiCol kNavColour = ImGuiCol_NavHighlight;
#else
inline constexpr ImGuiCol kNavColour = ImGuiCol_NavCursor;
#endif

// For screenshots and tests without a window backend. 1.86 needs all keys mapped; since
// 1.87 input is a queue spread over frames, which would make a frame depend on earlier
// ones.
inline void init_headless_input() {
  ImGuiIO& io = ImGui::GetIO();
#if IMGUI_VERSION_NUM < 18700
  for (int key = 0; key < ImGuiKey_COUNT; ++key) io.KeyMap[key] = key;
#else
  io.ConfigInputTrickleEventQueue = false;
#endif
}

inline void move_mouse(ImVec2 to) {
#if IMGUI_VERSION_NUM < 18700
  ImGui::GetIO().MousePos = to;
#else
  ImGui::GetIO().AddMousePosEvent(to.x, to.y);
#endif
}

inline void press_mouse(bool down, int button = 0) {
#if IMGUI_VERSION_NUM < 18700
  ImGui::GetIO().MouseDown[button] = down;
#else
  ImGui::GetIO().AddMouseButtonEvent(button, down);
#endif
}

inline void turn_wheel(float steps) {
#if IMGUI_VERSION_NUM < 18700
  ImGui::GetIO().MouseWheel = steps;
#else
  ImGui::GetIO().AddMouseWheelEvent(0, steps);
#endif
}

}  // namespace shw
