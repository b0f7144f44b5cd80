#include "gpu/nccl_library.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <vector>

namespace shw {
namespace {

constexpr const char* kAdvice =
    "install NCCL (libnccl2), or set CUDA_HOME to where it is below, or work without it";

std::vector<std::string> library_paths(const std::string& file) {
  if (!file.empty()) return {file};
  std::vector<std::string> found = {"libnccl.so.2"};
  const char* home = std::getenv("CUDA_HOME");
  if (home == nullptr || *home == '\0') return found;
  for (const char* folder : {"lib64", "lib"})
    found.push_back(fmt::format("{}/{}/libnccl.so.2", home, folder));
  return found;
}

// Looks up functions and remembers the first that is missing.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(dlsym(library_, name));
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

}  // namespace

std::string nccl_version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Result<NcclLibrary> load_nccl(const std::string& file) {
  void* library = nullptr;
  std::string why;
  for (const std::string& place : library_paths(file)) {
    library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library != nullptr) break;
    const char* said = dlerror();
    if (why.empty()) why = said != nullptr ? said : place;
  }
  if (library == nullptr)
    return fail(ErrorKind::kUnsupported, "NCCL was not found: " + why, {}, kAdvice);

  NcclLibrary nccl;
  Symbols symbols(library);
  symbols.find(nccl.get_version, "ncclGetVersion");
  symbols.find(nccl.get_unique_id, "ncclGetUniqueId");
  symbols.find(nccl.comm_init_rank_config, "ncclCommInitRankConfig");
  symbols.find(nccl.comm_get_async_error, "ncclCommGetAsyncError");
  symbols.find(nccl.comm_finalize, "ncclCommFinalize");
  symbols.find(nccl.comm_destroy, "ncclCommDestroy");
  symbols.find(nccl.comm_abort, "ncclCommAbort");
  symbols.find(nccl.get_error_string, "ncclGetErrorString");
  symbols.find(nccl.get_last_error, "ncclGetLastError");
  symbols.find(nccl.group_start, "ncclGroupStart");
  symbols.find(nccl.group_end, "ncclGroupEnd");
  symbols.find(nccl.send, "ncclSend");
  symbols.find(nccl.receive, "ncclRecv");
  if (nccl.get_version != nullptr) nccl.get_version(&nccl.version);
  if (nccl.version != 0 && nccl.version < kMinNccl)
    return fail(ErrorKind::kUnsupported,
                fmt::format("NCCL {} was found: {} or newer is needed",
                            nccl_version_text(nccl.version), nccl_version_text(kMinNccl)),
                {}, kAdvice);
  if (!symbols.missing().empty())
    return fail(ErrorKind::kUnsupported,
                fmt::format("what was found as NCCL has no {}", symbols.missing()), {}, kAdvice);
  return nccl;
}

}  // namespace shw
