#include "core/verbs/choose_tensors.h"

#include <algorithm>

#include "core/base/natural_order.h"
#include "core/base/spelling.h"
#include "core/model/named_only.h"
#include "core/report/text_words.h"

namespace shw {

Result<TensorId> find_tensor(const Checkpoint& checkpoint, const std::string& fqn) {
  if (auto tensor = checkpoint.find(fqn)) return *tensor;
  for (const StrayRecord& tensor : named_only(checkpoint)) {
    if (tensor.fqn == fqn)
      return fail(ErrorKind::kDamaged,
                  "the index places " + fqn +
                      " in this file, which cannot be read: of the tensor only the name is known",
                  {checkpoint.file(tensor.item.file).path}, "Bring the file back.");
  }
  std::vector<std::string_view> names;
  for (std::uint32_t i = 0; i < checkpoint.tensor_count(); ++i)
    names.push_back(checkpoint.fqn(TensorId{i}));
  std::string advice;
  for (const std::string& name : did_you_mean(fqn, names)) {
    advice += (advice.empty() ? "did you mean " : ", ") + printable(name);
  }
  advice = advice.empty() ? "`shardwright ls` lists the tensors." : advice + "?";
  return fail(ErrorKind::kUsage, "there is no tensor \"" + fqn + "\"", {}, advice);
}

bool is_pattern(const std::string& name) {
  return name.find_first_of("*?[") != std::string::npos;
}

Result<std::vector<TensorId>> choose_tensors(const Checkpoint& checkpoint,
                                             std::span<const std::string> names) {
  std::vector<bool> chosen(checkpoint.tensor_count(), names.empty());
  for (const std::string& name : names) {
    if (!is_pattern(name) || checkpoint.find(name)) {
      SHW_TRY(TensorId tensor, find_tensor(checkpoint, name));
      chosen[index_of(tensor)] = true;
      continue;
    }
    bool fits_one = false;
    for (std::uint32_t i = 0; i < checkpoint.tensor_count(); ++i) {
      if (!matches_pattern(name, std::string(checkpoint.fqn(TensorId{i})))) continue;
      chosen[i] = true;
      fits_one = true;
    }
    if (!fits_one)
      return fail(ErrorKind::kUsage, "no tensor fits \"" + name + "\"", {},
                  "`shardwright ls` lists the tensors.");
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
