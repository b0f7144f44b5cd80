#include "core/io/remote/signature_v4.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/hash.h"
#include "core/io/remote/remote_path.h"

namespace shw {
namespace {

BytesView bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string sha256_hex(BytesView bytes) {
  RunningSha256 hash;
  hash.add(bytes);
  return hash.text();
}

std::string from_hex(std::string_view hex) {
  auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    out += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  return out;
}

// RFC 2104 with SHA-256, whose block is 64 bytes.
std::string hmac_hex(std::string key, std::string_view text) {
  constexpr std::size_t kBlock = 64;
  if (key.size() > kBlock) key = from_hex(sha256_hex(bytes_of(key)));
  key.resize(kBlock, '\0');
  std::string inner = key, outer = key;
  for (char& c : inner) c = static_cast<char>(c ^ 0x36);
  for (char& c : outer) c = static_cast<char>(c ^ 0x5c);
  return sha256_hex(bytes_of(outer + from_hex(sha256_hex(bytes_of(inner + std::string(text))))));
}

std::string hmac(const std::string& key, std::string_view text) {
  return from_hex(hmac_hex(key, text));
}

std::string time_text(std::time_t now, const char* form) {
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  std::array<char, 32> text{};
  return {text.data(), std::strftime(text.data(), text.size(), form, &utc)};
}

}  // namespace

std::string canonical_query(std::vector<std::pair<std::string, std::string>> query) {
  for (auto& [name, value] : query) {
    name = percent_encoded(name, false);
    value = percent_encoded(value, false);
  }
  std::sort(query.begin(), query.end());
  std::string text;
  for (const auto& [name, value] : query) text += (text.empty() ? "" : "&") + name + "=" + value;
  return text;
}

std::vector<std::string> sign_v4(const SignedRequest& request, const AwsKeys& keys,
                                 std::time_t now) {
  const std::string time = time_text(now, "%Y%m%dT%H%M%SZ"), day = time.substr(0, 8);
  const std::string body_hash = sha256_hex(request.body);
  auto headers = request.headers;
  headers.emplace_back("host", request.host);
  headers.emplace_back("x-amz-content-sha256", body_hash);
  headers.emplace_back("x-amz-date", time);
  if (!keys.token.empty()) headers.emplace_back("x-amz-security-token", keys.token);
  std::sort(headers.begin(), headers.end());
  std::string listed, names;
  for (const auto& [name, value] : headers) {
    listed += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string canonical = request.method + "\n" + request.path + "\n" +
                                canonical_query(request.query) + "\n" + listed + "\n" + names +
                                "\n" + body_hash;
  const std::string scope = day + "/" + request.region + "/" + request.service + "/aws4_request";
  const std::string to_sign =
      "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + sha256_hex(bytes_of(canonical));
  const std::string key = hmac(
      hmac(hmac(hmac("AWS4" + keys.secret, day), request.region), request.service), "aws4_request");
  std::vector<std::string> out;
  for (const auto& [name, value] : headers) {
    if (name != "host") out.push_back(name + ": " + value);
  }
  out.push_back("Authorization: AWS4-HMAC-SHA256 Credential=" + keys.id + "/" + scope +
                ", SignedHeaders=" + names + ", Signature=" + hmac_hex(key, to_sign));
  return out;
}

}  // namespace shw
