#include "checkpoint/criu/drive/options.h"

#include <gtest/gtest.h>

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

TEST(OptionsTest, OptionsThatAreNotSetAreNotPassedToCriuAndCgroupsAreLeftAlone) {
  // Without it, CRIU would make cgroups anew, also foreign ones below those of the process.
  EXPECT_EQ(arguments_of(Options{}), Words{"--manage-cgroups=ignore"});
  EXPECT_TRUE(given(Options{}).empty());
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
