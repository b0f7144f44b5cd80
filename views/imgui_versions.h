// What differs between Dear ImGui 1.86 (Debian 12), 1.90 (Debian 13, Ubuntu 24.04) and 1.92: each
// difference stands here once, under the name of what we want of it.
#pragma once

#include <imgui.h>
#include <cfloat>
#include <cstdint>

namespace shw {

// The size that a font was loaded at; since 1.92 a font has none of its own.
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

// Text is measured and drawn with a font that since 1.92 draws its letters when they are first met.
inline ImFont* face(const ImFont* font) {
  return const_cast<ImFont*>(font);
}

// Where a line of `width` ends.
inline const char* wrap_position(const ImFont* font, const char* begin, const char* end,
                                 float width) {
#if IMGUI_VERSION_NUM < 19200
  return font->CalcWordWrapPositionA(1.0f, begin, end, width);
#else
  return face(font)->CalcWordWrapPosition(font->LegacySize, begin, end, width);
#endif
}

// A texture by the renderer's number: a pointer to imgui until 1.91.4, a number since.
inline ImTextureID texture_id(std::uintptr_t number) {
  return (ImTextureID)number;  // NOLINT(google-readability-casting): right for both
}

// A frame of some thickness: 1.92.8 moved the flags to the end.
inline void add_frame(ImDrawList* draw, ImVec2 min, ImVec2 max, ImU32 colour, float rounding,
                      float thickness) {
#if IMGUI_VERSION_NUM < 19280
  draw->AddRect(min, max, colour, rounding, 0, thickness);
#else
  draw->AddRect(min, max, colour, rounding, thickness);
#endif
}

// A child window that the keyboard walks into as if it were a part of its parent.
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

// For pictures and tests, where no backend of a window system feeds the current context. 1.86 wants
// every key mapped; from 1.87 on input is a queue that is emptied over several frames, which would
// make what a frame shows depend on what came before it.
inline void take_own_input() {
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
