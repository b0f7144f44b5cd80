#include "core/io/remote/curl_library.h"

#include <dlfcn.h>

#include <cstring>

namespace shw {
namespace {

constexpr const char* kCurlAdvice =
    "Install libcurl (Debian and Ubuntu: libcurl4 or libcurl4t64; Red Hat: libcurl).";

template <class Function>
bool find_symbol(void* library, const char* name, Function*& function) {
  void* found = ::dlsym(library, name);
  std::memcpy(&function, &found, sizeof found);
  return found != nullptr;
}

Result<CurlLibrary> load_curl() {
  void* library = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library != nullptr) break;
  }
  if (library == nullptr)
    return fail(ErrorKind::kUnsupported, "URLs need libcurl, which is not installed", {},
                kCurlAdvice);
  CurlLibrary curl;
  const bool all = find_symbol(library, "curl_global_init", curl.global_init) &&
                   find_symbol(library, "curl_easy_init", curl.easy_init) &&
                   find_symbol(library, "curl_easy_reset", curl.easy_reset) &&
                   find_symbol(library, "curl_easy_cleanup", curl.easy_cleanup) &&
                   find_symbol(library, "curl_easy_setopt", curl.easy_setopt) &&
                   find_symbol(library, "curl_easy_getinfo", curl.easy_getinfo) &&
                   find_symbol(library, "curl_easy_strerror", curl.easy_strerror) &&
                   find_symbol(library, "curl_slist_append", curl.slist_append) &&
                   find_symbol(library, "curl_slist_free_all", curl.slist_free) &&
                   find_symbol(library, "curl_multi_init", curl.multi_init) &&
                   find_symbol(library, "curl_multi_cleanup", curl.multi_cleanup) &&
                   find_symbol(library, "curl_multi_add_handle", curl.multi_add) &&
                   find_symbol(library, "curl_multi_remove_handle", curl.multi_remove) &&
                   find_symbol(library, "curl_multi_perform", curl.multi_perform) &&
                   find_symbol(library, "curl_multi_poll", curl.multi_poll) &&
                   find_symbol(library, "curl_multi_info_read", curl.multi_read);
  if (!all || curl.global_init(kCurlGlobalAll) != 0)
    return fail(ErrorKind::kUnsupported, "libcurl is older than 7.66, or does not start", {},
                kCurlAdvice);
  return curl;
}

}  // namespace

Result<const CurlLibrary*> curl_library() {
  static const Result<CurlLibrary> loaded = load_curl();
  if (!loaded) return tl::unexpected<Error>(loaded.error());
  return &*loaded;
}

}  // namespace shw
