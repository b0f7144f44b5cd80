// A communicator of the double: sockets to all other ranks, and a thread that moves the data of its
// stream. Two sockets per pair, one per direction, so that a slow peer blocks nothing else.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fault.h"

namespace shw::nccl_double {

constexpr int kSuccess = 0, kSystemError = 2, kInternalError = 3, kInvalidArgument = 4,
              kInvalidUsage = 5, kRemoteError = 6, kInProgress = 7;

struct Move {
  bool is_receive = false;
  char* memory = nullptr;
  std::size_t count = 0;
  int type = 0;
  std::size_t bytes = 0;
  int peer = 0;
  std::uint64_t sum = 0;  // of the sent data, at the time of the call
  std::size_t moved = 0;  // of header and bytes
  bool is_done = false;
};
using Group = std::vector<Move>;

enum class Stage { kOpening, kOpen, kFinalizing, kFinalized };

class Communicator {
 public:
  Communicator(std::string name, int rank, int size, std::vector<Fault> faults);
  ~Communicator();  // whatever it was doing

  void post(Group group, void* stream);
  void finalize();
  bool is_idle(const void* stream);

  const std::string name;  // of the clique
  const int rank, size;
  std::atomic<int> state{kInProgress};
  std::atomic<Stage> stage{Stage::kOpening};
  std::atomic<bool> is_in_call{false};
  void* stream = nullptr;  // the only stream that was passed
  std::string last_error();

 private:
  struct Header {
    std::uint64_t count = 0;
    std::int64_t type = 0;
  };
  struct Handshake {
    int magic = 0, rank = 0, size = 0;
  };

  void run();
  bool open_connections();
  bool connect_to(int peer);
  bool accept_one();
  void run_group(Group& group);
  bool push(Move& move);  // false: it is lost
  bool pull(Move& move);
  void move_within(Group& group);
  void sleep_on(const Group& group);
  void fail(int code, std::string why);
  void lose(int peer);
  bool is_first(const Group& group, const Move& move) const;
  void close_all();

  const std::vector<Fault> faults_;
  std::mutex guard_;
  std::deque<Group> posted_;
  bool is_moving_ = false, is_finalizing_ = false;
  std::string last_error_;
  std::atomic<bool> stop_{false};
  int listens_ = -1, woken_ = -1;
  std::vector<int> to_, from_;
  long groups_ = 0;
  std::vector<Header> headers_;  // by peer: headers of incoming data
  std::thread thread_;
};

void violation(const std::string& what);
void count_group();

}  // namespace shw::nccl_double
