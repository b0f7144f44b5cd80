#include "core/verbs/names/choose_tensors.h"

#include <algorithm>

#include "core/base/natural_order.h"
#include "core/base/spelling.h"
#include "core/base/words.h"
#include "core/model/index_only_tensors.h"
#include "core/report/text_words.h"
#include "core/verbs/names/filter.h"

namespace shw {

namespace {

std::string advice_to_list_tensors(const Checkpoint& checkpoint) {
  const std::string path = checkpoint.directory() == nullptr ? "" : checkpoint.directory()->name();
  return "`shardwright ls" + (path.empty() ? "" : " " + shell_word(path)) + "` lists the tensors.";
}

}  // namespace

Result<TensorId> find_tensor(const Checkpoint& checkpoint, const std::string& fqn) {
  if (auto tensor = checkpoint.find(fqn)) return *tensor;
  for (const UnclaimedStorageRecord& tensor : index_only_tensors(checkpoint)) {
    if (tensor.fqn == fqn)
      return fail(ErrorKind::kDamaged,
                  "the index places " + fqn +
                      " in this file, which cannot be read: only the tensor's name is known",
                  {checkpoint.file(tensor.item.file).path}, "Bring the file back.");
  }
  std::vector<std::string_view> names;
  for (std::uint32_t i = 0; i < checkpoint.tensor_count(); ++i)
    names.push_back(checkpoint.fqn(TensorId{i}));
  std::string advice;
  for (const std::string& name : did_you_mean(fqn, names)) {
    advice += (advice.empty() ? "did you mean " : ", ") + printable(name);
  }
  advice = advice.empty() ? advice_to_list_tensors(checkpoint) : advice + "?";
  return fail(ErrorKind::kNotFound, "there is no tensor \"" + fqn + "\"", {}, advice);
}

bool is_pattern(const std::string& name) {
  return name.find_first_of("*?[") != std::string::npos;
}

namespace {

// Tensors for a name, pattern or filter (as in `ls`); an error if there are none.
Result<std::vector<std::uint32_t>> tensors_of(const Checkpoint& checkpoint,
                                              const std::string& name) {
  if (auto tensor = checkpoint.find(name)) return std::vector{static_cast<std::uint32_t>(*tensor)};
  std::vector<std::uint32_t> found;
  if (is_pattern(name)) {
    for (std::uint32_t i = 0; i < checkpoint.tensor_count(); ++i) {
      if (matches_pattern(name, std::string(checkpoint.fqn(TensorId{i})))) found.push_back(i);
    }
  }
  if (!found.empty()) return found;
  if (check_filter(checkpoint, name)) {
    SHW_TRY(found, filter_tensors(checkpoint, nullptr, name, nullptr));
  }
  if (!found.empty()) return found;
  if (is_pattern(name))
    return fail(ErrorKind::kNotFound, "no tensor fits \"" + name + "\"", {},
                advice_to_list_tensors(checkpoint));
  SHW_TRY(TensorId tensor, find_tensor(checkpoint, name));
  return std::vector{static_cast<std::uint32_t>(tensor)};
}

}  // namespace

Result<TensorId> find_one_tensor(const Checkpoint& checkpoint, const std::string& words) {
  if (auto tensor = checkpoint.find(words)) return *tensor;
  auto found = tensors_of(checkpoint, words);
  if (!found) return find_tensor(checkpoint, words);
  if (found->size() != 1)
    return fail(
        ErrorKind::kUsage,
        plural(found->size(), "tensor") + " fit \"" + words + "\", but exactly one is needed", {},
        "`shardwright ls CHECKPOINT '" + words + "'` lists them.");
  return TensorId{found->front()};
}

Result<std::vector<TensorId>> choose_tensors(const Checkpoint& checkpoint,
                                             std::span<const std::string> names) {
  std::vector<bool> chosen(checkpoint.tensor_count(), names.empty());
  for (const std::string& name : names) {
    SHW_TRY(auto found, tensors_of(checkpoint, name));
    for (std::uint32_t tensor : found) chosen[tensor] = true;
  }
  std::vector<TensorId> tensors;
  for (std::uint32_t i = 0; i < checkpoint.tensor_count(); ++i) {
    if (chosen[i]) tensors.push_back(TensorId{i});
  }
  std::stable_sort(tensors.begin(), tensors.end(), [&](TensorId a, TensorId b) {
    return natural_less(checkpoint.fqn(a), checkpoint.fqn(b));
  });
  return tensors;
}

}  // namespace shw
