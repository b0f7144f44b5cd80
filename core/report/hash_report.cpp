#include "core/report/hash_report.h"

#include <fmt/core.h>

#include <string_view>
#include <unordered_set>

#include "core/base/version.h"
#include "core/base/words.h"
#include "core/report/json.h"
#include "core/report/text_words.h"

namespace shw {
namespace {

constexpr std::string_view kDashes = "--------------------------------";

Json hash_json(const std::string& hex) {
  return hex.empty() ? Json(nullptr) : Json(hex);
}

Json tensor_json(const TensorHash& tensor) {
  Json out = {{"dtype", name(tensor.dtype)},
              {"shape", json_of(ExtentsView(tensor.shape))},
              {"hash", hash_json(tensor.fingerprint ? to_hex(*tensor.fingerprint) : "")}};
  if (!tensor.fingerprint) out["error"] = error_json(tensor.fingerprint.error());
  return out;
}

std::string form_of(const TensorHash& tensor) {
  return std::string(name(tensor.dtype)) + " " + to_text(ExtentsView(tensor.shape));
}

std::string hash_error_text(const Error& error) {
  return error.place.file.empty() ? error.message : error.place.file + ": " + error.message;
}

}  // namespace

std::string hashes_to_json(const HashedTensors& hashed) {
  Json told = Json::object();
  auto& names = told.get_ref<Json::object_t&>();
  std::unordered_set<std::string_view> seen;
  for (const TensorHash& tensor : hashed.tensors) {
    // operator[] would search linearly.
    if (seen.insert(tensor.fqn).second) names.emplace_back(tensor.fqn, tensor_json(tensor));
  }
  Json out = {{"schema", kJsonSchema},
              {"tensors", std::move(told)},
              {"total", hash_json(total_hash(hashed))}};
  if (!hashed.unread.empty()) out["unread"] = hashed.unread;
  return pretty_json_line(out);
}

std::string hashes_to_text(const HashedTensors& hashed) {
  std::string out;
  for (const TensorHash& tensor : hashed.tensors) {
    const std::string fqn = printable(tensor.fqn);
    if (tensor.fingerprint)
      out += fmt::format("{}  {}  {}\n", to_hex(*tensor.fingerprint), fqn, form_of(tensor));
    else
      out += fmt::format("{}  {}  {}: {}\n", kDashes, fqn, form_of(tensor),
                         printable(hash_error_text(tensor.fingerprint.error())));
  }
  for (const std::string& file : hashed.unread)
    out += fmt::format("{}  {}: what it holds is not known\n", kDashes, printable(file));
  const std::string total = total_hash(hashed);
  return out + fmt::format("{}  total of {}\n", total.empty() ? kDashes : total,
                           plural(hashed.tensors.size(), "tensor"));
}

}  // namespace shw
