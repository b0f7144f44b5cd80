#include "communicator.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <utility>

namespace shw::nccl_double {
namespace {

constexpr int kHelloMagic = 0x6e636c;

// An abstract socket address of Linux, without a file; it disappears with its last socket.
socklen_t address_of(const std::string& name, int rank, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::string text = "shw-nccl-" + name + "-" + std::to_string(rank);
  std::memcpy(address.sun_path + 1, text.data(), text.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
}

std::uint64_t sum_of(const Move& move) {
  std::uint64_t sum = 14695981039346656037u;
  for (std::size_t i = 0; i < move.bytes; ++i)
    sum = (sum ^ static_cast<unsigned char>(move.memory[i])) * 1099511628211u;
  return sum;
}

bool would_wait() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

}  // namespace

Communicator::Communicator(std::string clique, int own_rank, int own_size,
                           std::vector<Fault> faults)
    : name(std::move(clique)),
      rank(own_rank),
      size(own_size),
      faults_(std::move(faults)),
      woken_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      to_(static_cast<std::size_t>(size), -1),
      from_(static_cast<std::size_t>(size), -1),
      headers_(static_cast<std::size_t>(size)) {
  thread_ = std::thread([this] { run(); });
}

Communicator::~Communicator() {
  stop_ = true;
  eventfd_write(woken_, 1);
  thread_.join();
  close_all();
  close(woken_);
}

void Communicator::close_all() {
  for (int* socket : {&listens_}) {
    if (*socket >= 0) close(*socket);
    *socket = -1;
  }
  for (auto* sockets : {&to_, &from_}) {
    for (int& socket : *sockets) {
      if (socket >= 0) close(socket);
      socket = -1;
    }
  }
}

std::string Communicator::last_error() {
  std::lock_guard lock(guard_);
  return last_error_;
}

void Communicator::fail(int code, std::string why) {
  std::lock_guard lock(guard_);
  last_error_ = std::move(why);
  state = code;
}

void Communicator::lose(int peer) {
  fail(kRemoteError, "the connection to rank " + std::to_string(peer) + " was closed");
}

void Communicator::post(Group group, void* on) {
  for (Move& move : group) {
    if (!move.is_receive) move.sum = sum_of(move);
  }
  std::lock_guard lock(guard_);
  stream = on;
  state = kInProgress;  // until the thread takes it
  posted_.push_back(std::move(group));
  eventfd_write(woken_, 1);
}

void Communicator::finalize() {
  std::lock_guard lock(guard_);
  stage = Stage::kFinalizing;
  state = kInProgress;
  is_finalizing_ = true;
  eventfd_write(woken_, 1);
}

bool Communicator::is_idle(const void* on) {
  std::lock_guard lock(guard_);
  return on != stream || !is_moving_;
}

void Communicator::run() {
  for (const Fault& fault : faults_) {
    if (fault.kind != "hang-init" || fault.rank != rank) continue;
    while (!stop_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return;
  }
  if (!open_connections()) return;
  stage = Stage::kOpen;
  state = kSuccess;
  while (!stop_) {
    Group group;
    {
      std::lock_guard lock(guard_);
      if (!posted_.empty()) {
        group = std::move(posted_.front());
        posted_.pop_front();
        is_moving_ = true;
        state = kSuccess;  // launched: it is in the stream now
      } else if (is_finalizing_) {
        is_finalizing_ = false;
        stage = Stage::kFinalized;
        state = kSuccess;
      }
    }
    if (group.empty()) {
      pollfd wake{woken_, POLLIN, 0};
      ::poll(&wake, 1, 100);
      eventfd_t count = 0;
      eventfd_read(woken_, &count);
      continue;
    }
    run_group(group);
    if (state != kSuccess) return;  // work in the stream stays there
    std::lock_guard lock(guard_);
    is_moving_ = stop_;
  }
}

bool Communicator::open_connections() {
  if (size == 1) return true;
  sockaddr_un address;
  const socklen_t length = address_of(name, rank, address);
  listens_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (bind(listens_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listens_, size) != 0) {
    violation("rank " + std::to_string(rank) + " joins a clique twice");
    fail(kInvalidUsage, std::strerror(errno));
    return false;
  }
  int accepted = 0, connected = 0;
  while (!stop_ && accepted + connected < 2 * (size - 1)) {
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank && to_[static_cast<std::size_t>(peer)] < 0) connected += connect_to(peer);
    }
    while (accept_one()) ++accepted;
    if (state != kInProgress) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (listens_ >= 0) close(std::exchange(listens_, -1));
  return !stop_;
}

bool Communicator::connect_to(int peer) {
  sockaddr_un address;
  const socklen_t length = address_of(name, peer, address);
  const int made = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (connect(made, reinterpret_cast<sockaddr*>(&address), length) != 0) {
    close(made);
    return false;  // not there yet
  }
  const Handshake hello{kHelloMagic, rank, size};
  if (::send(made, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello))
    fail(kSystemError, "no room for a greeting");
  to_[static_cast<std::size_t>(peer)] = made;
  return true;
}

bool Communicator::accept_one() {
  const int made = accept4(listens_, nullptr, nullptr, SOCK_CLOEXEC);
  if (made < 0) return false;
  Handshake hello;  // sent first, at once
  if (recv(made, &hello, sizeof(hello), MSG_WAITALL) != sizeof(hello) ||
      hello.magic != kHelloMagic || hello.rank < 0 || hello.rank >= size) {
    close(made);
    fail(kRemoteError, "a peer was gone before it said who it is");
    return false;
  }
  if (hello.size != size) {
    violation("ranks " + std::to_string(rank) + " and " + std::to_string(hello.rank) +
              " disagree about how many they are");
    fail(kInvalidUsage, "sizes differ");
  }
  from_[static_cast<std::size_t>(hello.rank)] = made;
  return true;
}

void Communicator::run_group(Group& group) {
  ++groups_;
  count_group();
  for (const Fault& fault : faults_) {
    if (fault.rank != rank || fault.group != groups_) continue;
    if (fault.kind == "fail") return fail(fault.code, "as the test wanted it");
    if (fault.kind == "die") kill(getpid(), SIGKILL);
    if (fault.kind == "lose") close_all();
    if (fault.kind == "lose" || fault.kind == "hang") {
      while (!stop_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return;
    }
  }
  move_within(group);
  while (!stop_ && state == kSuccess) {
    bool all_done = true;
    for (Move& move : group) {
      if (!move.is_done && is_first(group, move) && !(move.is_receive ? pull(move) : push(move)))
        return lose(move.peer);
      all_done = all_done && move.is_done;
    }
    if (all_done) return;
    sleep_on(group);
  }
}

// True if no earlier move of the same pair and direction is unfinished.
bool Communicator::is_first(const Group& group, const Move& move) const {
  for (const Move& other : group) {
    if (&other == &move) return true;
    if (!other.is_done && other.peer == move.peer && other.is_receive == move.is_receive)
      return false;
  }
  return true;
}

bool Communicator::push(Move& move) {
  const int socket = to_[static_cast<std::size_t>(move.peer)];
  const Header header{move.count, move.type};
  while (move.moved < sizeof(header) + move.bytes) {
    const bool in_header = move.moved < sizeof(header);
    const char* from = in_header ? reinterpret_cast<const char*>(&header) + move.moved
                                 : move.memory + (move.moved - sizeof(header));
    const std::size_t left = (in_header ? 0 : move.bytes) + sizeof(header) - move.moved;
    const ssize_t sent = ::send(socket, from, left, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) return would_wait();
    move.moved += static_cast<std::size_t>(sent);
  }
  char taken = 0;
  const ssize_t got = recv(socket, &taken, 1, MSG_DONTWAIT);
  if (got < 0) return would_wait();
  if (got == 0) return false;
  if (sum_of(move) != move.sum) violation("the bytes of a send were changed before it had ended");
  move.is_done = true;
  return true;
}

bool Communicator::pull(Move& move) {
  const int socket = from_[static_cast<std::size_t>(move.peer)];
  Header& header = headers_[static_cast<std::size_t>(move.peer)];
  while (move.moved < sizeof(header) + move.bytes) {
    const bool in_header = move.moved < sizeof(header);
    char* to = in_header ? reinterpret_cast<char*>(&header) + move.moved
                         : move.memory + (move.moved - sizeof(header));
    const std::size_t left = (in_header ? 0 : move.bytes) + sizeof(header) - move.moved;
    const ssize_t got = recv(socket, to, left, MSG_DONTWAIT);
    if (got < 0) return would_wait();
    if (got == 0) return false;
    move.moved += static_cast<std::size_t>(got);
    if (move.moved != sizeof(header)) continue;
    if (header.count == move.count && header.type == move.type) continue;
    violation("rank " + std::to_string(move.peer) + " sends " + std::to_string(header.count) +
              " of type " + std::to_string(header.type) + ", rank " + std::to_string(rank) +
              " takes " + std::to_string(move.count) + " of type " + std::to_string(move.type));
    return false;
  }
  const char taken = 1;
  // The sender may have ended as soon as it receives this.
  if (::send(socket, &taken, 1, MSG_NOSIGNAL) != 1) return false;
  move.is_done = true;
  return true;
}

// A message to itself: both ends have to be in the group.
void Communicator::move_within(Group& group) {
  std::deque<Move*> sent;
  for (Move& move : group) {
    if (move.peer == rank && !move.is_receive) sent.push_back(&move);
  }
  for (Move& move : group) {
    if (move.peer != rank || !move.is_receive) continue;
    if (sent.empty() || sent.front()->bytes != move.bytes) break;
    std::memmove(move.memory, sent.front()->memory, move.bytes);
    move.is_done = sent.front()->is_done = true;
    sent.pop_front();
  }
  for (Move& move : group) {
    if (move.peer != rank || move.is_done) continue;
    violation("a send to itself without its receive in the same group");
    move.is_done = true;
  }
}

void Communicator::sleep_on(const Group& group) {
  std::vector<pollfd> awaited = {{woken_, POLLIN, 0}};
  for (const Move& move : group) {
    if (move.is_done || !is_first(group, move)) continue;
    auto peer = static_cast<std::size_t>(move.peer);
    const bool writes = !move.is_receive && move.moved < sizeof(Header) + move.bytes;
    awaited.push_back({move.is_receive ? from_[peer] : to_[peer],
                       static_cast<short>(writes ? POLLOUT : POLLIN), 0});
  }
  ::poll(awaited.data(), awaited.size(), 50);
  eventfd_t count = 0;
  eventfd_read(woken_, &count);
}

}  // namespace shw::nccl_double
