// Reasons why a restore will fail on this machine. The check compares what the checkpoint needs
// with what the machine has.
#include "checkpoint/runtimes/shared/restore_checks.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "checkpoint/runtimes/shared/process_checks.h"
#include "support/loopback.h"
#include "support/temporary_directory.h"

namespace kymo::runtime {
namespace {

using preflight::Grade;
using preflight::Report;

// The finding with this id, as "refuses LINE" or "warns LINE", or empty if there is none.
std::string finding_in(const Report& report, const std::string& failure) {
  for (const preflight::Finding& finding : report.findings) {
    if (finding.failure != failure) continue;
    return (finding.grade == Grade::refuses ? "refuses " : "warns ") + line_of(finding);
  }
  return {};
}

std::optional<CriuChoice> crius(const criu::Version& version) {
  return CriuChoice({{"criu", "", version}}, running_kernel());
}

Report look(const PlannedRestore& planned) {
  return look_before_restore(planned, crius({4, 2, 0, ""}));
}

TEST(RestoreChecks, NothingIsFoundIfNothingIsNeeded) {
  PlannedRestore planned;
  planned.machine = this_machine();
  planned.criu_version = "4.2";
  const Report report = look(planned);
  EXPECT_EQ(report.refusing(), 0U);
  EXPECT_EQ(report.not_seen, std::vector<std::string>());
}

TEST(RestoreChecks, APidInUseIsRefusedUnlessItIsOfAContainer) {
  PlannedRestore planned;
  planned.ids = {getpid()};
  EXPECT_TRUE(finding_in(look(planned), "pid-taken").starts_with("refuses "));
  planned.container = true;
  EXPECT_EQ(finding_in(look(planned), "pid-taken"), "");
}

// No process has the id, but the kernel gives it to none: CRIU said "File exists".
TEST(RestoreChecks, TheSessionAndTheGroupOfAProcessAreIdsInUse) {
  for (const auto lead : {+[] { return setsid(); }, +[] { return pid_t{setpgid(0, 0)}; }}) {
    const pid_t leader = fork();
    if (leader == 0) {
      lead();
      if (fork() == 0) pause();
      _exit(0);
    }
    ASSERT_EQ(waitpid(leader, nullptr, 0), leader);
    PlannedRestore planned;
    planned.ids = {leader};
    const std::string found = finding_in(look(planned), "pid-taken");
    EXPECT_NE(found.find(" is " + std::to_string(leader)), std::string::npos) << found;
    EXPECT_EQ(kill(-leader, SIGKILL), 0);
  }
}

TEST(RestoreChecks, NeedsTheIdsOfSessionsAndGroupsUnlessTheyAreThoseOfAForeignRoot) {
  using Tree = std::vector<criu::ImageProcess>;
  const criu::ImageProcess root{.pid = 10, .group = 10, .session = 10, .threads = {10, 11}};
  const criu::ImageProcess child{
      .pid = 12, .parent = 10, .group = 14, .session = 13, .threads = {12}};
  EXPECT_EQ(ids_of(Tree{root, child}), (std::set<pid_t>{10, 11, 12, 13, 14}));
  const criu::ImageProcess on_shell{.pid = 10, .group = 9, .session = 8, .threads = {10}};
  const criu::ImageProcess below{
      .pid = 12, .parent = 10, .group = 9, .session = 8, .threads = {12}};
  EXPECT_EQ(ids_of(Tree{on_shell, below}), (std::set<pid_t>{10, 12}));
}

// CRIU said "Can't mmap shmem", and kymo that the reason is not known.
TEST(RestoreChecks, HugePagesThatAreNotFreeAreRefused) {
  PlannedRestore planned;
  planned.needs.huge_pages[std::uint64_t{2} << 20U] = std::uint64_t{1} << 40U;
  const std::string found = finding_in(look(planned_restore_of(to_json(planned))), "huge-restore");
  EXPECT_NE(found.find("1099511627776 of 2048 KiB, free are "), std::string::npos) << found;
}

TEST(RestoreChecks, ThePidsOfAPidNamespaceAreNotThoseOfThisMachine) {
  PlannedRestore planned;
  planned.ids = {1, getpid()};
  const std::string found = finding_in(look(planned), "pid-taken");
  EXPECT_NE(found.find("have a pid namespace of their own"), std::string::npos) << found;
}

// Such a file was called missing, and the restore found it.
TEST(RestoreChecks, AFileWhoseNameIsNotUtf8IsNotSeen) {
  PlannedRestore planned;
  planned.needs.files = {{"/tmp/\xEF\xBF\xBD"}};
  const Report report = look(planned);
  EXPECT_EQ(finding_in(report, "file-missing"), "");
  ASSERT_EQ(report.not_seen.size(), 1U);
  EXPECT_NE(report.not_seen[0].find("is not UTF-8"), std::string::npos);
}

TEST(RestoreChecks, AFileThatIsGoneOrChangedIsRefused) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.path() + "/file";
  std::ofstream(path) << "12345";
  struct stat seen {};
  ASSERT_EQ(::stat(path.c_str(), &seen), 0);
  PlannedRestore planned;
  planned.needs.files = {{path, 5, seen.st_mode}};
  EXPECT_EQ(look(planned).refusing(), 0U);
  planned.needs.files = {{path, 7, seen.st_mode}};
  const std::string size = finding_in(look(planned), "file-size");
  EXPECT_NE(size.find(path + ", 7 bytes then, 5 now"), std::string::npos) << size;
  planned.needs.files = {{path, 5, seen.st_mode ^ 0111U}};
  EXPECT_TRUE(finding_in(look(planned), "file-mode").starts_with("refuses "));
  planned.needs.files = {{path + "-none", 5, seen.st_mode}};
  EXPECT_TRUE(finding_in(look(planned), "file-missing").starts_with("refuses "));
  planned.needs.own_mounts = true;
  const Report elsewhere = look(planned);
  EXPECT_EQ(elsewhere.refusing(), 0U);
  EXPECT_EQ(elsewhere.not_seen.size(), 1U);
}

// A file of which CRIU compares less than it would by default.
TEST(RestoreChecks, WhatCriuIsToldNotToCompareIsNotRefused) {
  const test::TemporaryDirectory folder;
  struct stat seen {};
  ASSERT_EQ(::stat("/proc/self/exe", &seen), 0);
  const std::string own = std::filesystem::read_symlink("/proc/self/exe");
  const auto size = static_cast<std::uint64_t>(seen.st_size);
  PlannedRestore planned;
  planned.needs.files = {{own, size, seen.st_mode, std::string(40, '0')}};
  EXPECT_NE(finding_in(look(planned), "file-buildid"), "");
  planned.by_size = true;
  EXPECT_EQ(look(planned).refusing(), 0U);

  planned.by_size.reset();
  const std::string config =
      folder.file("criu.conf", "file-validation filesize\nskip-file-rwx-check\n");
  ::setenv("CRIU_CONFIG_FILE", config.c_str(), 1);
  EXPECT_EQ(look(planned).refusing(), 0U);
  planned.needs.files = {{own, size, seen.st_mode ^ S_IWOTH}};
  EXPECT_EQ(look(planned).refusing(), 0U);
  planned.needs.files = {{own, size, seen.st_mode ^ S_ISUID}};
  EXPECT_NE(finding_in(look(planned), "file-mode"), "");
  planned.by_size = false;
  planned.needs.files = {{own, size, seen.st_mode, std::string(40, '0')}};
  EXPECT_NE(finding_in(look(planned), "file-buildid"), "") << "the request says so";
  ::unsetenv("CRIU_CONFIG_FILE");
}

TEST(RestoreChecks, AnAddressThatIsTakenOrNotHereIsRefused) {
  const test::Listener listening;
  PlannedRestore planned;
  planned.needs.addresses = {{false, false, "127.0.0.1", listening.port}};
  const std::string taken = finding_in(look(planned), "inet-address");
  EXPECT_TRUE(taken.starts_with("refuses an address of the checkpoint is in use (TCP 127.0.0.1:"))
      << taken;
  planned.needs.addresses = {{false, false, "0.0.0.0", listening.port}};
  EXPECT_TRUE(finding_in(look(planned), "inet-address").starts_with("refuses ")) << "all addresses";
  planned.needs.addresses = {{false, true, "127.0.0.1", listening.port}};
  EXPECT_EQ(finding_in(look(planned), "inet-address"), "") << "another protocol";
  // RFC 5737: this address belongs to no machine.
  planned.needs.addresses = {{false, false, "192.0.2.1", 80}};
  const std::string foreign = finding_in(look(planned), "inet-address");
  EXPECT_TRUE(foreign.starts_with("refuses this machine does not have")) << foreign;
  planned.needs.own_network = true;
  EXPECT_EQ(finding_in(look(planned), "inet-address"), "");
}

// CRIU restores such a server beside the other one, as itself would be started.
TEST(RestoreChecks, APortThatSocketsShareIsFree) {
  const FileDescriptor other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  ASSERT_EQ(::setsockopt(other.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on), 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(other.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(other.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_EQ(::listen(other.get(), 1), 0);
  PlannedRestore planned;
  planned.needs.addresses = {{false, false, "127.0.0.1", ntohs(address.sin_port)}};
  EXPECT_EQ(finding_in(look(planned), "inet-address"), "");
}

TEST(RestoreChecks, AnOlderCriuIsRefusedAndAnUnknownOneIsNotSeen) {
  PlannedRestore planned;
  planned.criu_version = "4.2";
  const Report older = look_before_restore(planned, crius({3, 17, 1, ""}));
  EXPECT_TRUE(finding_in(older, "images-broken").starts_with("refuses CRIU is older here"));
  EXPECT_EQ(look_before_restore(planned, {}).not_seen.size(), 1U);
}

TEST(RestoreChecks, AnOlderKernelAndALackingCpuWarn) {
  PlannedRestore planned;
  planned.machine = this_machine();
  ASSERT_NE(planned.machine.cpu_flags, "");
  planned.machine.kernel = "99.1.0";
  planned.machine.cpu_flags += " flying";
  const Report report = look(planned);
  EXPECT_EQ(report.refusing(), 0U);
  EXPECT_TRUE(finding_in(report, "kernel-config").starts_with("warns "));
  const std::string lacking = finding_in(report, "cpu-mismatch");
  EXPECT_NE(lacking.find("(flying; "), std::string::npos) << lacking;
}

TEST(RestoreChecks, ABundleWithoutASourceOfAMountIsRefused) {
  const test::TemporaryDirectory folder;
  PlannedRestore planned;
  planned.container = true;
  planned.bundle = folder.path();
  EXPECT_NE(finding_in(look(planned), "mnt-restore").find("bundle"), std::string::npos);
  std::ofstream(folder.path() + "/config.json")
      << R"({"mounts": [{"source": "/none/here", "destination": "/data", "options": ["rbind"]},)"
      << R"({"source": "/", "destination": "/root", "type": "bind"},)"
      << R"({"source": "proc", "destination": "/proc", "type": "proc"}]})";
  const Report report = look(planned);
  ASSERT_EQ(report.refusing(), 1U);
  EXPECT_NE(finding_in(report, "mnt-restore").find("/none/here, mounted at /data"),
            std::string::npos);
}

TEST(RestoreChecks, ALinkInPlaceOfAMountsSourceIsRefused) {
  const test::TemporaryDirectory folder;
  folder.folder("volume");
  std::filesystem::create_symlink(folder.path() + "/volume", folder.path() + "/link");
  PlannedRestore planned;
  planned.container = true;
  planned.bundle = folder.path();
  const auto found = [&](const std::string& source) {
    folder.file(
        "config.json",
        R"({"mounts": [{"destination": "/data", "type": "bind", "source": ")" + source + R"("}]})");
    return finding_in(look(planned), "mnt-restore");
  };
  for (const std::string& link : {folder.path() + "/link", std::string("link")}) {
    EXPECT_NE(found(link).find("is a symbolic link, which CRIU does not follow"), std::string::npos)
        << found(link);
    EXPECT_NE(found(link).find(folder.path() + "/link, mounted at /data"), std::string::npos);
  }
  EXPECT_EQ(found("volume"), "");
  EXPECT_EQ(found(folder.path() + "/link/"), "") << "CRIU follows such a link";
  EXPECT_NE(found("missing"), "");
  EXPECT_NE(found("link").find("mount --bind " +
                               std::filesystem::canonical(folder.path()).string() + "/volume on"),
            std::string::npos)
      << found("link");
}

// A namespace is that of the dump if the same process has the pid. Its inode does not say it.
TEST(RestoreChecks, ANamespaceIsThatOfTheProcessThatHadThePidAtTheDump) {
  const test::TemporaryDirectory folder;
  const std::string path = "/proc/" + std::to_string(getpid()) + "/ns/ipc";
  const std::string link = folder.path() + "/link";
  std::filesystem::create_symlink(path, link);
  for (const std::string& named : {path, link}) {
    folder.file("config.json",
                R"({"linux": {"namespaces": [{"type": "ipc", "path": ")" + named + R"("}]}})");
    PlannedRestore planned;
    planned.container = true;
    planned.bundle = folder.path();
    const auto found = [&] { return finding_in(look(planned), "namespace-gone"); };
    EXPECT_NE(found(), "") << "nobody knows whose it was";
    planned.names = preflight::host_names_in(folder.path());
    ASSERT_EQ(planned.names.size(), 1U);
    EXPECT_EQ(found(), "");
    planned.names[0].holder += "1";
    EXPECT_NE(found().find(named + ", the ipc namespace"), std::string::npos) << found();
    planned.names[0].path += "/other";
    EXPECT_EQ(found(), "") << "somebody has named another one since";
  }
}

TEST(RestoreChecks, FaultsOfTheImagesAreRefusedByWhatTheyAre) {
  PlannedRestore planned;
  planned.faults = {"pages-1.img: it has 1 bytes, and pagemap-1.img lists 2 pages in it",
                    "pages-2.img: it is missing, and pagemap-2.img lists 2 pages in it",
                    "core-1.img: it is missing"};
  const Report report = look(planned);
  EXPECT_EQ(report.refusing(), 3U);
  for (const char* failure : {"pages-cut", "pages-missing", "images-broken"}) {
    EXPECT_NE(finding_in(report, failure), "") << failure;
  }
}

TEST(RestoreChecks, APlanIsTheSameBehindJson) {
  PlannedRestore planned;
  planned.ids = {12, 13};
  planned.processes = 1;
  planned.image_bytes = 4096;
  planned.needs.files = {{"/one", 5, 0100644}, {"/two"}};
  planned.needs.addresses = {{true, false, "::1", 80}};
  planned.needs.locks = {{"/one", true, false}, {"/two", false, true, 3, 4}};
  planned.needs.misled_mounts = {"overlay mounted at /m"};
  planned.needs.notes = {"note"};
  planned.faults = {"fault"};
  planned.machine = {"6.1", "cpu", "a b"};
  planned.criu_version = "4.2";
  planned.container = true;
  planned.bundle = "/bundle";
  planned.names = {{"namespace", "/proc/7/ns/net", "network", "boot/7/1"}};
  const nlohmann::json read = nlohmann::json::parse(to_json(planned).dump());
  EXPECT_EQ(to_json(planned_restore_of(read)), to_json(planned));
}

TEST(RestoreChecks, JsonOfAnybodyIsTaken) {
  for (const char* text :
       {"null", "[]", "7", R"({"ids": [0, -1, 99999999999, "x"], "files": 3})",
        R"({"files": [3, {"path": 4}], "addresses": [null], "machine": []})",
        R"({"locks": [3, {"path": 4, "start": -1}, null]})", R"({"locks": "x"})"}) {
    const PlannedRestore planned = planned_restore_of(nlohmann::json::parse(text));
    EXPECT_EQ(planned.ids, std::vector<pid_t>()) << text;
  }
}

}  // namespace
}  // namespace kymo::runtime
