#include "kymo/count_bytes.h"

namespace kymo {

// This buffer holds nothing back: each call goes on to the stream's own buffer.
CountBytes::CountBytes(std::ios& stream, Scope& scope) : stream_(stream), scope_(scope) {
  if (scope.recorded() && stream.rdbuf() != nullptr) {
    const std::ios::iostate state = stream.rdstate();
    inner_ = stream.rdbuf(this);
    stream.clear(state);  // rdbuf() has cleared the state
  }
}

CountBytes::~CountBytes() {
  if (inner_ != nullptr) {
    const std::ios::iostate state = stream_.rdstate();
    stream_.rdbuf(inner_);
    stream_.clear(state);
  }
}

CountBytes::int_type CountBytes::overflow(int_type c) {
  if (traits_type::eq_int_type(c, traits_type::eof())) {
    return traits_type::not_eof(c);
  }
  const int_type put = inner_->sputc(traits_type::to_char_type(c));
  scope_.add_bytes(traits_type::eq_int_type(put, traits_type::eof()) ? 0 : 1);
  return put;
}

std::streamsize CountBytes::xsputn(const char* data, std::streamsize size) {
  const std::streamsize put = inner_->sputn(data, size);
  scope_.add_bytes(static_cast<std::uint64_t>(put));
  return put;
}

CountBytes::int_type CountBytes::underflow() {
  return inner_->sgetc();
}

CountBytes::int_type CountBytes::uflow() {
  const int_type got = inner_->sbumpc();
  scope_.add_bytes(traits_type::eq_int_type(got, traits_type::eof()) ? 0 : 1);
  return got;
}

std::streamsize CountBytes::xsgetn(char* data, std::streamsize size) {
  const std::streamsize got = inner_->sgetn(data, size);
  scope_.add_bytes(static_cast<std::uint64_t>(got));
  return got;
}

CountBytes::int_type CountBytes::pbackfail(int_type c) {
  return traits_type::eq_int_type(c, traits_type::eof())
             ? inner_->sungetc()
             : inner_->sputbackc(traits_type::to_char_type(c));
}

std::streamsize CountBytes::showmanyc() {
  return inner_->in_avail();
}

int CountBytes::sync() {
  return inner_->pubsync();
}

CountBytes::pos_type CountBytes::seekoff(off_type off, std::ios_base::seekdir way,
                                         std::ios_base::openmode which) {
  return inner_->pubseekoff(off, way, which);
}

CountBytes::pos_type CountBytes::seekpos(pos_type pos, std::ios_base::openmode which) {
  return inner_->pubseekpos(pos, which);
}

}  // namespace kymo
