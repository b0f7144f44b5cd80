#include "core/io/owner.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <span>
#include <string_view>

#include "core/base/checked.h"
#include "core/base/hash.h"
#include "core/base/words.h"
#include "core/io/path_text.h"
#include "core/io/random_name.h"

namespace shw {
namespace {

constexpr std::size_t kMostText = 4096;
constexpr const char* kNextOwnerFile = ".shardwright-owner-next";
// Precedes the pid in the name of a directory that another process has claimed.
constexpr std::string_view kTaken = "taken-";
constexpr std::string_view kBegun = "new-";

// The first bytes of a small file; empty if unreadable. Does not block on a pipe.
std::string read_first_bytes(const std::string& path) {
  std::string text(kMostText, '\0');
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (fd < 0) return {};
  ssize_t length = ::read(fd, text.data(), text.size());
  ::close(fd);
  text.resize(length > 0 ? static_cast<std::size_t>(length) : 0);
  return text;
}

std::string line_of(std::string text) {
  return text.substr(0, text.find('\n'));
}

// Containers on one machine have separate pid and mount namespaces.
std::string namespace_of_process(const char* of) {
  std::array<char, 64> name{};
  ssize_t length =
      ::readlink((std::string("/proc/self/ns/") + of).c_str(), name.data(), name.size());
  return length > 0 ? std::string(name.data(), static_cast<std::size_t>(length)) : std::string();
}

std::string boot_id() {
  return line_of(read_first_bytes("/proc/sys/kernel/random/boot_id"));
}

// Start time of a process in clock ticks since boot, which distinguishes processes that reuse a
// pid. Field 22 of /proc/PID/stat; field 2, a name in brackets, may contain any character.
std::string process_start_time(const std::string& pid) {
  std::string text = read_first_bytes("/proc/" + pid + "/stat");
  std::size_t at = text.rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text.find(' ', at + 1);
  if (at == std::string::npos) return {};
  return text.substr(at + 1, text.find(' ', at + 1) - at - 1);
}

// True for a zombie: inside a container its parent may never reap it.
bool has_ended(const std::string& pid) {
  std::string text = read_first_bytes("/proc/" + pid + "/stat");
  std::size_t at = text.rfind(')');
  if (at == std::string::npos || at + 2 >= text.size()) return false;
  return text[at + 2] == 'Z' || text[at + 2] == 'X';
}

// The parsed lines of own_process_identity().
struct Owner {
  std::string host, boot, space, pid, start;
};
Owner here() {
  std::string pid = std::to_string(::getpid());
  return {host_name(), boot_id(), namespace_of_process("pid"), pid, process_start_time(pid)};
}

Owner parsed(std::string_view text) {
  Owner owner;
  for (std::string* field : {&owner.host, &owner.boot, &owner.space, &owner.pid, &owner.start}) {
    std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return {};
    *field = text.substr(0, end);
    text.remove_prefix(end + 1);
  }
  return owner;
}

std::string text_of(const Owner& owner) {
  return owner.host + "\n" + owner.boot + "\n" + owner.space + "\n" + owner.pid + "\n" +
         owner.start + "\n";
}

// Eight hex digits of the hash of host, boot id and pid namespace.
std::string machine_of(const Owner& owner) {
  const std::string text = owner.host + "\n" + owner.boot + "\n" + owner.space;
  return to_hex(hash_of(std::as_bytes(std::span(text)))).substr(0, 8);
}

// The owner encoded by owner_name_suffix() of this machine; empty if the name has none.
std::string owner_in_name(std::string_view path) {
  const std::string begun = kPartialMark + std::string(kBegun);
  const std::size_t mark = path.rfind(begun);
  if (mark == std::string_view::npos) return {};
  path.remove_prefix(mark + begun.size());
  Owner owner = here();
  std::string machine;
  for (std::string* field : {&owner.pid, &owner.start, &machine}) {
    *field = path.substr(0, path.find('-'));
    path.remove_prefix(std::min(field->size() + 1, path.size()));
  }
  return machine == machine_of(owner) ? text_of(owner) : std::string();
}

// Writes the file by rename, because a torn owner file would name no process.
Status write_owner(Store& store, const std::string& path, const std::string& text) {
  SHW_TRY(auto folder, store.edit_folder(path));
  SHW_TRY(auto now, store.read_folder(path));
  if (now->stat(kNextOwnerFile).kind != EntryKind::kMissing)
    SHW_CHECK(folder->remove(kNextOwnerFile));
  SHW_CHECK(write_text(*folder, kNextOwnerFile, text));
  SHW_CHECK(folder->rename(kNextOwnerFile, kOwnerFile));
  return folder->sync();
}

// The owner text of a directory; empty if missing or unreadable.
std::string owner_of(const Store& store, const std::string& path) {
  auto folder = store.read_folder(path);
  if (!folder) return {};
  auto source = (*folder)->open(kOwnerFile);
  if (!source || (*source)->size() > kMostText) return {};
  auto bytes = read_bytes(**source, 0, (*source)->size());
  if (!bytes) return {};
  return {reinterpret_cast<const char*>(bytes->data()), bytes->size()};
}

// True between the rename and the new owner file of a claim: the name holds the new owner, the file
// still the old one.
bool is_being_claimed(const std::string& path, const std::string& owner) {
  std::string taken = kPartialMark + std::string(kTaken);
  std::size_t mark = path.rfind(taken);
  if (mark == std::string::npos) return false;
  std::string_view rest = std::string_view(path).substr(mark + taken.size());
  auto pid = consume_number(rest);
  if (!pid || *pid == 0 || !narrow<pid_t>(*pid) || std::to_string(*pid) == owner) return false;
  return ::kill(narrow<pid_t>(*pid).value(), 0) == 0 || errno != ESRCH;
}

}  // namespace

std::string own_process_identity() {
  return text_of(here());
}

std::string owner_name_suffix() {
  const Owner self = here();
  return std::string(kBegun) + self.pid + "-" + self.start + "-" + machine_of(self);
}

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? std::string(name.data())
                                                          : std::string();
}

std::string executable_hash() {
  auto program = open_file("/proc/self/exe", "this program");
  if (!program) return {};
  RunningHash hash;
  Bytes block(std::size_t{1} << 20);
  for (std::uint64_t at = 0; at < (*program)->size(); at += block.size()) {
    const std::uint64_t length = std::min<std::uint64_t>(block.size(), (*program)->size() - at);
    if (!(*program)->read(at, std::span(block).first(length))) return {};
    hash.add(std::span(block).first(length));
  }
  return hash.text().substr(0, 8);
}

std::string own_machine_identity() {
  return host_name() + "\n" + boot_id() + "\n" + namespace_of_process("mnt");
}

bool is_dead_process(std::string_view text) {
  Owner owner = parsed(text), self = here();
  bool known = !owner.host.empty() && !owner.boot.empty() && !owner.space.empty() &&
               !owner.start.empty() && !self.start.empty();
  if (!known || owner.host != self.host || owner.boot != self.boot || owner.space != self.space)
    return false;
  int pid = 0;
  const char* end = owner.pid.data() + owner.pid.size();
  auto [stop, code] = std::from_chars(owner.pid.data(), end, pid);
  if (code != std::errc{} || stop != end || pid < 1) return false;
  if (::kill(pid, 0) != 0) return errno == ESRCH;
  if (has_ended(owner.pid)) return true;
  std::string start = process_start_time(owner.pid);
  return !start.empty() && start != owner.start;
}

OwnerState owner_state(const Store& store, const std::string& path) {
  std::string text = owner_of(store, path);
  // The owner file is missing or torn by a crash: the folder's name may name the owner.
  if (parsed(text).start.empty()) {
    if (std::string named = owner_in_name(path); !named.empty()) text = std::move(named);
  }
  Owner owner = parsed(text), self = here();
  if (is_being_claimed(path, owner.pid)) return OwnerState::kLiveProcess;
  if (text.empty()) return OwnerState::kNobody;
  if (is_dead_process(text)) return OwnerState::kDeadProcess;
  bool is_here = !owner.start.empty() && owner.host == self.host && owner.boot == self.boot &&
                 owner.space == self.space;
  return is_here ? OwnerState::kLiveProcess : OwnerState::kUnknown;
}

Result<std::string> claim_directory(Store& store, const std::string& path,
                                    const std::string& marker) {
  std::string from = without_trailing_slashes(path);
  std::size_t mark = from.rfind(marker);
  if (mark == std::string::npos)
    return fail(ErrorKind::kUsage, "was not made by shardwright", {path});
  std::string base = from.substr(0, mark) + marker + std::string(kTaken) +
                     std::to_string(::getpid()) + "-" + random_digits();
  std::string to = base;
  for (int i = 2; store.exists(to); ++i) to = base + "-" + std::to_string(i);
  SHW_CHECK(store.publish(from, to));
  if (Status owned = write_owner(store, to, own_process_identity()); !owned) {
    static_cast<void>(store.publish(to, from));  // released again
    return tl::unexpected<Error>(std::move(owned).error());
  }
  return to;
}

Status release_directory(Store& store, const std::string& path) {
  Owner owner = here();
  owner.start = "given up";  // matches no process in is_dead_process()
  return write_owner(store, path, text_of(owner));
}

void delete_abandoned_directories(Store& store, const std::string& path, const std::string& marker,
                                  const std::function<bool(const std::string& found)>& spared) {
  std::string folder = parent_of(without_trailing_slashes(path));
  for (const std::string& name : store.names(folder)) {
    if (name.find(marker) == std::string::npos) continue;
    std::string found = folder + "/" + name;
    if (owner_state(store, found) != OwnerState::kDeadProcess) continue;
    if (spared == nullptr || !spared(found)) static_cast<void>(store.discard(found, marker));
  }
}

}  // namespace shw
