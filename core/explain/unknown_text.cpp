#include "core/explain/unknown_text.h"

#include <algorithm>

namespace shw {
namespace {

constexpr std::size_t kMaxTextRead = 4096;  // the end, where a traceback has its error
constexpr std::size_t kLongestName = 160;

bool is_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-';
}

bool looks_like_file_name(std::string_view word) {
  for (std::string_view end : {".py", ".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".json",
                               ".distcp", ".gguf", ".h5", ".cpp", ".so"}) {
    if (word.ends_with(end)) return true;
  }
  return false;
}

// "model.layers.0.mlp.down_proj.weight": at least three parts, not a file.
bool resembles_tensor_name(std::string_view word) {
  return word.size() <= kLongestName && !looks_like_file_name(word) &&
         std::count(word.begin(), word.end(), '.') >= 2 && word.find("..") == word.npos &&
         (word.ends_with("weight") || word.ends_with("bias") ||
          word.find(".layers.") != word.npos || word.find("exp_avg") != word.npos);
}

std::string_view tensor_in(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && is_in_name(text[end])) ++end;
    std::string_view word = text.substr(at, end - at);
    while (!word.empty() && word.back() == '.') word.remove_suffix(1);
    if (resembles_tensor_name(word)) return word;
    at = end + 1;
  }
  return {};
}

}  // namespace

std::string next_step_for(std::string_view text) {
  if (text.size() > kMaxTextRead) text.remove_prefix(text.size() - kMaxTextRead);
  std::string steps =
      "Check the checkpoint itself: `shardwright check CHECKPOINT` reports what is wrong in it";
  if (std::string_view tensor = tensor_in(text); !tensor.empty())
    steps += ", `shardwright ls CHECKPOINT " + std::string(tensor) +
             "` shows whether it has that tensor, and its shape";
  if (text.find("torch.Size") != text.npos || text.find("shape") != text.npos)
    steps += ", `shardwright check CHECKPOINT --spec SPEC.json` compares its shapes with the model";
  return steps + ".";
}

}  // namespace shw
