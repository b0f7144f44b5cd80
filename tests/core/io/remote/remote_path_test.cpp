#include "core/io/remote/remote_path.h"

#include <doctest/doctest.h>

using namespace shw;

TEST_CASE("remote paths: each scheme is taken apart") {
  auto url = parse_remote("https://me:word@host.example:8443/a/b%20c/?sig=1");
  REQUIRE(url);
  CHECK(url->host == "host.example:8443");
  CHECK(url->path == "a/b%20c");
  CHECK(url->userinfo == "me:word");
  CHECK(url->query == "sig=1");
  CHECK(url->shown == "https://host.example:8443/a/b%20c");
  auto hub = parse_remote("hf://owner/repo@refs%2Fpr%2F1/sub/dir");
  REQUIRE(hub);
  CHECK(hub->host == "owner/repo");
  CHECK(hub->revision == "refs/pr/1");
  CHECK(hub->path == "sub/dir");
  auto bucket = parse_remote("s3://models/run/step_9");
  REQUIRE(bucket);
  CHECK(bucket->host == "models");
  CHECK(bucket->path == "run/step_9");
  auto ssh = parse_remote("ssh://me@node-7:2222/data/ck/");
  REQUIRE(ssh);
  CHECK(ssh->userinfo == "me");
  CHECK(ssh->host == "node-7");
  CHECK(ssh->port == "2222");
  CHECK(ssh->path == "/data/ck");
  auto scp = parse_remote("me@node-7:/data/ck");
  REQUIRE(scp);
  CHECK(scp->shown == "ssh://me@node-7/data/ck");
}

TEST_CASE("remote paths: what is local stays local") {
  for (const char* path :
       {"step_9", "/data/a:/b", "./x:/y", "C:", "a:b", "ftp://host/x", "://x", ""})
    CHECK_MESSAGE(!is_remote(path), path);
  for (const char* path : {"https://h/x", "HF://o/r", "s3://b", "node:/x", "me@node:/x"})
    CHECK_MESSAGE(is_remote(path), path);
}

TEST_CASE("remote paths: nothing becomes an option of ssh or leaves its place") {
  for (const char* path :
       {"ssh://-oProxyCommand=x/p", "ssh://-l@h/p", "ssh://me:word@h/p", "ssh://h:22x/p",
        "ssh://h;x/p", "ssh://h", "hf://owner", "hf://../repo", "hf://a/..", "s3://", "s3:///x",
        "s3://b/../c", "s3://b//c/..", "https:///x", "https://h x/y"})
    CHECK_MESSAGE(!parse_remote(path), path);
}

TEST_CASE("remote paths: a secret is not shown and is known again") {
  CHECK(without_secrets("https://u:p@secret.example/f?token=t") == "https://secret.example/f");
  auto again = parse_remote("https://secret.example/f/below.json");
  REQUIRE(again);
  CHECK(again->userinfo == "u:p");
  CHECK(again->query == "token=t");
  auto other = parse_remote("https://secret.example/g");
  REQUIRE(other);
  CHECK(other->userinfo.empty());
  // An error that quotes the typed path omits the password.
  const auto refused = parse_remote("ssh://u:hunter2@h/p");
  REQUIRE(!refused);
  CHECK(refused.error().place.file.find("hunter2") == std::string::npos);
}

TEST_CASE("remote paths: secrets of computed checkpoints and of other schemes are not shown") {
  CHECK(without_secrets("https://u:p@h.example/a/@merged=https://v:q@h.example/b?token=t") ==
        "https://h.example/a/@merged=https://h.example/b");
  auto adapter = parse_remote("https://h.example/b");
  REQUIRE(adapter);
  CHECK(adapter->userinfo == "v:q");
  CHECK(without_secrets("base/@average:0.5,0.5=https://v:q@h.example/b") ==
        "base/@average:0.5,0.5=https://h.example/b");
  for (const char* path :
       {"ssh://u:hunter2@h/p", "u:hunter2@h:/p", "s3://u:hunter2@b/p", "s3://b/p?sig=hunter2",
        "gs://b/p?sig=hunter2", "hf://u:hunter2@o/r", "hf://o/r@main?token=hunter2"}) {
    const std::string shown = without_secrets(path);
    CHECK_MESSAGE(shown.find("hunter2") == shown.npos, path);
    CHECK_MESSAGE(!parse_remote(shown), path);
    const auto refused = parse_remote(path);
    REQUIRE_MESSAGE(!refused, path);
    CHECK_MESSAGE(refused.error().place.file.find("hunter2") == std::string::npos, path);
  }
  CHECK(without_secrets("ftp://u:hunter2@h/p") == "ftp://u:...@h/p");
  for (const char* path : {"ssh://me@h:22/p", "ssh://me@[::1]:22/p", "me@h:/p", "hf://o/r@main",
                           "s3://b/a:b@c", "a:b@c", "/data/a:b@c", "x/@average=y"})
    CHECK(without_secrets(path) == path);
}

TEST_CASE("remote paths: URLs in a pasted text lose user, password and query") {
  CHECK(text_without_secrets("KeyError: 'https://me:hunter2@h.example/a@b?sig=s' is not there") ==
        "KeyError: 'https://...@h.example/a@b?...' is not there");
  CHECK(text_without_secrets("clone https://token@h.example\ns3://k:v@b/p?x\n") ==
        "clone https://...@h.example\ns3://...@b/p?...\n");
  for (const char* text :
       {"", "://", "what? me@h:/p", "no such file: https://h.example/a", "file:///a b?c"})
    CHECK(text_without_secrets(text) == text);
}

TEST_CASE("remote paths: names are encoded for a URL") {
  CHECK(percent_encoded("a b/c+d%é") == "a%20b/c%2Bd%25%C3%A9");
  CHECK(percent_decoded(percent_encoded("a b/c+d%é", false)) == "a b/c+d%é");
  CHECK(percent_decoded("100%") == "100%");
}
