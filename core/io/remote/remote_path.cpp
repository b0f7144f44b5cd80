#include "core/io/remote/remote_path.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <optional>

#include "core/base/letter_case.h"
#include "core/io/path_suffix.h"
#include "core/io/source.h"

namespace shw {
namespace {

struct RemoteScheme {
  std::string_view word;
  RemoteKind kind;
};
constexpr std::array<RemoteScheme, 6> kRemoteSchemes = {{{"https", RemoteKind::kHttp},
                                                         {"http", RemoteKind::kHttp},
                                                         {"hf", RemoteKind::kHub},
                                                         {"s3", RemoteKind::kS3},
                                                         {"gs", RemoteKind::kGs},
                                                         {"ssh", RemoteKind::kSsh}}};

constexpr std::string_view kAfterScheme = "://";

const RemoteScheme* scheme_of(std::string_view path) {
  const std::size_t end = path.find(kAfterScheme);
  if (end == path.npos) return nullptr;
  const std::string word = lowered(path.substr(0, end));
  for (const RemoteScheme& scheme : kRemoteSchemes) {
    if (scheme.word == word) return &scheme;
  }
  return nullptr;
}

// Position after "SCHEME://"; 0 if the path does not begin so.
std::size_t authority_of(std::string_view path) {
  const std::size_t mark = path.find(kAfterScheme);
  return mark < path.find('/') ? mark + kAfterScheme.size() : 0;
}

// True for scp's form "host:/path": no slash before the colon, an absolute path after it.
bool is_scp_path(std::string_view path) {
  const std::size_t colon = path.find(":/");
  if (colon == path.npos || colon == 0 || path.substr(colon).starts_with(kAfterScheme))
    return false;
  if (path.substr(0, colon).find_first_of("/ \t\n") != path.npos || path.starts_with('-'))
    return false;
  return ::access(std::string(path).c_str(), F_OK) != 0;
}

// The secret parts of a typed URL, which `shown` omits.
struct RemoteSecret {
  std::string userinfo, query;
};
struct RemoteSecrets {
  std::mutex guard;
  std::map<std::string, RemoteSecret> of;  // by the path as shown
};
RemoteSecrets& remote_secrets() {
  static RemoteSecrets secrets;
  return secrets;
}

void remember_secret(const RemotePlace& place) {
  if (place.userinfo.empty() && place.query.empty()) return;
  RemoteSecrets& secrets = remote_secrets();
  std::lock_guard lock(secrets.guard);
  secrets.of[place.shown] = {place.userinfo, place.query};
}

void recall_secret(RemotePlace& place) {
  if (!place.userinfo.empty() || !place.query.empty()) return;
  RemoteSecrets& secrets = remote_secrets();
  std::lock_guard lock(secrets.guard);
  // A file inherits the secrets of the place that contains it.
  for (std::string at = place.shown;; at.resize(at.rfind('/'))) {
    if (auto found = secrets.of.find(at); found != secrets.of.end()) {
      place.userinfo = found->second.userinfo;
      place.query = found->second.query;
      return;
    }
    if (at.find('/') == at.npos) return;
  }
}

std::string trimmed_slashes(std::string_view text) {
  while (text.starts_with('/')) text.remove_prefix(1);
  while (text.ends_with('/')) text.remove_suffix(1);
  return std::string(text);
}

tl::unexpected<Error> invalid_remote_path_error(const std::string& shown, const std::string& why,
                                                const std::string& advice) {
  return fail(ErrorKind::kUsage, why, {shown}, advice);
}

// True if ssh cannot read the host as an option and all characters may occur in a host name.
bool is_plain_host(std::string_view host) {
  if (host.empty() || host.starts_with('-')) return false;
  return std::all_of(host.begin(), host.end(), [](char c) {
    const char small = lower(c);
    return (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' ||
           c == '_' || c == ':' || c == '[' || c == ']' || c == '%';
  });
}

bool has_query(std::string_view text) {
  return text.find('?') != text.npos;
}
tl::unexpected<Error> query_refused_error(const RemotePlace& place) {
  return invalid_remote_path_error(
      place.shown, "a path of " + place.scheme + ":// has no \"?\"",
      "A signed URL begins with https://. Tokens and keys come from the environment.");
}

Status parse_http(std::string_view rest, RemotePlace& place) {
  rest = rest.substr(0, rest.find('#'));
  if (const std::size_t query = rest.find('?'); query != rest.npos) {
    place.query = rest.substr(query + 1);
    rest = rest.substr(0, query);
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  if (const std::size_t at = authority.rfind('@'); at != authority.npos) {
    place.userinfo = authority.substr(0, at);
    authority.remove_prefix(at + 1);
  }
  place.host = authority;
  place.path = trimmed_slashes(rest.substr(slash));
  place.shown = joined_remote(place.scheme + "://" + place.host, place.path);
  if (is_plain_host(place.host)) return {};
  return invalid_remote_path_error(place.shown, "the URL names no host",
                                   "Write it as https://HOST/PATH.");
}

Status parse_hub(std::string_view rest, RemotePlace& place) {
  const std::string text = trimmed_slashes(rest);
  place.shown = place.scheme + "://" + text;
  const std::size_t first = text.find('/');
  const std::size_t second = first == text.npos ? text.npos : text.find('/', first + 1);
  // A revision may contain a slash if it is written as %2F, as in refs%2Fpr%2F1.
  std::string repository = text.substr(0, second);
  if (const std::size_t at = repository.find('@'); at != repository.npos) {
    place.revision = percent_decoded(std::string_view(repository).substr(at + 1));
    repository.resize(at);
  }
  place.host = repository;
  if (second != text.npos) place.path = text.substr(second + 1);
  if (has_query(text)) return query_refused_error(place);
  if (first != text.npos && first > 0 && is_safe_relative_path(place.host) &&
      place.host.find('/') < place.host.size() - 1)
    return {};
  return invalid_remote_path_error(place.shown, "the hub has no repository of that form",
                                   "Write it as hf://OWNER/REPO or hf://OWNER/REPO@REVISION.");
}

Status parse_bucket(std::string_view rest, RemotePlace& place) {
  const std::string text = rest.starts_with('/') ? std::string() : trimmed_slashes(rest);
  place.shown = place.scheme + "://" + text;
  const std::size_t slash = std::min(text.find('/'), text.size());
  place.host = text.substr(0, slash);
  place.path = trimmed_slashes(std::string_view(text).substr(slash));
  if (has_query(text)) return query_refused_error(place);
  const bool plain = is_plain_host(place.host) && place.host.find(':') == text.npos;
  if (plain && (place.path.empty() || is_safe_relative_path(place.path))) return {};
  return invalid_remote_path_error(place.shown, "names no bucket and prefix",
                                   "Write it as " + place.scheme + "://BUCKET/PREFIX.");
}

Status parse_ssh(std::string_view rest, RemotePlace& place) {
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view authority = rest.substr(0, slash);
  place.path = rest.substr(slash);
  while (place.path.size() > 1 && place.path.ends_with('/')) place.path.pop_back();
  place.shown = place.scheme + "://" + std::string(authority) + place.path;
  if (const std::size_t at = authority.rfind('@'); at != authority.npos) {
    place.userinfo = authority.substr(0, at);
    authority.remove_prefix(at + 1);
  }
  const std::size_t colon = authority.rfind(':');
  if (colon != authority.npos && authority.find(']', colon) == authority.npos) {
    place.port = authority.substr(colon + 1);
    authority = authority.substr(0, colon);
  }
  if (authority.starts_with('[') && authority.ends_with(']'))
    authority = authority.substr(1, authority.size() - 2);
  place.host = authority;
  const bool plain_port =
      place.port.size() < 6 && place.port.find_first_not_of("0123456789") == std::string::npos;
  const bool plain_user =
      place.userinfo.find_first_of(":/\\ \t\n\"'`$;&|<>()") == std::string::npos &&
      !place.userinfo.starts_with('-');
  if (!plain_user) place.shown = place.scheme + "://" + place.host + place.path;
  if (is_plain_host(place.host) && plain_port && plain_user && !place.path.empty() &&
      place.path.find('\0') == std::string::npos)
    return {};
  return invalid_remote_path_error(place.shown, "names no host and path",
                                   "Write it as ssh://USER@HOST/PATH or HOST:/PATH. Keys and "
                                   "passwords are handled by ssh and its config.");
}

// Replaces what only a URL of HTTP may carry, a password and a signature, by dots. The result is
// refused by parsed_remote(), because it still has a password or a query.
std::string with_masked_secrets(std::string path) {
  const RemoteScheme* scheme = scheme_of(path);
  const std::size_t begin = authority_of(path);
  if (scheme != nullptr && scheme->kind != RemoteKind::kSsh) {
    if (const std::size_t query = path.find('?'); query != path.npos)
      path.replace(query + 1, path.npos, "...");
  }
  const std::size_t end = std::min(path.find('/', begin), path.size());
  const std::size_t at = path.rfind('@', end);
  const std::size_t colon = path.find(':', begin);
  if (at != path.npos && at > begin && colon < at) path.replace(colon + 1, at - colon - 1, "...");
  return path;
}

Result<RemotePlace> parsed_remote(const std::string& typed) {
  const RemoteScheme* typed_scheme = scheme_of(typed);
  const bool is_http = typed_scheme != nullptr && typed_scheme->kind == RemoteKind::kHttp;
  const std::string path = is_http ? typed : with_masked_secrets(typed);
  RemotePlace place;
  if (const RemoteScheme* scheme = scheme_of(path)) {
    place.kind = scheme->kind;
    place.scheme = scheme->word;
    const std::string_view rest =
        std::string_view(path).substr(scheme->word.size() + kAfterScheme.size());
    switch (place.kind) {
      case RemoteKind::kHttp:
        SHW_CHECK(parse_http(rest, place));
        break;
      case RemoteKind::kHub:
        SHW_CHECK(parse_hub(rest, place));
        break;
      case RemoteKind::kS3:
      case RemoteKind::kGs:
        SHW_CHECK(parse_bucket(rest, place));
        break;
      case RemoteKind::kSsh:
        SHW_CHECK(parse_ssh(rest, place));
        break;
    }
    return place;
  }
  place.kind = RemoteKind::kSsh;
  place.scheme = "ssh";
  const std::size_t colon = path.find(":/");
  SHW_CHECK(parse_ssh(path.substr(0, colon) + path.substr(colon + 1), place));
  return place;
}

}  // namespace

bool is_remote(std::string_view path) {
  return scheme_of(path) != nullptr || is_scp_path(path);
}

Result<RemotePlace> parse_remote(const std::string& path) {
  SHW_TRY(RemotePlace place, parsed_remote(path));
  if (place.kind == RemoteKind::kHttp) recall_secret(place);
  return place;
}

std::string without_secrets(const std::string& path) {
  if (auto asked = parse_computed_suffix(path)) {
    asked->before = without_secrets(asked->before);
    for (std::string& other : asked->others) other = without_secrets(other);
    return to_path(*asked);
  }
  const RemoteScheme* scheme = scheme_of(path);
  if (scheme == nullptr || scheme->kind != RemoteKind::kHttp)
    return is_remote(path) || authority_of(path) != 0 ? with_masked_secrets(path) : path;
  auto place = parsed_remote(path);
  if (!place) return place.error().place.file;
  remember_secret(*place);
  return place->shown;
}

std::string text_without_secrets(std::string text) {
  for (std::size_t at = text.find(kAfterScheme); at != text.npos;
       at = text.find(kAfterScheme, at)) {
    at += kAfterScheme.size();
    const std::size_t length = text.find_first_of(" \t\r\n\"'`<>()", at) - at;
    std::string url = text.substr(at, length);
    const std::size_t query = url.find('?');
    if (query != url.npos) url.replace(query + 1, url.npos, "...");
    const std::size_t user_end = url.substr(0, url.find('/')).rfind('@');
    if (user_end != url.npos) url.replace(0, user_end, "...");
    text.replace(at, length, url);
    at += url.size();
  }
  return text;
}

std::string percent_encoded(std::string_view text, bool keeps_slash) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (char c : text) {
    const char small = lower(c);
    const bool plain = (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
                       c == '.' || c == '_' || c == '~' || (c == '/' && keeps_slash);
    if (plain) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

std::string percent_decoded(std::string_view text) {
  auto digit = [](char c) -> int {
    if (c >= '0' && c <= '9') return c - '0';
    const char small = lower(c);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
  };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_code =
        text[i] == '%' && i + 2 < text.size() && digit(text[i + 1]) >= 0 && digit(text[i + 2]) >= 0;
    if (!is_code) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(digit(text[i + 1]) * 16 + digit(text[i + 2]));
    i += 2;
  }
  return out;
}

std::string joined_remote(const std::string& folder, const std::string& below) {
  if (folder.empty() || below.empty()) return folder + below;
  return folder + (folder.ends_with('/') ? "" : "/") + below;
}

}  // namespace shw
