// Checks for features that not every machine has. The process trees are built by hand.
#include "checkpoint/preflight/checks.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "checkpoint/preflight/criu_config.h"
#include "checkpoint/preflight/given_addresses.h"
#include "checkpoint/preflight/text.h"
#include "support/temporary_directory.h"

namespace kymo::preflight {
namespace {

// A tree of one process that has the same namespaces as this program.
Tree tree_of_one() {
  Tree tree;
  tree.proc = "/nonexistent";
  Member member;
  member.process.pid = 12;
  member.process.name = "web";
  member.root = "/";
  member.threads = {{12, 0}};
  for (std::size_t i = 0; i < kKinds.size(); ++i) {
    member.namespaces.names[i] = std::string(kKinds[i]) + ":[1]";
  }
  tree.own = member.namespaces;
  tree.members.push_back(std::move(member));
  return tree;
}

void set(Namespaces& namespaces, Kind kind, const std::string& name) {
  namespaces.names[static_cast<std::size_t>(kind)] = name;
}

std::vector<Finding> found_by(std::span<const Check> checks, const Tree& tree,
                              const Options& options = {}) {
  Findings found;
  for (const Check& check : checks) check.look(tree, options, found);
  return found.take();
}

void expect_one(const std::vector<Finding>& findings, Grade grade, const std::string& failure) {
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].grade, grade);
  EXPECT_EQ(findings[0].failure, failure);
}

TEST(PreflightChecks, FindNothingInAnEmptyProcess) {
  const Tree tree = tree_of_one();
  for (const auto checks : {process_checks(), memory_checks(), file_checks(), object_checks()}) {
    EXPECT_TRUE(found_by(checks, tree).empty());
  }
}

TEST(PreflightChecks, UprobesAreFoundByTheirMapping) {
  Tree tree = tree_of_one();
  tree.members[0].mappings = {{0x1000, 0x2000, true, "[uprobes]"},
                              {0x3000, 0x4000, true, "[vdso]"}};
  const std::vector<Finding> findings = found_by(memory_checks(), tree);
  expect_one(findings, Grade::warns, "uprobes");
  EXPECT_NE(line_of(findings[0]).find("mapping 1000-2000"), std::string::npos);
}

TEST(PreflightChecks, SharedMemoryOfANamespaceOfItsOwnIsNoFinding) {
  Tree tree = tree_of_one();
  tree.members[0].mappings = {{0x1000, 0x2000, false, "/SYSV00000000 (deleted)"}};
  expect_one(found_by(memory_checks(), tree), Grade::refuses, "sysv-shm");
  set(tree.members[0].namespaces, Kind::ipc, "ipc:[2]");
  EXPECT_TRUE(found_by(memory_checks(), tree).empty());
}

TEST(PreflightChecks, AFolderOfTheMachineIsTheRuntimesBusinessInAContainer) {
  const test::TemporaryDirectory proc;
  proc.folder("12");
  proc.file("12/mountinfo",
            "20 1 8:1 / / rw - ext4 /dev/a rw\n21 20 8:2 /srv/web /data rw - ext4 /dev/b rw\n");
  Tree tree = tree_of_one();
  tree.proc = proc.path();
  set(tree.members[0].namespaces, Kind::mnt, "mnt:[2]");
  const auto found = [&](const Options& options) {
    Findings findings;
    for (const Check& check : mount_checks()) check.look(tree, options, findings);
    return findings.take();
  };
  expect_one(found({}), Grade::warns, "mnt-root");
  Options options;
  options.container = true;
  EXPECT_TRUE(found(options).empty());
}

// CRIU dumps it, ends the container, and cannot restore it.
TEST(PreflightChecks, AMountWhoseSourceWasReplacedIsRefusedInAContainer) {
  const test::TemporaryDirectory proc;
  proc.folder("12");
  proc.file("12/mountinfo",
            "20 1 8:1 / / rw - ext4 /dev/a rw\n"
            "21 20 8:2 /srv/a\\040b//deleted /etc/f rw - ext4 /dev/b rw\n"
            "22 20 8:2 /srv/deleted /data rw - ext4 /dev/b rw\n");
  Tree tree = tree_of_one();
  tree.proc = proc.path();
  Options options;
  options.container = true;
  const auto found = [&] {
    Findings findings;
    for (const Check& check : mount_checks()) check.look(tree, options, findings);
    return findings.take();
  };
  EXPECT_TRUE(found().empty()) << "the mounts of the machine are not dumped";
  set(tree.members[0].namespaces, Kind::mnt, "mnt:[2]");
  const std::vector<Finding> findings = found();
  expect_one(findings, Grade::refuses, "mnt-removed");
  EXPECT_NE(line_of(findings[0]).find("/srv/a b mounted at /etc/f"), std::string::npos)
      << line_of(findings[0]);
}

// An address that is not in the runtime's list is not there after a restore.
TEST(PreflightChecks, AnAddressThatTheRuntimeDoesNotGiveIsFound) {
  const test::TemporaryDirectory folder;
  const std::string id(64, 'a');
  folder.folder(id);
  folder.folder("12");
  folder.folder("12/net");
  folder.file("12/net/fib_trie", "  |-- 10.88.0.5\n     /32 host LOCAL\n");
  Tree tree = tree_of_one();
  tree.proc = folder.path();
  set(tree.members[0].namespaces, Kind::net, "net:[2]");
  Options options;
  options.container = true;
  options.names = {{"mount", folder.file(id + "/hosts", "127.0.0.1\tlocalhost\n10.88.0.5\tweb\n"),
                    "/etc/hosts"}};
  const auto found = [&](const std::string& ends) {
    Findings findings;
    GivenAddresses(tree, options).look_at({}, ends, findings);
    return findings.take();
  };
  for (const char* given : {"0.0.0.0:80", "[::]:80", "127.0.0.2:80", "[::1]:80", "10.88.0.5:80",
                            "[::ffff:10.88.0.5]:80", "10.88.0.5:80 to 10.9.9.9:81", ""}) {
    EXPECT_TRUE(found(given).empty()) << given;
  }
  for (const char* own : {"10.9.9.9:80", "[fd00::1]:80", "[::ffff:10.9.9.9]:80 to [::1]:81"}) {
    expect_one(found(own), Grade::refuses, "inet-address");
  }
  folder.file(id + "/hosts", "127.0.0.1\tlocalhost\n");
  expect_one(found("10.9.9.9:80"), Grade::warns, "inet-address");
  options.names.push_back({"namespace", "/proc/7/ns/net", "network", "boot/7/1"});
  EXPECT_TRUE(found("10.9.9.9:80").empty()) << "that of another container stays";
}

// podman's are refused; Docker's were dumped and ended, and could not be restored.
TEST(PreflightChecks, AUserNamespaceIsRefusedIfTheRuntimeLosesIt) {
  Tree tree = tree_of_one();
  Options options;
  options.container = options.loses_user_namespace = true;
  EXPECT_TRUE(found_by(process_checks(), tree, options).empty());
  set(tree.members[0].namespaces, Kind::user, "user:[2]");
  expect_one(found_by(process_checks(), tree, options), Grade::refuses, "userns-denied");
  options.leave_running = true;
  EXPECT_TRUE(found_by(process_checks(), tree, options).empty());
  options.leave_running = options.loses_user_namespace = false;
  EXPECT_TRUE(found_by(process_checks(), tree, options).empty()) << "runc's are restored";
}

// CRIU mounts it again with folders of the machine.
TEST(PreflightChecks, AnOverlayOfAMountNamespaceIsRefused) {
  const test::TemporaryDirectory proc;
  proc.folder("12");
  Tree tree = tree_of_one();
  tree.proc = proc.path();
  set(tree.members[0].namespaces, Kind::mnt, "mnt:[2]");
  Options options;
  options.container = true;
  options.external = {"mnt[/data]"};
  const std::string given =
      "20 1 0:30 / / rw - overlay overlay rw,lowerdir=/a\n"
      "21 20 0:31 /d /data rw - overlay overlay rw,lowerdir=/b\n"
      "22 20 0:30 /x /y rw - overlay overlay rw,lowerdir=/a\n";
  proc.file("12/mountinfo", given);
  EXPECT_TRUE(found_by(mount_checks(), tree, options).empty());
  for (const char* point : {"/m", "/", "/data/g"}) {
    proc.file("12/mountinfo",
              given + "24 20 0:32 / " + point + " rw - overlay o rw,lowerdir=/etc\n");
    expect_one(found_by(mount_checks(), tree, options), Grade::refuses, "mnt-overlay");
  }
  options.external.clear();
  proc.file("12/mountinfo", given);
  expect_one(found_by(mount_checks(), tree, options), Grade::refuses, "mnt-overlay");
}

TEST(PreflightChecks, ADiskInAMountNamespaceMustBeExternal) {
  const test::TemporaryDirectory proc;
  proc.folder("12");
  proc.file("12/mountinfo",
            "20 1 8:1 / / rw - ext4 /dev/a rw\n21 20 0:5 / /tmp rw - tmpfs tmpfs rw\n"
            "22 20 7:1 / /data rw - ext4 /dev/loop1 rw\n23 20 8:1 /srv /web rw - ext4 /dev/a rw\n");
  Tree tree = tree_of_one();
  tree.proc = proc.path();
  const auto found = [&](const Options& options) {
    Findings findings;
    for (const Check& check : mount_checks()) check.look(tree, options, findings);
    return findings.take();
  };
  EXPECT_TRUE(found({}).empty()) << "CRIU leaves the mounts of its own namespace alone";
  set(tree.members[0].namespaces, Kind::mnt, "mnt:[2]");
  const std::vector<Finding> findings = found({});
  expect_one(findings, Grade::refuses, "fs-unsupported");
  EXPECT_NE(line_of(findings[0]).find("ext4 mounted at /data"), std::string::npos);
  EXPECT_NE(line_of(findings[0]).find("--external mnt[/data]:NAME"), std::string::npos);
  Options options;
  options.external = {"mnt[/data]:data"};
  EXPECT_TRUE(found(options).empty());
}

OpenFile device(unsigned major, unsigned minor) {
  OpenFile file;
  file.fd = 3;
  file.link = "/dev/thing";
  file.mode = S_IFCHR;
  file.major = major;
  file.minor = minor;
  return file;
}

TEST(PreflightChecks, AGpuIsAWarningBecauseCriuMayHaveAPlugin) {
  Tree tree = tree_of_one();
  tree.members[0].files = {device(195, 255), device(226, 128)};
  const std::vector<Finding> findings = found_by(file_checks(), tree);
  expect_one(findings, Grade::warns, "gpu-device");
  EXPECT_EQ(findings[0].count, 2U);
}

TEST(PreflightChecks, DevicesThatCriuSavesAreNoFinding) {
  Tree tree = tree_of_one();
  tree.members[0].files = {device(1, 3), device(5, 2), device(136, 0), device(10, 235)};
  EXPECT_TRUE(found_by(file_checks(), tree).empty());
  tree.members[0].files = {device(10, 200)};
  expect_one(found_by(file_checks(), tree), Grade::refuses, "tun");
  set(tree.members[0].namespaces, Kind::net, "net:[2]");
  EXPECT_TRUE(found_by(file_checks(), tree).empty());
}

TEST(PreflightChecks, ASessionThatBeganOutsideIsFound) {
  Tree tree = tree_of_one();
  tree.members[0].status = "Name:\tweb\nNSpid:\t12\t3\nNSsid:\t12\t0\n";
  expect_one(found_by(process_checks(), tree), Grade::refuses, "session-outside");
}

TEST(PreflightChecks, OnlyTheFirstProcessOfAPidNamespaceCanBeDumped) {
  Tree tree = tree_of_one();
  set(tree.members[0].namespaces, Kind::pid, "pid:[2]");
  tree.members[0].status = "NSpid:\t12\t7\nNSsid:\t12\t7\n";
  expect_one(found_by(process_checks(), tree), Grade::refuses, "pidns-init");
  // kymod itself cannot restore this one. A container's runtime can.
  tree.members[0].status = "NSpid:\t12\t1\nNSsid:\t12\t1\n";
  expect_one(found_by(process_checks(), tree), Grade::refuses, "pid-taken");
  EXPECT_TRUE(found_by(process_checks(), tree, {.container = true}).empty());
}

TEST(PreflightChecks, AUserNamespaceCannotBeRestored) {
  Tree tree = tree_of_one();
  set(tree.members[0].namespaces, Kind::user, "user:[2]");
  expect_one(found_by(process_checks(), tree), Grade::refuses, "procfs-restore");
  EXPECT_TRUE(found_by(process_checks(), tree, {.container = true}).empty());
}

// CRIU restored such threads without what they had of their own.
TEST(PreflightChecks, AThreadThatSharesLessWithItsProcessIsFound) {
  Tree tree = tree_of_one();
  tree.members[0].threads = {{.tid = 12}, {.tid = 13, .own_namespace = "net:[7]"}};
  expect_one(found_by(process_checks(), tree), Grade::refuses, "nested-ns");
  tree.members[0].threads[1] = {.tid = 13, .own_files = true};
  expect_one(found_by(process_checks(), tree), Grade::refuses, "fd-unsupported");
  tree.members[0].threads[1] = {.tid = 13, .own_folders = true};
  expect_one(found_by(process_checks(), tree), Grade::warns, "mnt-chroot");
}

TEST(PreflightChecks, APolicyThatCriuDoesNotRestoreIsFound) {
  Tree tree = tree_of_one();
  tree.members[0].threads = {{.tid = 12}, {.tid = 13, .policy = SCHED_BATCH | SCHED_RESET_ON_FORK}};
  EXPECT_TRUE(found_by(process_checks(), tree).empty());
  tree.members[0].threads[1].policy = 6;
  const std::vector<Finding> findings = found_by(process_checks(), tree);
  expect_one(findings, Grade::refuses, "sched-policy");
  EXPECT_NE(line_of(findings[0]).find("thread 13, policy SCHED_DEADLINE"), std::string::npos);
}

TEST(PreflightChecks, ASeccompFilterMattersIfThisProgramHasOne) {
  const test::TemporaryDirectory proc;
  proc.folder("self");
  Tree tree = tree_of_one();
  tree.proc = proc.path();
  tree.members[0].status = "Seccomp:\t2\n";
  proc.file("self/status", "Seccomp:\t0\n");
  EXPECT_TRUE(found_by(process_checks(), tree).empty());
  proc.file("self/status", "Seccomp:\t2\n");
  expect_one(found_by(process_checks(), tree), Grade::warns, "seccomp-suspend");
}

OpenFile object(const std::string& name, const std::string& info = {}) {
  OpenFile file;
  file.fd = 4;
  file.link = "anon_inode:" + name;
  file.info = info;
  return file;
}

TEST(PreflightChecks, ObjectsAreRefusedIfCriuHasNeverSavedThem) {
  Tree tree = tree_of_one();
  const auto found = [&](const OpenFile& file) {
    tree.members[0].files = {file};
    return found_by(object_checks(), tree);
  };
  expect_one(found(object("[perf_event]")), Grade::refuses, "fd-unsupported");
  expect_one(found(object("kvm-vcpu:0")), Grade::refuses, "fd-unsupported");
  expect_one(found(object("[of-a-later-kernel]")), Grade::warns, "fd-unsupported");
  expect_one(found(object("bpf-prog")), Grade::refuses, "bpf");
  expect_one(found(object("bpf-map", "map_type:\t2\n")), Grade::warns, "bpf");
  expect_one(found(object("bpf-map", "map_type:\t27\n")), Grade::refuses, "bpf");
  for (const char* name : {"[eventfd]", "[timerfd]", "[signalfd]", "inotify", "[fanotify]"}) {
    EXPECT_TRUE(found(object(name)).empty()) << name;
  }
  EXPECT_TRUE(found(object("[pidfd]", "Pid:\t12\n")).empty())
      << "a pidfd of a process in the tree is permitted";
  EXPECT_TRUE(found(object("[pidfd]", "Pid:\t-1\n")).empty())
      << "a pidfd of a process that has ended is permitted";
  EXPECT_TRUE(found(object("[eventpoll]", "tfd:        4 events: 19\n")).empty());
}

TEST(PreflightChecks, ALockOfAContainerIsRefusedUnlessTheDumpSavesLocks) {
  Tree tree = tree_of_one();
  OpenFile file;
  file.fd = 5;
  file.link = "/var/lib/orders";
  file.info = "pos:\t0\nlock:\t1: FLOCK  ADVISORY  WRITE 12 00:2f:7 0 EOF\n";
  tree.members[0].files = {file};
  const auto found = [&](const Options& options) {
    Findings findings;
    for (const Check& check : object_checks()) check.look(tree, options, findings);
    return findings.take();
  };
  const std::vector<Finding> findings = found({.container = true});
  expect_one(findings, Grade::refuses, "file-locks");
  EXPECT_NE(line_of(findings[0]).find("descriptor 5, /var/lib/orders"), std::string::npos);
  EXPECT_TRUE(found({.file_locks = true, .container = true}).empty());
  EXPECT_TRUE(found({}).empty()) << "kymod saves the locks of a plain process";
}

TEST(PreflightChecks, ValuesAreThoseOfWholeKeys) {
  constexpr std::string_view kText = "TracerPidX:\t1\nTracerPid:\t7\nflags:\t02004000\n";
  EXPECT_EQ(number_of(kText, "TracerPid"), 7U);
  EXPECT_EQ(number_of(kText, "flags", 8), 02004000U);
  EXPECT_EQ(number_of(kText, "Tracer"), 0U);
  EXPECT_EQ(value_of(kText, "flags"), "02004000");
}

TEST(CriuConfig, OptionsAreReadAsCriuReadsThem) {
  const test::TemporaryDirectory folder;
  const std::string file = folder.file("default.conf",
                                       "# tcp-established\n"
                                       "ghost-limit 512M # for Java\n"
                                       "\tlink-remap\n"
                                       "external \"dev[10/232]:kvm\"\n"
                                       "ext-unix-sk\n"
                                       "file-locks\n"
                                       "log-file a.log");
  Options options;
  add_configured(file, options);
  EXPECT_FALSE(options.tcp_established);
  EXPECT_FALSE(options.shell_job);
  EXPECT_FALSE(options.skip_in_flight);
  EXPECT_TRUE(options.link_remap);
  EXPECT_TRUE(options.external_unix_sockets);
  EXPECT_TRUE(options.file_locks);
  EXPECT_EQ(options.ghost_limit_bytes, 512U << 20U);
  EXPECT_EQ(options.external, std::vector<std::string>{"dev[10/232]:kvm"});
  add_configured(
      folder.file("other.conf",
                  "ghost-limit none\ntcp-close\nallow-uprobes\nskip-in-flight\nshell-job"),
      options);
  EXPECT_EQ(options.ghost_limit_bytes, 512U << 20U) << "a limit that is no size is ignored";
  EXPECT_TRUE(options.tcp_established && options.skip_in_flight && options.shell_job);
  EXPECT_TRUE(options.allow_uprobes);
  const std::string scripts = folder.file(
      "scripts.conf", "action-script /opt/a.sh  # mine\nfile-locks\naction-script \"/b c\"\n");
  EXPECT_EQ(
      configured_scripts({folder.path() + "/none", scripts}),
      (std::vector<std::string>{"/opt/a.sh (in " + scripts + ")", "/b c (in " + scripts + ")"}));
  add_configured(folder.path() + "/none", options);
}

TEST(CriuConfig, TheFilesAreThoseOfTheMachineOfTheUserAndOfTheEnvironment) {
  const char* const home = ::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  ::setenv("HOME", "/home/me", 1);
  ::setenv("CRIU_CONFIG_FILE", "/a.conf", 1);
  EXPECT_EQ(criu_config_files(),
            (std::vector<std::string>{"/etc/criu/default.conf", "/home/me/.criu/default.conf",
                                      "/a.conf"}));
  ::unsetenv("HOME");
  ::unsetenv("CRIU_CONFIG_FILE");
  EXPECT_EQ(criu_config_files(), std::vector<std::string>{"/etc/criu/default.conf"});
  if (home != nullptr) ::setenv("HOME", before.c_str(), 1);
}

TEST(PreflightChecks, RefusingFindingsComeFirst) {
  Findings found;
  found.add(Grade::warns, "epoll", {});
  found.add(Grade::refuses, "tun", {});
  found.add(Grade::warns, "epoll", {});
  const std::vector<Finding> findings = found.take();
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].failure, "tun");
  EXPECT_EQ(findings[1].count, 2U);
}

}  // namespace
}  // namespace kymo::preflight
