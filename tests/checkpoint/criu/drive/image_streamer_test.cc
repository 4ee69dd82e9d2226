#include "checkpoint/criu/drive/image_streamer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "checkpoint/criu/drive/streamer_requests.h"
#include "checkpoint/criu/images/images.h"
#include "support/temporary_directory.h"

namespace kymo::criu {
namespace {

constexpr std::chrono::seconds kPatience{60};

namespace fs = std::filesystem;
using std::chrono::steady_clock;

// Speaks to a streamer in the way of CRIU.
class PretendedCriu {
 public:
  PretendedCriu(const std::string& images_dir, const char* socket_name)
      : socket_(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = images_dir + "/" + socket_name;
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    const auto* generic = static_cast<const sockaddr*>(static_cast<const void*>(&address));
    EXPECT_EQ(connect(socket_.get(), generic, sizeof address), 0) << strerror(errno);
  }

  void say(const std::string& bytes) const {
    EXPECT_EQ(send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  void ask(const std::string& name) const { say(streamer_request(name)); }
  // Whether the streamer says that it has this file, as it does at a restore.
  [[nodiscard]] bool is_there() const {
    const std::string yes = streamer_reply(true);
    std::string answer(yes.size(), '\0');
    EXPECT_EQ(recv(socket_.get(), answer.data(), answer.size(), MSG_WAITALL),
              static_cast<ssize_t>(answer.size()));
    return answer == yes;
  }
  // Passes one end of a pipe to the streamer and returns the other end, to write to or to read
  // from.
  [[nodiscard]] FileDescriptor open_pipe(bool writes) const {
    std::array<int, 2> ends{};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    FileDescriptor ours(ends[writes ? 1 : 0]);
    const FileDescriptor theirs(ends[writes ? 0 : 1]);
    char byte = 0;
    iovec buffer{&byte, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &buffer;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = theirs.get();
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    EXPECT_EQ(sendmsg(socket_.get(), &message, MSG_NOSIGNAL), 1);
    return ours;
  }

 private:
  FileDescriptor socket_;
};

// Returns 0, or the errno of the write that failed.
int write_to(const FileDescriptor& pipe, const std::string& bytes) {
  std::size_t written = 0;
  return write_all(pipe.get(), bytes, &written);
}

std::string read_from(const FileDescriptor& pipe) {
  std::string out;
  std::array<char, 4096> piece{};
  for (ssize_t n = 0; (n = read(pipe.get(), piece.data(), piece.size())) > 0;) {
    out.append(piece.data(), static_cast<std::size_t>(n));
  }
  return out;
}

std::string content(std::size_t bytes, char kind) {
  std::string out;
  while (out.size() < bytes) out += kind + std::to_string(out.size());
  out.resize(bytes);
  return out;
}

class ImageStreamerTest : public testing::TestWithParam<Compression> {
 protected:
  std::unique_ptr<ImageStreamer> capture() {
    return ImageStreamer::capture(folder_.path(), folder_.path(), {GetParam(), 0},
                                  [this](const Streamed& so_far) { seen_ = so_far; })
        .value();
  }
  [[nodiscard]] std::string file(const std::string& name) const {
    return folder_.path() + "/" + name + std::string(suffix_of(GetParam()));
  }

  test::TemporaryDirectory folder_;
  Streamed seen_;
};

TEST_P(ImageStreamerTest, WhatIsCapturedIsServed) {
  const std::string pages = content(3'000'000, 'p');
  const std::string core = content(500, 'c');
  {
    auto streamer = capture();
    {
      const PretendedCriu criu(folder_.path(), "streamer-capture.sock");
      criu.ask("pages-1.img");
      const FileDescriptor first = criu.open_pipe(true);
      criu.ask("core-1.img");  // a second image before the first has ended
      const FileDescriptor second = criu.open_pipe(true);
      EXPECT_EQ(write_to(second, core), 0);
      EXPECT_EQ(write_to(first, pages), 0);
      criu.ask("empty.img");
      static_cast<void>(criu.open_pipe(true));
    }
    const auto streamed = streamer->finish(kPatience);
    ASSERT_TRUE(streamed.ok()) << streamed.error().message;
    EXPECT_EQ(streamed->bytes, pages.size() + core.size());
    EXPECT_EQ(streamed->page_bytes, pages.size());
    std::uintmax_t stored = 0;
    for (const char* name : {"pages-1.img", "core-1.img", "empty.img"}) {
      stored += fs::file_size(file(name));
    }
    EXPECT_EQ(streamed->stored, stored);
    EXPECT_EQ(seen_.bytes, streamed->bytes);
  }
  EXPECT_FALSE(fs::exists(folder_.path() + "/streamer-capture.sock"));
  // Also finds it under its compressed name.
  const auto whole = read_image(folder_.path() + "/pages-1.img");
  ASSERT_TRUE(whole.ok()) << whole.error().message;
  EXPECT_EQ(whole->size(), pages.size());

  auto streamer = ImageStreamer::serve(folder_.path(), folder_.path(), nullptr).value();
  {
    const PretendedCriu criu(folder_.path(), "streamer-serve.sock");
    criu.ask("pages-1.img");
    ASSERT_TRUE(criu.is_there());
    const FileDescriptor first = criu.open_pipe(false);
    criu.ask("missing.img");
    EXPECT_FALSE(criu.is_there());
    criu.ask("core-1.img");
    ASSERT_TRUE(criu.is_there());
    EXPECT_EQ(read_from(criu.open_pipe(false)), core);
    criu.ask("pages-1.img");  // it is not an error if CRIU closes an image before its end
    ASSERT_TRUE(criu.is_there());
    {
      const FileDescriptor half = criu.open_pipe(false);
      std::array<char, 100> piece{};
      EXPECT_GT(read(half.get(), piece.data(), piece.size()), 0);
    }
    EXPECT_EQ(read_from(first), pages);
  }
  const auto served = streamer->finish(kPatience);
  EXPECT_TRUE(served.ok()) << served.error().message;
}

TEST_P(ImageStreamerTest, CriuDoesNotGetTheEndOfAnImageThatIsCutShort) {
  if (GetParam() == Compression::none) return;  // its length is checked before a restore
  const std::string pages = content(3'000'000, 'p');
  {
    auto streamer = capture();
    {
      const PretendedCriu criu(folder_.path(), "streamer-capture.sock");
      criu.ask("pages-1.img");
      EXPECT_EQ(write_to(criu.open_pipe(true), pages), 0);
    }
    ASSERT_TRUE(streamer->finish(kPatience).ok());
  }
  for (int cut = 1; cut <= 8; ++cut) {
    fs::resize_file(file("pages-1.img"), fs::file_size(file("pages-1.img")) - 1);
    auto streamer = ImageStreamer::serve(folder_.path(), folder_.path(), nullptr).value();
    {
      const PretendedCriu criu(folder_.path(), "streamer-serve.sock");
      criu.ask("pages-1.img");
      ASSERT_TRUE(criu.is_there());
      EXPECT_LT(read_from(criu.open_pipe(false)).size(), pages.size()) << cut;
    }
    const auto served = streamer->finish(kPatience);
    ASSERT_FALSE(served.ok()) << cut;
    EXPECT_NE(served.error().message.find("pages-1.img"), std::string::npos);
  }
}

TEST_P(ImageStreamerTest, SettledIsInTheFileThoughTheImageHasNotEnded) {
  auto streamer = capture();
  const PretendedCriu criu(folder_.path(), "streamer-capture.sock");
  criu.ask("pages-1.img");
  const FileDescriptor pipe = criu.open_pipe(true);
  ASSERT_EQ(write_to(pipe, content(10'000, 'p')), 0);
  const Result<void> settled = streamer->wait_until_written();
  ASSERT_TRUE(settled.ok()) << settled.error().message;
  EXPECT_EQ(seen_.bytes, 10'000U);
  EXPECT_EQ(seen_.stored, fs::file_size(file("pages-1.img")));
  EXPECT_GT(seen_.stored, 100U);
  // All bytes have arrived, but CRIU has not said that the image is complete.
  const auto unended = streamer->finish(kPatience);
  EXPECT_EQ(unended.error().code, Code::data_loss);
}

TEST_P(ImageStreamerTest, AnImageThatIsCutOffInBetweenIsNotSettled) {
  const std::shared_ptr<HeldImages> held = HeldImages::hold(folder_.path()).value();
  auto streamer = ImageStreamer::capture(
                      folder_.path(), folder_.path(), {GetParam(), 0},
                      [this](const Streamed& so_far) { seen_ = so_far; }, held)
                      .value();
  const PretendedCriu criu(folder_.path(), "streamer-capture.sock");
  const auto settle = [&] { return streamer->wait_until_written(); };
  {
    criu.ask("core-1.img");
    const FileDescriptor pipe = criu.open_pipe(true);
    ASSERT_EQ(write_to(pipe, content(10'000, 'c')), 0);
    const Result<void> settled = settle();
    ASSERT_TRUE(settled.ok()) << settled.error().message;
    fs::resize_file(file("core-1.img"), 0);
    ASSERT_EQ(write_to(pipe, content(10'000, 'c')), 0);
  }
  const Result<void> settled = settle();
  ASSERT_FALSE(settled.ok());
  EXPECT_NE(settled.error().message.find(file("core-1.img") + " has "), std::string::npos)
      << settled.error().message;
}

TEST_P(ImageStreamerTest, AFullDiskClosesThePipeAndIsTold) {
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{20'000, before.rlim_max};
  signal(SIGXFSZ, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  auto streamer = capture();
  setrlimit(RLIMIT_FSIZE, &small);
  const PretendedCriu criu(folder_.path(), "streamer-capture.sock");
  criu.ask("pages-1.img");
  const FileDescriptor pipe = criu.open_pipe(true);
  std::string noise;
  for (std::uint32_t i = 0, x = 1; i < 4'000'000; ++i) {
    x = x * 1'664'525 + 1'013'904'223;
    noise += static_cast<char>(x >> 24);
  }
  EXPECT_EQ(write_to(pipe, noise), EPIPE);
  const Result<void> settled = streamer->wait_until_written();
  setrlimit(RLIMIT_FSIZE, &before);
  ASSERT_FALSE(settled.ok());
  EXPECT_NE(settled.error().message.find("pages-1.img"), std::string::npos);
  EXPECT_FALSE(streamer->finish(kPatience).ok());
}

// Nobody can cut them off before, which would leave a hole.
TEST(ImageStreamerPagesTest, GetTheirNameWhenTheyAreComplete) {
  const test::TemporaryDirectory folder;
  if (!FileDescriptor(open(folder.path().c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600))
           .valid()) {
    GTEST_SKIP() << "this file system has no files without a name";
  }
  std::atomic<std::uint64_t> arrived = 0;
  auto streamer =
      ImageStreamer::capture(folder.path(), folder.path(), {}, [&](const Streamed& so_far) {
        arrived = so_far.stored;
      }).value();
  {
    const PretendedCriu criu(folder.path(), "streamer-capture.sock");
    criu.ask("pages-1.img");
    const FileDescriptor pipe = criu.open_pipe(true);
    ASSERT_EQ(write_to(pipe, content(10'000, 'p')), 0);
    EXPECT_TRUE(test::eventually([&] { return arrived == 10'000; }));
    EXPECT_FALSE(fs::exists(folder.path() + "/pages-1.img"));
  }
  ASSERT_TRUE(streamer->finish(kPatience).ok());
  EXPECT_EQ(fs::file_size(folder.path() + "/pages-1.img"), 10'000U);
}

INSTANTIATE_TEST_SUITE_P(Each, ImageStreamerTest,
                         testing::Values(Compression::none, Compression::zstd, Compression::lz4),
                         [](const auto& chosen) { return std::string(name_of(chosen.param)); });

TEST(ImageStreamerFaultsTest, HostileNamesAndRubbishMakeNoFile) {
  for (const std::string& said :
       {streamer_request("../escaped.img"), streamer_request("/tmp/escaped.img"),
        std::string("rubbish rubbish rubbish"), streamer_request("ok.img").substr(0, 6)}) {
    const test::TemporaryDirectory folder;
    const std::string images = folder.folder("images");
    auto streamer = ImageStreamer::capture(images, images, {}, nullptr).value();
    {
      const PretendedCriu criu(images, "streamer-capture.sock");
      criu.say(said);
    }
    EXPECT_FALSE(streamer->finish(kPatience).ok());
    streamer.reset();
    EXPECT_TRUE(fs::is_empty(images));
    EXPECT_FALSE(fs::exists(folder.path() + "/escaped.img"));
  }
}

TEST(ImageStreamerFaultsTest, ALinkIsNotServedNorWrittenThrough) {
  const test::TemporaryDirectory folder;
  const std::string images = folder.folder("images");
  const std::string outside = folder.path() + "/outside";
  std::ofstream(outside) << "secret";
  fs::create_symlink(outside, images + "/core-1.img");
  {
    auto streamer = ImageStreamer::serve(images, images, nullptr).value();
    const PretendedCriu criu(images, "streamer-serve.sock");
    criu.ask("core-1.img");
    EXPECT_FALSE(criu.is_there());
  }
  auto streamer = ImageStreamer::capture(images, images, {}, nullptr).value();
  {
    const PretendedCriu criu(images, "streamer-capture.sock");
    criu.ask("core-1.img");
    const FileDescriptor pipe = criu.open_pipe(true);
    static_cast<void>(streamer->wait_until_written());
  }
  EXPECT_FALSE(streamer->finish(kPatience).ok());
  EXPECT_EQ(fs::file_size(outside), 6U);
}

TEST(ImageStreamerFaultsTest, ADamagedImageIsNamedAndWithoutAPipeNothingHangs) {
  const test::TemporaryDirectory folder;
  std::ofstream(folder.path() + "/core-1.img.zst") << "no frame at all";
  auto streamer = ImageStreamer::serve(folder.path(), folder.path(), nullptr).value();
  {
    const PretendedCriu criu(folder.path(), "streamer-serve.sock");
    criu.ask("core-1.img");
    ASSERT_TRUE(criu.is_there());
    EXPECT_EQ(read_from(criu.open_pipe(false)), "");
  }
  const auto served = streamer->finish(kPatience);
  ASSERT_FALSE(served.ok());
  EXPECT_NE(served.error().message.find("core-1.img"), std::string::npos);

  auto idle = ImageStreamer::capture(folder.path(), folder.path(), {}, nullptr).value();
  EXPECT_TRUE(idle->wait_until_written().ok());
  EXPECT_TRUE(idle->finish(kPatience).ok());  // CRIU never came
}

}  // namespace
}  // namespace kymo::criu
