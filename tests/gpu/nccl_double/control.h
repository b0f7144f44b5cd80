// Functions of the test double of libnccl beyond NCCL's own; found by dlsym like those.
//
// The double moves host memory between the threads and processes of one machine. It is as strict as
// NCCL's documentation allows (a send ends when it has been received, nothing is buffered, a group
// enters its stream some time after ncclGroupEnd) and checks every call against the documented
// rules. A violation is printed on stderr and ends the process, unless a test has asked only to
// count.
#pragma once

extern "C" {

struct NcclDoubleCounts {
  long begun;       // communicators
  long alive;       // of them
  long groups;      // given to streams
  long violations;  // counted while they are tolerated
};

void ncclDoubleCounts(NcclDoubleCounts* counts);
// 1 if all work that entered the stream is done.
int ncclDoubleStreamIdle(void* stream);
// Sets the fault to simulate from now on, replacing any earlier one; also $SHW_NCCL_DOUBLE_FAULT.
//   ""                 none
//   hang-init:R        the communicator of rank R never gets ready
//   hang:R:K           the K-th group of rank R never moves data
//   fail:R:K:CODE      that group ends with an asynchronous error instead
//   lose:R:K           with that group rank R is lost: its connections close, it receives nothing
//   die:R:K            with that group the process of rank R is killed
//   call:NAME:CODE     the call ncclNAME fails
void ncclDoubleFault(const char* fault);
// With tolerate, violations are counted and the last one is stored.
void ncclDoubleTolerate(int tolerate);
const char* ncclDoubleViolation();
}
