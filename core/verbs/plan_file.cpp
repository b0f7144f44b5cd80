#include "core/verbs/plan_file.h"

#include <cstdlib>
#include <filesystem>

#include "core/io/output_file.h"
#include "core/io/path_suffix.h"
#include "core/io/path_text.h"
#include "core/io/read_whole.h"
#include "core/io/remote/remote_path.h"
#include "core/io/store.h"
#include "core/repair/plan/plan_fingerprint.h"
#include "core/repair/run/apply.h"
#include "core/verbs/browse.h"
#include "core/verbs/output_place.h"

namespace shw::verbs {
namespace {

constexpr const char* kHalf = ".shardwright-half";

// Only an older plan may be replaced; anything else would be lost.
Status check_replaces_a_plan(const Directory& folder, const std::string& name,
                             const std::string& path) {
  Entry entry = folder.stat(name);
  if (entry.kind == EntryKind::kMissing) return {};
  auto refuse = [&] {
    return fail(ErrorKind::kUsage, "already exists and is not a plan", {path},
                "choose another name");
  };
  if (entry.kind != EntryKind::kFile) return refuse();
  SHW_TRY(auto source, folder.open(name));
  SHW_TRY(Bytes bytes, read_whole(*source));
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (fingerprint_in(text).empty()) return refuse();
  return {};
}

}  // namespace

std::string expanded_path(std::string path) {
  const char* home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  bool is_known = home != nullptr && *home != 0;
  return is_known && path.starts_with('~') ? expanded(path, without_trailing_slashes(home)) : path;
}

std::string absolute_path(std::string path) {
  if (path.empty() || is_remote(path)) return path;
  if (auto end = parse_computed_suffix(path)) {
    end->before = absolute_path(std::move(end->before));
    for (std::string& other : end->others) other = absolute_path(std::move(other));
    return to_path(*end);
  }
  if (path.starts_with('/')) return path;
  std::error_code failed;
  const std::string here = std::filesystem::current_path(failed).string();
  if (failed) return path;
  while (path.starts_with("./")) path.erase(0, path.find_first_not_of('/', 1));
  if (path.empty() || path == ".") return here;
  return (here == "/" ? here : here + "/") + path;
}

Status save_plan(Store& store, const Opened& opened, const VerbOptions& verb_options,
                 const Plan& plan, const std::string& wanted) {
  SHW_TRY(const OutputTarget target, output_target(expanded_path(wanted)));
  const std::string& path = target.path;
  std::string name = path.substr(path.rfind('/') + 1);
  if (name.empty()) return fail(ErrorKind::kUsage, "is not a file name", {path});
  SHW_CHECK(check_output_place(opened, verb_options, path));
  std::string parent = parent_of(path);
  SHW_TRY(auto there, store.read_folder(parent));
  SHW_CHECK(check_replaces_a_plan(*there, name, path));
  SHW_TRY(auto folder, store.edit_folder(parent));
  if (there->stat(name + kHalf).kind != EntryKind::kMissing)
    SHW_CHECK(folder->remove(name + kHalf));
  SHW_CHECK(write_text(*folder, name + kHalf, plan_to_json(*opened.checkpoint, plan)));
  SHW_CHECK(folder->rename(name + kHalf, name));
  return folder->sync();
}

Result<Plan> read_plan_text(const Opened& opened, std::string_view json) {
  return plan_from_json(*opened.checkpoint, json, "the text");
}

RepairTarget inspect_target(const Store& store, const Opened& opened, const std::string& typed_path,
                            const std::string& suffix) {
  RepairTarget target{typed_path};
  ApplyOptions options;
  options.suffix = suffix;
  options.out = expanded_path(typed_path);
  auto output = output_of(store, *opened.checkpoint, options);
  if (!output) {
    target.refused = output.error();
    target.path = options.out;
    return target;
  }
  target.path = *output;
  // A default name is "step_9000-repaired", or "step_9000-repaired-b" if the first one is taken.
  const std::size_t end = options.out.empty() ? output->rfind(suffix + "-") : std::string::npos;
  if (end != std::string::npos) {
    const std::string first = output->substr(0, end + suffix.size());
    if (first.find('/', end) == std::string::npos && store.exists(first)) target.earlier = first;
  }
  if (auto whole = store.resolved(*output)) target.path = *whole;
  if (auto free = store.free_bytes(parent_of(target.path))) target.free = *free;
  return target;
}

}  // namespace shw::verbs
