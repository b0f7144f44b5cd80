#include "app/gui/system_fonts.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace shw {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxFonts = 8;
constexpr std::size_t kMaxFontFiles = 5'000;        // limit without fontconfig
constexpr std::uintmax_t kLargestFont = 64u << 20;  // Noto Sans CJK has 20 MB

// The declarations of fontconfig that are used; its types stay opaque.
struct FontSet {
  int count;
  int capacity;
  void** patterns;
};
struct Fontconfig {
  void* (*new_pattern)() = nullptr;
  void* (*new_letters)() = nullptr;
  int (*add_letter)(void*, std::uint32_t) = nullptr;
  int (*want_letters)(void*, const char*, const void*) = nullptr;
  int (*substitute)(void*, void*, int) = nullptr;
  void (*defaults)(void*) = nullptr;
  FontSet* (*sort)(void*, void*, int, void**, int*) = nullptr;
  int (*text_of)(const void*, const char*, int, unsigned char**) = nullptr;
  int (*number_of)(const void*, const char*, int, int*) = nullptr;
  int (*letters_of)(const void*, const char*, int, void**) = nullptr;
  int (*has_letter)(const void*, std::uint32_t) = nullptr;
  void (*free_pattern)(void*) = nullptr;
  void (*free_letters)(void*) = nullptr;
  void (*free_set)(FontSet*) = nullptr;
};

template <class Function>
bool load_symbol(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

bool load_fontconfig(Fontconfig& out) {
  void* library = ::dlopen("libfontconfig.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return false;
  return load_symbol(library, "FcPatternCreate", out.new_pattern) &&
         load_symbol(library, "FcCharSetCreate", out.new_letters) &&
         load_symbol(library, "FcCharSetAddChar", out.add_letter) &&
         load_symbol(library, "FcPatternAddCharSet", out.want_letters) &&
         load_symbol(library, "FcConfigSubstitute", out.substitute) &&
         load_symbol(library, "FcDefaultSubstitute", out.defaults) &&
         load_symbol(library, "FcFontSort", out.sort) &&
         load_symbol(library, "FcPatternGetString", out.text_of) &&
         load_symbol(library, "FcPatternGetInteger", out.number_of) &&
         load_symbol(library, "FcPatternGetCharSet", out.letters_of) &&
         load_symbol(library, "FcCharSetHasChar", out.has_letter) &&
         load_symbol(library, "FcPatternDestroy", out.free_pattern) &&
         load_symbol(library, "FcCharSetDestroy", out.free_letters) &&
         load_symbol(library, "FcFontSetDestroy", out.free_set);
}

void add_font(std::vector<SystemFont>& fonts, SystemFont font) {
  const bool is_there = std::find(fonts.begin(), fonts.end(), font) != fonts.end();
  if (!is_there && is_outline_font(font.path, font.index)) fonts.push_back(std::move(font));
}

// True if the font has missing characters, which are then removed from `missing`.
bool covers_letters(const Fontconfig& config, const void* font, std::vector<ImWchar>& missing) {
  void* letters = nullptr;
  if (config.letters_of(font, "charset", 0, &letters) != 0 || letters == nullptr) return false;
  return std::erase_if(
             missing, [&](ImWchar letter) { return config.has_letter(letters, letter) != 0; }) != 0;
}

// Fonts in fontconfig's order, each with characters that the earlier ones lack.
std::vector<SystemFont> fonts_from_fontconfig(const Fontconfig& config,
                                              const std::vector<ImWchar>& letters) {
  std::vector<SystemFont> fonts;
  void* pattern = config.new_pattern();
  void* wanted = config.new_letters();
  for (ImWchar letter : letters) config.add_letter(wanted, letter);
  config.want_letters(pattern, "charset", wanted);
  config.substitute(nullptr, pattern, 0);
  config.defaults(pattern);
  int result = 0;
  std::vector<ImWchar> missing = letters;
  FontSet* sorted = config.sort(nullptr, pattern, 1, nullptr, &result);
  for (int i = 0; sorted != nullptr && i < sorted->count && fonts.size() < kMaxFonts; ++i) {
    unsigned char* file = nullptr;
    int index = 0;
    if (config.text_of(sorted->patterns[i], "file", 0, &file) != 0 || file == nullptr) continue;
    if (config.number_of(sorted->patterns[i], "index", 0, &index) != 0) index = 0;
    // The upper half is an instance of a variable font, which imgui does not support.
    const SystemFont font{reinterpret_cast<const char*>(file), index & 0xFFFF};
    if (is_outline_font(font.path, font.index) &&
        covers_letters(config, sorted->patterns[i], missing))
      fonts.push_back(font);
  }
  if (sorted != nullptr) config.free_set(sorted);
  config.free_letters(wanted);
  config.free_pattern(pattern);
  return fonts;
}

std::vector<std::string> font_folders() {
  std::vector<std::string> folders = {"/usr/share/fonts", "/usr/local/share/fonts"};
  if (const char* home = std::getenv("HOME"); home != nullptr) {  // NOLINT(concurrency-mt-unsafe)
    folders.push_back(std::string(home) + "/.local/share/fonts");
    folders.push_back(std::string(home) + "/.fonts");
  }
  return folders;
}

// Files whose names suggest that they cover many characters, in the order of these words.
std::vector<SystemFont> fonts_in_folders() {
  constexpr std::array<std::string_view, 7> kWide = {
      "CJK", "DroidSansFallback", "wqy", "Arabic", "Hebrew", "NotoSans-", "unifont"};
  std::vector<SystemFont> fonts;
  std::vector<std::string> files;
  std::error_code error;
  for (const std::string& folder : font_folders()) {
    fs::recursive_directory_iterator it(folder, error), end;
    for (; !error && it != end && files.size() < kMaxFontFiles; it.increment(error))
      files.push_back(it->path().string());
    error.clear();
  }
  std::sort(files.begin(), files.end());
  for (std::string_view word : kWide) {
    for (const std::string& file : files) {
      if (fonts.size() == kMaxFonts) return fonts;
      if (file.find(word) != file.npos) add_font(fonts, {file, 0});
    }
  }
  return fonts;
}

std::uint32_t big_endian(const unsigned char* at, int bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8u | at[i];
  return value;
}

}  // namespace

bool is_outline_font(const std::string& path, int index) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error || size > kLargestFont || index < 0 || index > 255) return false;
  std::ifstream in(path, std::ios::binary);
  std::array<unsigned char, 12> head{};
  auto read = [&](void* out, std::size_t length) {
    return static_cast<bool>(
        in.read(static_cast<char*>(out), static_cast<std::streamsize>(length)));
  };
  if (!read(head.data(), head.size())) return false;
  if (big_endian(head.data(), 4) == 0x74746366) {  // "ttcf": followed by the offsets of its fonts
    std::array<unsigned char, 4> offset{};
    in.seekg(12 + 4 * index);
    if (!read(offset.data(), offset.size())) return false;
    in.seekg(big_endian(offset.data(), 4));
    if (!read(head.data(), head.size())) return false;
  }
  const std::uint32_t kind = big_endian(head.data(), 4);
  if (kind != 0x00010000 && kind != 0x4F54544F && kind != 0x74727565) return false;
  const std::uint32_t tables = big_endian(head.data() + 4, 2);
  bool has_outlines = false, has_map = false;
  for (std::uint32_t i = 0; i < tables; ++i) {
    std::array<unsigned char, 16> table{};
    if (!read(table.data(), table.size())) return false;
    const std::string_view tag(reinterpret_cast<const char*>(table.data()), 4);
    has_outlines = has_outlines || tag == "glyf" || tag == "CFF ";
    has_map = has_map || tag == "cmap";
  }
  return has_outlines && has_map;
}

std::vector<SystemFont> fonts_with(const std::vector<ImWchar>& letters) {
  static Fontconfig config;
  static const bool has_fontconfig = load_fontconfig(config);
  std::vector<SystemFont> fonts;
  if (has_fontconfig) fonts = fonts_from_fontconfig(config, letters);
  return fonts.empty() ? fonts_in_folders() : fonts;
}

}  // namespace shw
