#include "app/gui/fonts.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>

#include "app/gui/system_fonts.h"

namespace shw {
namespace {

using Paths = std::span<const char* const>;

constexpr std::array kRegular{"/usr/share/fonts/opentype/inter/Inter-Regular.otf",
                              "/usr/share/fonts/truetype/inter/Inter-Regular.ttf",
                              "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"};
constexpr std::array kSemiBold{"/usr/share/fonts/opentype/inter/Inter-SemiBold.otf",
                               "/usr/share/fonts/truetype/inter/Inter-SemiBold.ttf",
                               "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf"};
constexpr std::array kMono{"/usr/share/fonts/truetype/jetbrains-mono/JetBrainsMono-Regular.ttf",
                           "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf"};
constexpr std::array kMonoBold{"/usr/share/fonts/truetype/jetbrains-mono/JetBrainsMono-Bold.ttf",
                               "/usr/share/fonts/truetype/dejavu/DejaVuSansMono-Bold.ttf"};
// For characters that Inter or JetBrains Mono lack.
constexpr std::array kSymbols{"/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"};

// Latin with its extensions, Greek, dashes, quotes, the ellipsis, arrows, mathematics, shapes.
constexpr ImWchar kRanges[] = {0x20,   0x17F,  0x370,  0x3FF,  0x2010, 0x2027,
                               0x2030, 0x203A, 0x2070, 0x209C, 0x2190, 0x21FF,
                               0x2200, 0x22FF, 0x2500, 0x25FF, 0};

// Fonts and ranges for letters that the fonts above lack.
struct Fallback {
  std::vector<SystemFont> fonts;
  std::vector<ImWchar> ranges;
};

const char* first_existing_font(Paths paths) {
  std::error_code ignored;
  for (const char* path : paths) {
    if (std::filesystem::is_regular_file(path, ignored)) return path;
  }
  return nullptr;
}

// imgui's size is ascent to descent; an em is 1 / 1.21 of that in Inter, 1 / 1.32 in JetBrains
// Mono.
ImFont* load(Paths paths, float units, float scale, const Fallback& fallback) {
  ImFontAtlas& atlas = *ImGui::GetIO().Fonts;
  float size = std::floor(units * scale + 0.5f);
  const char* path = first_existing_font(paths);
  ImFontConfig config;
  config.OversampleH = scale < 1.5f ? 2 : 1;
  config.PixelSnapH = true;
  ImFont* font = path ? atlas.AddFontFromFileTTF(path, size, &config, kRanges) : nullptr;
  if (font == nullptr) {
    ImFontConfig own;
    own.SizePixels = size;
    return atlas.AddFontDefault(&own);
  }
  const char* symbols = first_existing_font(kSymbols);
  config.MergeMode = true;
  if (symbols != nullptr && symbols != path)
    atlas.AddFontFromFileTTF(symbols, size * 0.9f, &config, kRanges);
  for (const SystemFont& other : fallback.fonts) {
    config.FontNo = other.index;
    atlas.AddFontFromFileTTF(other.path.c_str(), size * 0.9f, &config, fallback.ranges.data());
  }
  return font;
}

Fallback fallback_for(const std::vector<ImWchar>& letters) {
  Fallback fallback;
  if (letters.empty()) return fallback;
  fallback.fonts = fonts_with(letters);
  std::vector<ImWchar> sorted = letters;
  std::sort(sorted.begin(), sorted.end());
  for (ImWchar letter : sorted) {
    if (!fallback.ranges.empty() && fallback.ranges.back() + 1 == letter) {
      fallback.ranges.back() = letter;
      continue;
    }
    fallback.ranges.push_back(letter);
    fallback.ranges.push_back(letter);
  }
  fallback.ranges.push_back(0);
  return fallback;
}

}  // namespace

Fonts load_fonts(float scale, const std::vector<ImWchar>& letters) {
  ImGui::GetIO().Fonts->Clear();
  // imgui reads the ranges when it builds the atlas, which may be after this call.
  static Fallback fallback;
  fallback = fallback_for(letters);
  Fonts fonts;
  fonts.text = load(kRegular, 18, scale, fallback);  // the first one is imgui's default
  fonts.small = load(kRegular, 16, scale, fallback);
  fonts.strong = load(kSemiBold, 16, scale, fallback);
  fonts.title = load(kSemiBold, 19, scale, fallback);
  fonts.head = load(kSemiBold, 14, scale, fallback);
  fonts.mono = load(kMono, 18, scale, fallback);
  fonts.mono_small = load(kMono, 16, scale, fallback);
  fonts.mono_strong = load(kMonoBold, 16, scale, fallback);
  return fonts;
}

std::string font_report() {
  std::string text;
  for (Paths paths : {Paths(kRegular), Paths(kSemiBold), Paths(kMono), Paths(kMonoBold)}) {
    const char* path = first_existing_font(paths);
    text += std::string(path ? path : "imgui's own") + "\n";
  }
  return text;
}

}  // namespace shw
