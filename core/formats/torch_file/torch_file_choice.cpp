#include "core/formats/torch_file/torch_file_choice.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "core/base/letter_case.h"
#include "core/base/little_endian.h"
#include "core/formats/common/legacy_torch_file.h"
#include "core/formats/common/magic.h"
#include "core/formats/common/top_file.h"
#include "core/formats/common/torch_archive_check.h"
#include "core/formats/common/torch_item.h"
#include "core/formats/common/trainer_names.h"
#include "core/formats/torch_file/torch_index.h"

namespace shw {
namespace {

// True for the first record of an archive, without its folder: the pickle, or in TorchScript the
// first storage or another record that torch.jit.save writes before the pickle.
bool is_first_record(std::string_view name) {
  if (name == kPickleRecord || name == kConstantsRecord) return true;
  if (name.starts_with("extra/") || name.starts_with("code/")) return true;
  const std::size_t slash = name.find('/');
  const std::string_view folder = name.substr(0, slash);
  return slash != name.npos && (folder == "data" || folder == "constants") &&
         name.size() > slash + 1 &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(slash) + 1, name.end(), is_digit);
}

// Names of models, in order of priority.
constexpr auto kModelNames =
    std::to_array<std::string_view>({kTorchIndexNames.single, "diffusion_pytorch_model.bin",
                                     "adapter_model.bin", "pytorch_model_fsdp.bin"});

}  // namespace

Result<bool> is_torch_archive(const DirectoryContents& look, const std::string& path) {
  constexpr std::uint64_t kLocalHeaderSize = 30;
  constexpr std::uint64_t kLongestName = 512;
  SHW_TRY(Bytes bytes, look.first_bytes(path, kLocalHeaderSize + kLongestName));
  if (is_legacy_torch_file(bytes)) return true;
  if (bytes.size() < kLocalHeaderSize || load_little<std::uint32_t>(bytes) != kZipMagic)
    return false;
  std::size_t length = load_little<std::uint16_t>(bytes, 26);
  auto rest = std::span(bytes).subspan(kLocalHeaderSize);
  std::string_view name(reinterpret_cast<const char*>(rest.data()), std::min(length, rest.size()));
  return is_first_record(name.substr(std::min(name.size(), name.find('/') + 1)));
}

FileRole torch_file_role(std::string_view file) {
  if (file.ends_with(kTorchIndexSuffix)) return FileRole::kCheckpoint;
  constexpr auto kEndings = std::to_array<std::string_view>(
      {".pt", ".pth", ".th", ".bin", ".ckpt", ".pth.tar", ".pt.tar", ".pth.lora"});
  bool is_named = std::any_of(kEndings.begin(), kEndings.end(),
                              [&](std::string_view ending) { return file.ends_with(ending); });
  return is_named ? FileRole::kSingleFile : FileRole::kNothing;
}

bool is_numbered_save(std::string_view path) {
  const std::size_t number = path.find_last_not_of("0123456789") + 1;
  return path.find('.') == path.npos && path.size() - number >= 3 && number > 1 &&
         path[number - 1] == '_';
}

Result<std::optional<std::string>> torch_file_in(const DirectoryContents& look) {
  SHW_TRY(auto entries, look.entries());
  std::vector<std::string> archives, named;
  for (const Entry& entry : entries) {
    const bool is_named = entries.size() == 1 || is_numbered_save(entry.path) ||
                          torch_file_role(entry.path) != FileRole::kNothing;
    if (!is_top_file(entry) || !is_named) continue;
    named.push_back(entry.path);
    SHW_TRY(bool is_archive, is_torch_archive(look, entry.path));
    if (is_archive) archives.push_back(entry.path);
  }
  if (archives.empty()) return std::nullopt;
  // A file with a model's name is chosen even if it is not an archive.
  for (std::string_view name : kModelNames) {
    if (std::find(named.begin(), named.end(), name) != named.end()) return std::string(name);
  }
  // Files of training (optimizer.pt, training_args.bin) are ignored if there is another file.
  std::vector<std::string> weights;
  std::copy_if(archives.begin(), archives.end(), std::back_inserter(weights),
               [](const std::string& path) { return trainer_file(path) == TrainerFile::kNone; });
  if (weights.size() == 1) return weights.front();
  return archives.size() == 1 ? std::optional(archives.front()) : std::nullopt;
}

}  // namespace shw
