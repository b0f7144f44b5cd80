#include "core/formats/safetensors_outputs.h"

#include <fmt/core.h>

#include "core/base/utf8.h"
#include "core/base/words.h"
#include "core/formats/common/safetensors_dtypes.h"
#include "core/formats/common/safetensors_header.h"

namespace shw {
namespace {

// Joins all names, because the user of a conversion needs the complete list.
std::string join_names(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

Status check_safetensors_can_store(const Outputs& outputs, bool sharded, std::string_view title) {
  std::vector<std::string> wordless, others, pieces, unspellable, reserved;
  for (const OutputTensor& tensor : outputs.tensors) {
    if (safetensors_dtype_name(tensor.dtype).empty())
      wordless.push_back(fmt::format("{} ({})", tensor.fqn, name(tensor.dtype)));
    if (!sharded && !is_whole(tensor)) pieces.push_back(tensor.fqn);
    // Python pickles lone surrogates, JSON has none.
    if (!is_utf8(tensor.fqn)) unspellable.push_back(tensor.fqn);
    if (tensor.fqn == kSafetensorsMetadata) reserved.push_back(tensor.fqn);
  }
  for (const OutputObject& object : outputs.objects) others.push_back(object.fqn);
  std::string what;
  auto add = [&](const std::vector<std::string>& names, std::string_view why) {
    if (names.empty()) return;
    what += fmt::format("{}{} {} {}: {}", what.empty() ? "" : "; ", plural(names.size(), "entry"),
                        names.size() == 1 ? "is" : "are", why, join_names(names));
  };
  add(wordless, "of a dtype that safetensors does not have");
  const bool is_one = others.size() == 1;
  add(others, is_one ? "not a tensor, but safetensors stores only tensors"
                     : "not tensors, but safetensors stores only tensors");
  add(unspellable, "named with bytes that are not UTF-8, which safetensors requires");
  add(reserved, "named __metadata__, which safetensors reserves");
  add(pieces, "sharded, but a safetensors file stores whole tensors");
  // No file would be written, and a folder without files is not a checkpoint.
  if (what.empty() && outputs.tensors.empty()) what = "there is no tensor";
  if (what.empty()) return {};
  return fail(ErrorKind::kUnsupported, fmt::format("cannot be written as {}: {}", title, what), {},
              "convert --weights-only keeps only model weights, --leave-out PATTERN drops matching "
              "names; or write another format");
}

}  // namespace shw
