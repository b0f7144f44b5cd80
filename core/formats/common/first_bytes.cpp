#include "core/formats/common/first_bytes.h"

#include <algorithm>
#include <array>
#include <string>

namespace shw {
namespace {

using namespace std::string_view_literals;

struct FormatSignature {
  std::size_t at;
  std::string_view bytes;
  std::string_view title;
};

constexpr auto kMarks = std::to_array<FormatSignature>({
    {0, "GGUF"sv, "a GGUF file (llama.cpp)"},
    {0, "tjgg"sv, "a GGML file (llama.cpp before GGUF)"},
    {0, "lmgg"sv, "a GGML file (llama.cpp before GGUF)"},
    {0, "ftrt"sv, "a TensorRT engine"},
    {0, "\x93NUMPY"sv, "a NumPy array (.npy)"},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file"},
    {0, "PK\3\4"sv, "a zip archive"},
    {0, "\x1f\x8b"sv, "compressed with gzip"},
    {0, "\x28\xb5\x2f\xfd"sv, "compressed with zstd"},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     "compressed with xz"},
    {0, "BZh"sv, "compressed with bzip2"},
    {257, "ustar"sv, "a tar archive"},
});

constexpr std::string_view kPage =
    "a web page or other XML: the download returned that instead of the file";

std::string_view without_blanks(std::string_view text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t\r\n")));
  return text;
}

bool begins_with_word(std::string_view text, std::string_view word) {
  return text.size() >= word.size() &&
         std::equal(word.begin(), word.end(), text.begin(), [](char small, char c) {
           return small == (c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
         });
}

}  // namespace

std::string_view format_from_magic(BytesView bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const FormatSignature& mark : kMarks) {
    if (text.size() > mark.at && text.substr(mark.at).starts_with(mark.bytes)) return mark.title;
  }
  const std::string_view words = without_blanks(text);
  for (std::string_view word : {"<!doctype"sv, "<html"sv, "<?xml"sv}) {
    if (begins_with_word(words, word)) return kPage;
  }
  if (words.starts_with('{') && without_blanks(words.substr(1)).starts_with('"'))
    return "JSON text, such as an error response of a server";
  constexpr std::size_t kZeros = 16;
  if (text.size() >= kZeros &&
      std::all_of(text.begin(), text.end(), [](char c) { return c == '\0'; }))
    return "zero bytes: its start was never written, or was lost in a copy";
  const bool is_pickle = text.size() > 1 && text[0] == '\x80' && text[1] >= '\2' && text[1] <= '\5';
  return is_pickle ? "a bare pickle, which is never run here"sv : ""sv;
}

}  // namespace shw
