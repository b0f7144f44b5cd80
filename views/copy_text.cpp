#include "views/copy_text.h"

#include <fmt/core.h>

#include <algorithm>

namespace shw {
namespace {

// A quoted string that is valid in JSON and Python.
std::string quote_text(std::string_view text) {
  std::string all = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') all += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      all += fmt::format("\\u{:04x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      all += c;
  }
  return all + "\"";
}

// Quotes a word for a shell.
std::string shell_word(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/=:,+@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  std::string all = "'";
  for (char c : text) all += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return all + "'";
}

}  // namespace

std::string python_text(const Checkpoint& checkpoint, TensorId tensor,
                        std::optional<ChunkId> chunk) {
  std::string text = "state_dict[" + quote_text(checkpoint.fqn(tensor)) + "]";
  if (!chunk) return text;
  auto at = checkpoint.offsets(*chunk);
  auto sizes = checkpoint.sizes(*chunk);
  std::string slice;
  for (std::size_t d = 0; d < std::min(at.size(), sizes.size()); ++d)
    slice += fmt::format("{}{}:{}", d == 0 ? "" : ", ", at[d], at[d] + sizes[d]);
  return slice.empty() ? text : text + "[" + slice + "]";
}

std::string show_command(const Snapshot& snapshot, TensorId tensor) {
  return "shardwright show " + shell_word(snapshot.options.checkpoint) + " " +
         shell_word(snapshot.checkpoint->fqn(tensor));
}

std::string json_text(const Checkpoint& checkpoint, TensorId tensor, std::optional<ChunkId> chunk) {
  std::string text = fmt::format("{{\"fqn\": {}, \"shape\": {}, \"dtype\": \"{}\"",
                                 quote_text(checkpoint.fqn(tensor)),
                                 to_text(checkpoint.shape(tensor)), name(checkpoint.dtype(tensor)));
  if (!chunk) return text + "}";
  text += fmt::format(", \"offsets\": {}, \"sizes\": {}", to_text(checkpoint.offsets(*chunk)),
                      to_text(checkpoint.sizes(*chunk)));
  if (auto item = checkpoint.item(*chunk))
    text += fmt::format(", \"file\": {}, \"offset\": {}, \"length\": {}",
                        quote_text(checkpoint.file(item->file).path), item->offset, item->length);
  auto writer = checkpoint.writer(*chunk);
  return text + ", \"writer\": " + (writer ? std::to_string(*writer) : "null") + "}";
}

std::string markdown_text(const Checkpoint& checkpoint, TensorId tensor,
                          std::optional<ChunkId> chunk) {
  std::string text = fmt::format("`{}` {} {}", checkpoint.fqn(tensor),
                                 to_text(checkpoint.shape(tensor)), name(checkpoint.dtype(tensor)));
  if (!chunk) return text;
  text += fmt::format(": tile at {} of {}", to_text(checkpoint.offsets(*chunk)),
                      to_text(checkpoint.sizes(*chunk)));
  if (auto writer = checkpoint.writer(*chunk)) text += fmt::format(", rank {}", *writer);
  if (auto item = checkpoint.item(*chunk))
    text += fmt::format(", `{}` at {}", checkpoint.file(item->file).path, item->offset);
  return text;
}

}  // namespace shw
