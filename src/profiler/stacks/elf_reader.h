#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "profiler/stacks/frame_row.h"

namespace kymo::stacks {

// A process without rights (confine/confine.h) that reads programs and libraries for the process
// that takes samples. Any user who runs a program can put anything into its file. If a file makes
// this process end, or work without end, only the stacks of that program are wrong. If a file takes
// this process over, it can make all stacks wrong, and nothing else.
//
// The process gets the open files one by one, and answers questions until this object is destroyed
// or its program ends.
//
// Threads:   one.
// Ownership: the process.
// Cost:      a question: about 20 microseconds.
class ElfReader {
 public:
  // How much CPU time of the process an answer may take, and how much time in all, because a disk
  // may not answer.
  struct Patience {
    std::chrono::milliseconds cpu{1000};
    std::chrono::milliseconds time{10'000};
  };

  // Starts the process. If that is not possible, no file is an ELF file.
  ElfReader() : ElfReader(Patience()) {}
  explicit ElfReader(Patience patience);
  ~ElfReader();
  ElfReader(const ElfReader&) = delete;
  ElfReader& operator=(const ElfReader&) = delete;

  struct File {
    std::uint64_t id = 0;
    int fd = -1;              // -1: the vDSO
    std::uint64_t given = 0;  // to which of the processes it was given; 0: to none
  };

  // Gives a file to the process. Its `id` must not be that of another file. Returns nothing if
  // it is not an ELF file for this kind of machine.
  std::optional<std::vector<Segment>> open(File& file);
  // Returns nothing if the file has no row for the address, or cannot be read.
  std::optional<FrameRow> row_at(File& file, std::uint64_t address);
  // Makes the process close the file.
  void forget(const File& file);

  // CPU time of all processes until now.
  [[nodiscard]] std::uint64_t cpu_ns() const;
  // The pid of the process; 0 if there is none.
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  enum class Asked : std::uint8_t { open, row, forget };
  struct Question;

  void start();
  [[nodiscard]] bool runs() const;
  void end();
  std::optional<std::string> ask(const Question& question, int fd);
  [[nodiscard]] bool wait_for_answer() const;
  [[nodiscard]] std::uint64_t child_cpu_ns() const;
  static int serve(int socket);
  static bool send(int socket, const Question& question, int fd);

  Patience patience_;
  FileDescriptor socket_;
  pid_t pid_ = 0;
  std::uint64_t started_ = 0;  // how many processes were started
  bool answered_ = false;      // at least one of them has answered
  bool unable_ = false;        // another process would not work either
  std::uint64_t ended_cpu_ns_ = 0;
};

}  // namespace kymo::stacks
