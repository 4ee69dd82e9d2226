#include "criu/options.h"

#include <gtest/gtest.h>

#include "criu/rpc.pb.h"

namespace kymo::criu {
namespace {

using Words = std::vector<std::string>;

Options all_options() {
  Options options;
  options.tcp_established = options.shell_job = options.file_locks = true;
  options.external = {"mnt[/a]:b"};
  options.log_level = 4;
  options.external_unix_sockets = true;
  options.root = "/root";
  options.ghost_limit = 1 << 22;
  options.link_remap = options.tcp_close = options.skip_in_flight = true;
  options.cgroups = Cgroups::strict;
  options.network_lock = NetworkLock::skip;
  options.file_validation = FileValidation::file_size;
  options.inherited = {{"var/log/a", "/a"}, {"pipe:[7]", "/b"}};
  return options;
}

TEST(OptionsTest, OptionsThatAreNotSetAreNotPassedToCriu) {
  EXPECT_EQ(arguments_of(Options{}), Words{});
  EXPECT_TRUE(given(Options{}).empty());
  wire::Options message;
  message.set_images_dir_fd(3);
  const std::string before = message.SerializeAsString();
  set(Options{}, message);
  EXPECT_EQ(message.SerializeAsString(), before);
}

// The expected words are from criu(8).
TEST(OptionsTest, AllAreWordsOfCriusCommand) {
  EXPECT_EQ(arguments_of(all_options()), (Words{"--tcp-established",
                                                "--shell-job",
                                                "--external",
                                                "mnt[/a]:b",
                                                "-v4",
                                                "--ext-unix-sk",
                                                "--root",
                                                "/root",
                                                "--ghost-limit",
                                                "4194304",
                                                "--link-remap",
                                                "--tcp-close",
                                                "--skip-in-flight",
                                                "--manage-cgroups=strict",
                                                "--network-lock",
                                                "skip",
                                                "--file-validation",
                                                "filesize",
                                                "--inherit-fd",
                                                "fd[4]:var/log/a",
                                                "--inherit-fd",
                                                "fd[5]:pipe:[7]"}));
  EXPECT_EQ(given(all_options()).size(), 15U);
}

// The expected field numbers are from CRIU's images/rpc.proto.
TEST(OptionsTest, AllAreFieldsOfCriusRpc) {
  wire::Options message;
  set(all_options(), message);
  EXPECT_TRUE(message.tcp_established() && message.shell_job() && message.ext_unix_sk());
  EXPECT_TRUE(message.link_remap() && message.tcp_close() && message.tcp_skip_in_flight());
  EXPECT_EQ(message.external(0), "mnt[/a]:b");
  EXPECT_EQ(message.root(), "/root");
  EXPECT_EQ(message.log_level(), 4);
  EXPECT_EQ(message.ghost_limit(), 4194304U);
  EXPECT_EQ(static_cast<int>(message.manage_cgroups_mode()), 5);
  EXPECT_EQ(static_cast<int>(message.network_lock()), 3);
  EXPECT_EQ(message.inherit_fd(1).key(), "pipe:[7]");
  EXPECT_EQ(message.inherit_fd(1).fd(), kFirstInherited + 1);
}

TEST(OptionsTest, AModeIsFoundByItsName) {
  for (const Cgroups mode : {Cgroups::none, Cgroups::props, Cgroups::soft, Cgroups::full,
                             Cgroups::strict, Cgroups::ignore}) {
    EXPECT_EQ(cgroups_named(name_of(mode)), mode);
  }
  EXPECT_EQ(cgroups_named("rubbish"), Cgroups::unset);
  EXPECT_EQ(cgroups_named(""), Cgroups::unset);
}

}  // namespace
}  // namespace kymo::criu
