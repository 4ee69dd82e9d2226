#pragma once

#include <ios>
#include <streambuf>

#include "kymo/export.h"
#include "kymo/scope.h"

namespace kymo {

// While it exists, adds the bytes that are read from and written to a stream to a scope. If the
// scope is not recorded, the stream is not changed.
// Threads:   those of the stream.
// Ownership: refers to the stream and the scope.
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
