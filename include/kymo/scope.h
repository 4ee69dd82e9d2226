#pragma once

#include <cstddef>
#include <cstdint>
#include <ios>
#include <memory>
#include <streambuf>
#include <string>
#include <string_view>
#include <vector>

#include "kymo/export.h"

namespace kymo {

class ScopeTree;

// The name of a scope or of its category. One that is written in the source costs nothing to keep;
// one made at run time says so by std::string_view and is copied into the tree.
class ScopeName {
 public:
  consteval ScopeName(const char* literal) : text_(literal) {}  // NOLINT: implicit
  constexpr explicit ScopeName(std::string_view made) : text_(made), made_(true) {}

  [[nodiscard]] constexpr std::string_view text() const { return text_; }
  [[nodiscard]] constexpr bool made() const { return made_; }

 private:
  std::string_view text_;
  bool made_ = false;
};

struct ScopeOptions {
  ScopeName category = "";
  // Runs beside its siblings: shown, but its time is not added to the total.
  bool parallel = false;
  // Says again what other scopes say: neither its time nor its bytes are added.
  bool redundant = false;
  // Its bytes alone are counted elsewhere.
  bool bytes_redundant = false;
  // Only groups: takes no time of its own and lends its name to its parts.
  bool wrapper = false;
};

namespace detail {

struct ScopeNode;

// Where the calling thread stands: the scope that a new one becomes part of. No tree: nobody
// listens. constinit and initial-exec for the reason that counter.h gives.
struct ScopePosition {
  ScopeTree* tree = nullptr;
  std::uint32_t node = 0;
  bool parallel = false;  // what is opened here runs beside the thread that the tree belongs to
};
KYMO_API extern constinit thread_local ScopePosition scope_position
    __attribute__((tls_model("initial-exec")));

}  // namespace detail

// A span of work, timed from construction to destruction, as a part of the scope that is open on
// this thread. A return or an exception ends it; an exception is noted as its error.
//
// Threads:   opened, ended and destroyed on one thread, the last opened first; add_bytes() and
//            fail() from any.
// Ownership: what is recorded belongs to the tree, which must outlive the scope.
// Errors:    none: what the tree has no room for is counted there, and its parts join the next
//            scope outward.
// Cost:      nobody listens: one load and a branch. Else two looks at the clock (bench/scope).
class Scope {
 public:
  explicit Scope(ScopeName name, const ScopeOptions& options = {}) noexcept {
    if (detail::scope_position.tree != nullptr) [[unlikely]] {
      open(name, options);
    }
  }
  ~Scope() { end(); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // Bytes that this scope moved, its parts not included.
  void add_bytes(std::uint64_t bytes) noexcept {
    if (node_ != nullptr) {
      count_bytes(bytes);
    }
  }
  // Why it failed; the first reason is kept.
  void fail(std::string_view error) noexcept {
    if (node_ != nullptr) {
      note_error(error);
    }
  }
  // Ends it before its destruction.
  void end() noexcept {
    if (node_ != nullptr) {
      close();
    }
  }
  [[nodiscard]] bool recorded() const noexcept { return node_ != nullptr; }

 private:
  KYMO_API void open(const ScopeName& name, const ScopeOptions& options) noexcept;
  KYMO_API void close() noexcept;
  KYMO_API void count_bytes(std::uint64_t bytes) noexcept;
  KYMO_API void note_error(std::string_view error) noexcept;

  detail::ScopeNode* node_ = nullptr;  // null: not recorded
  detail::ScopePosition outer_;
  std::uint32_t index_ = 0;
  int exceptions_ = 0;  // that were in flight when it was opened
};

// What somebody else measured, added afterwards as a part of the scope that is open on this thread.
// `start_ns` is on CLOCK_MONOTONIC; 0: it has just ended.
KYMO_API void add_scope(ScopeName name, std::uint64_t start_ns, std::uint64_t duration_ns,
                        std::uint64_t bytes = 0, const ScopeOptions& options = {}) noexcept;

// One scope of a tree, as it is read.
struct ScopeRecord {
  static constexpr std::size_t kNoParent = static_cast<std::size_t>(-1);

  std::size_t parent = kNoParent;  // its index; smaller than the scope's own
  std::string name;
  std::string category;
  std::string error;
  std::uint64_t start_ns = 0;     // CLOCK_MONOTONIC, as a recording's start_monotonic_ns
  std::uint64_t duration_ns = 0;  // parts included; 0: a wrapper
  std::uint64_t bytes = 0;        // parts not included
  bool parallel = false;
  bool redundant = false;
  bool bytes_redundant = false;
  bool unfinished = false;  // still open: the duration is the one so far

  friend bool operator==(const ScopeRecord&, const ScopeRecord&) = default;
};

// What a request, or any other piece of work, spent its time on. A thread records into it from
// EnterScope on, whatever code it runs: scopes find the tree through the thread, so that no
// interface between the request and its innermost part has to pass it on.
//
// Threads:   every member from any thread, while others record.
// Ownership: owns what was recorded. Outlives every Scope and EnterScope that refers to it.
// Errors:    none: beyond `limit` scopes, or out of memory, a scope is counted and left out.
// Cost:      4 KiB, and as much for each 64 scopes more.
class KYMO_API ScopeTree {
 public:
  static constexpr std::size_t kDefaultLimit = 4096;

  // Begins the root.
  explicit ScopeTree(ScopeName name, std::size_t limit = kDefaultLimit);
  ~ScopeTree();
  ScopeTree(const ScopeTree&) = delete;
  ScopeTree& operator=(const ScopeTree&) = delete;

  // Ends the root, once.
  void end() noexcept;
  // Why the whole failed; the first reason is kept.
  void fail(std::string_view error) noexcept;

  // Every scope so far in the order of opening, the root first.
  [[nodiscard]] std::vector<ScopeRecord> records() const;
  // Scopes that were left out.
  [[nodiscard]] std::uint64_t dropped() const noexcept;

 private:
  friend class Scope;
  friend class ScopeContext;
  friend class EnterScope;
  friend void add_scope(ScopeName, std::uint64_t, std::uint64_t, std::uint64_t,
                        const ScopeOptions&) noexcept;
  struct State;
  std::unique_ptr<State> state_;
};

// The scope that is open on the thread that asks, to be handed to a thread that does a part of it.
class ScopeContext {
 public:
  static ScopeContext current() noexcept { return ScopeContext(detail::scope_position); }

 private:
  friend class EnterScope;
  explicit ScopeContext(const detail::ScopePosition& at) : at_(at) {}
  detail::ScopePosition at_;
};

// While it lives, the scopes that this thread opens go to a tree, or into a scope of another
// thread. Nested ones are left in the order in which they were entered.
class EnterScope {
 public:
  // Into the root: this thread does the work.
  explicit EnterScope(ScopeTree& tree) noexcept : outer_(detail::scope_position) {
    detail::scope_position = {&tree, 0, false};
  }
  // Into a scope that another thread has open, and keeps open. What is opened here is marked as
  // parallel, unless the other waits for it meanwhile.
  explicit EnterScope(const ScopeContext& context, bool parallel = true) noexcept
      : outer_(detail::scope_position) {
    detail::scope_position = context.at_;
    detail::scope_position.parallel = parallel;
  }
  ~EnterScope() { detail::scope_position = outer_; }
  EnterScope(const EnterScope&) = delete;
  EnterScope& operator=(const EnterScope&) = delete;

 private:
  detail::ScopePosition outer_;
};

// Counts to a scope the bytes that are read from and written to a stream, for as long as it lives.
// Threads: the stream's. Ownership: refers to stream and scope. Where nobody listens the stream is
// left alone.
class KYMO_API CountBytes : private std::streambuf {
 public:
  CountBytes(std::ios& stream, Scope& scope);
  ~CountBytes() override;
  CountBytes(const CountBytes&) = delete;
  CountBytes& operator=(const CountBytes&) = delete;

 private:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* data, std::streamsize size) override;
  int_type underflow() override;
  int_type uflow() override;
  std::streamsize xsgetn(char* data, std::streamsize size) override;
  int_type pbackfail(int_type c) override;
  std::streamsize showmanyc() override;
  int sync() override;
  pos_type seekoff(off_type off, std::ios_base::seekdir way,
                   std::ios_base::openmode which) override;
  pos_type seekpos(pos_type pos, std::ios_base::openmode which) override;

  std::ios& stream_;
  Scope& scope_;
  std::streambuf* inner_ = nullptr;  // null: not wrapped
};

}  // namespace kymo
