#include "checkpoint/criu/drive/phases.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

namespace kymo::criu {
namespace {

// The lines of a real log of CRIU 4.1.1 that begin phases, with rounded times.
const std::string kDumpLog = R"((00.000000) CRIU run id = 1
(00.000059) File /run/criu.kdat does not exist
(00.023000) cpu: fpu
(00.024000) Dumping processes (pid: 7 comm: churn)
(00.024020) Running pre-dump scripts
(00.024021) 	RPC
(00.024100) irmap: Searching irmap cache in work dir
(00.024500) Seized task 7, state 1
(00.024600) net: Lock network
(00.025900) Collecting mappings (pid: 7)
(00.028000) Parasite syscall_ip at 0x1000
(00.028400) Wait for parasite being daemonized...
pie: 7: Running daemon thread leader
(00.028600) Dumping opened files (pid: 7)
(00.028800) Dumping pages (type: 59 pid: 7)
(00.059800) page-pipe: Killing page pipe
(00.059900) ----------------------------------------
(00.060280) Dumping core (pid: 7)
(00.060700) Waiting for 7 to trap
(00.061500) Dumping mm (pid: 7)
(00.061800) Dumping file-locks
(00.061850) Dumping pstree (pid: 7)
(00.061970) Running post-dump scripts
(00.061980) 	RPC
(00.062085) Unfreezing tasks into 2
(00.087000) Writing stats
(00.087100) Dumping finished successfully
)";

// CRIU could not attach to a process that strace traces (log of CRIU 4.1.1, shortened).
const std::string kTracedLog = R"((00.000000) CRIU run id = 1
(00.023000) cpu: fpu
(00.024000) Dumping processes (pid: 7 comm: churn)
(00.024020) Running pre-dump scripts
(00.024021) 	RPC
(00.024500) Warn  (compel/src/lib/infect.c:128): Unable to interrupt task: 7 (Operation not permitted)
(00.030000) net: Unlock network
(00.030100) Unfreezing tasks into 1
(00.030200) Error (criu/cr-dump.c:2098): Dumping FAILED.
)";

std::uint64_t sum_of(const std::vector<LogPhase>& phases) {
  return std::accumulate(
      phases.begin(), phases.end(), std::uint64_t{0},
      [](std::uint64_t sum, const LogPhase& phase) { return sum + phase.duration_us; });
}

const LogPhase& phase(const std::vector<LogPhase>& phases, const std::string& name) {
  for (const LogPhase& one : phases) {
    if (one.name == name) {
      return one;
    }
  }
  ADD_FAILURE() << "no phase " << name;
  static const LogPhase kNone;
  return kNone;
}

TEST(PhasesTest, ADumpsPhasesAreExclusiveAndAddUp) {
  const LogPhases dump = dump_phases(kDumpLog, {});
  EXPECT_EQ(dump.total_us, 87'100U);
  EXPECT_EQ(sum_of(dump.phases), dump.total_us);
  EXPECT_EQ(phase(dump.phases, "look at the kernel").duration_us, 24'000U);
  EXPECT_EQ(phase(dump.phases, "freeze").duration_us, 20U + 500U);
  EXPECT_EQ(phase(dump.phases, "hooks").duration_us, 80U + 115U);
  EXPECT_EQ(phase(dump.phases, "hooks").spans.size(), 2U);
  EXPECT_EQ(phase(dump.phases, "collect").duration_us, 3'400U);
  EXPECT_EQ(phase(dump.phases, "memory").duration_us, 59'900U - 28'800U);
  EXPECT_EQ(phase(dump.phases, "resume or end").duration_us, 24'915U);
  EXPECT_EQ(phase(dump.phases, "finish").duration_us, 100U);
}

TEST(PhasesTest, EachBoundaryHasItsEvidenceAndItsUncertainty) {
  const LogPhases dump = dump_phases(kDumpLog, {});
  const LogPhase& collect = phase(dump.phases, "collect");
  EXPECT_EQ(collect.evidence, "net: Lock network");
  EXPECT_EQ(collect.uncertainty_us, 100U);  // the time since the line before
  EXPECT_EQ(phase(dump.phases, "freeze").evidence, "Dumping processes (pid: 7 comm: churn)");
}

TEST(PhasesTest, StatisticsTellDrainingFromWriting) {
  DumpStats stats;
  stats.memwrite_time_us = 20'900;
  const LogPhases dump = dump_phases(kDumpLog, stats);
  EXPECT_EQ(phase(dump.phases, "memory: finding pages").duration_us, 31'100U - 20'900U);
  EXPECT_EQ(phase(dump.phases, "memory: writing pages").duration_us, 20'900U);
  EXPECT_EQ(phase(dump.phases, "memory: writing pages").evidence, "CRIU's statistics");
  EXPECT_EQ(sum_of(dump.phases), dump.total_us);
}

TEST(PhasesTest, StretchesShowTheSamePhasesInTheOrderOfTime) {
  DumpStats stats;
  stats.memwrite_time_us = 20'900;
  const LogPhases dump = dump_phases(kDumpLog, stats);
  std::uint64_t at_us = 0;
  std::map<std::string, std::uint64_t> sums;
  for (const PhaseStretch& stretch : dump.stretches) {
    EXPECT_EQ(stretch.begin_us, at_us) << stretch.name;
    at_us = stretch.end_us;
    sums[stretch.name] += stretch.end_us - stretch.begin_us;
  }
  EXPECT_EQ(at_us, dump.total_us);
  for (const LogPhase& one : dump.phases) EXPECT_EQ(sums[one.name], one.duration_us) << one.name;
}

TEST(PhasesTest, CausesThatAreKnownAreTold) {
  DumpStats stats;
  stats.memwrite_time_us = 1'000'000;
  const LogPhases dump = dump_phases(kDumpLog, stats);
  std::string notes;
  for (const std::string& note : dump.notes) {
    notes += note + '\n';
  }
  EXPECT_NE(notes.find("/run/criu.kdat"), std::string::npos) << notes;
  EXPECT_NE(notes.find("took their memory back"), std::string::npos) << notes;
  EXPECT_NE(notes.find("longer than the log shows"), std::string::npos) << notes;
}

TEST(PhasesTest, AClockThatWasSetBackIsToldAndTimeNeverGoesBack) {
  std::string log = kDumpLog;
  log += "(-5.0) rubbish\n(00.001000) after the step\n(00.002000) the end\n";
  const LogPhases dump = dump_phases(log, {});
  EXPECT_EQ(dump.total_us, 88'100U);
  EXPECT_EQ(sum_of(dump.phases), dump.total_us);
  EXPECT_NE(dump.notes.front().find("went back"), std::string::npos);
}

TEST(PhasesTest, ATimeBeforeTheLogsFirstIsAStepAndNoYears) {
  // CRIU's clock went back: it writes -5 s as 4294967291, cut to these digits.
  std::string log = kDumpLog;
  log += "(429496729) after the step\n(429496729) more\n(00.002000) and forth\n(00.003000) end\n";
  const LogPhases dump = dump_phases(log, {});
  EXPECT_EQ(dump.total_us, 88'100U);
  EXPECT_EQ(sum_of(dump.phases), dump.total_us);
  EXPECT_NE(dump.notes.front().find("the wall clock was set"), std::string::npos);
}

TEST(PhasesTest, OfTwoRunsInOneLogTheLastCounts) {
  const LogPhases one = dump_phases(kDumpLog, {});
  const LogPhases two = dump_phases(kDumpLog + kDumpLog, {});
  EXPECT_EQ(two.total_us, one.total_us);
  EXPECT_EQ(phase(two.phases, "memory").duration_us, phase(one.phases, "memory").duration_us);
  EXPECT_NE(two.notes.front().find("several runs"), std::string::npos);
  EXPECT_EQ(two.notes.size(), one.notes.size() + 1);  // but no note about a clock that went back
}

TEST(PhasesTest, ALogWithoutItsBeginningAddsUpAllTheSame) {
  const LogPhases dump =
      dump_phases("(100.00000) a\n(101.00000) Writing stats\n(103.00000) b\n", {});
  EXPECT_EQ(dump.total_us, 3'000'000U);
  EXPECT_EQ(sum_of(dump.phases), dump.total_us);
}

TEST(PhasesTest, TheLongestPauseIsThatOfAllButTheMemory) {
  const LogPhases dump = dump_phases(
      "(00.000000) Version: 4.2\n"
      "(00.500000) Dumping processes (pid: 7\n"
      "(00.600000) Dumping opened files (pid: 7)\n"
      "(00.610000) 12 fdinfo 1\n"
      "(00.810000) 12 fdinfo 2\n"
      "(00.820000) Dumping pages (type: 59 pid: 7)\n"
      "(02.820000) page-pipe: Killing page pipe\n"
      "(02.830000) Dumping core (pid: 7)\n",
      {});
  EXPECT_EQ(dump.longest_pause.length_us, 200'000U);
  EXPECT_EQ(dump.longest_pause.before, "12 fdinfo 1");
  EXPECT_EQ(dump.longest_pause.after, "12 fdinfo 2");
}

TEST(PhasesTest, AFilesNameIsNoMark) {
  const std::string log =
      "(00.000000) a\n(00.100000) Dumping core (pid: 7)\n"
      "(00.200000) Dumping path for 3 fd via self 12 [/tmp/Writing stats]\n(00.900000) b\n";
  EXPECT_EQ(phase(dump_phases(log, {}).phases, "processes and files").duration_us, 800'000U);
}

TEST(PhasesTest, LinesALittleOutOfOrderAreNoStep) {
  const LogPhases dump = dump_phases("(00.010000) a\n(00.009990) b\n(00.011000) c\n", {});
  EXPECT_EQ(dump.total_us, 1'000U);
  for (const std::string& note : dump.notes) {
    EXPECT_EQ(note.find("went back"), std::string::npos) << note;
  }
}

TEST(PhasesTest, WithoutMarksThereIsOnePhaseAndANote) {
  const LogPhases dump = dump_phases("(00.000000) a\n(01.000000) b\n", {});
  ASSERT_EQ(dump.phases.size(), 1U);
  EXPECT_EQ(dump.phases.front().duration_us, 1'000'000U);
  EXPECT_NE(dump.notes.front().find("no lines that begin a phase"), std::string::npos);
  EXPECT_TRUE(dump_phases("", {}).phases.empty());
  EXPECT_TRUE(dump_phases("no time at all\n", {}).phases.empty());
}

TEST(PhasesTest, FromAHundredSecondsOnTheLastDigitsAreCut) {
  EXPECT_EQ(parse_log_line("(100.12345) x")->time_us, 100'123'450U);
  EXPECT_EQ(parse_log_line("(00.000001) x")->text, "x");
  for (const char* line : {"", "(", "()", "(1.0", "x (1.0)", "(-1.0) x", "(1e300) x", "(nan) x"}) {
    EXPECT_FALSE(parse_log_line(line)) << line;
  }
}

// CRIU reads the pages of a stream before it switches to the restorer.
TEST(PhasesTest, ARestoreFromAStreamReadsItsPagesEarlier) {
  const std::string log = R"((00.000000) CRIU run id = 2
(00.021900) pstree pid_max=8
(00.022010) Will restore in 0 namespaces
(00.022169) Forking task with 7 pid (flags 0x8000)
(00.022639)      7: Preparing info about shared resources
(00.041910)      7: Opened local page read 1 (parent 0)
(00.042177)      7: pr7-1 Read 55e022e3b000 1 pages
(00.042178)      7: 	pr7-1 Read page from self 55e022e3b000/0
(00.340733)      7: nr_restored_pages: 65564
(00.340735)      7: nr_shared_pages:   0
(00.340942)      7: Restoring resources
(00.341548) pie: 7: Switched to the restorer 7
(00.342000) pie: 7: 7: Restored
(00.343000) net: Unlock network
(00.344000) Restore finished successfully. Tasks resumed.
)";
  const LogPhases restore = restore_phases(log, {});
  EXPECT_EQ(phase(restore.phases, "memory: reading pages").duration_us, 340'733U - 41'910U);
  EXPECT_EQ(phase(restore.phases, "processes and files").duration_us,
            41'910U - 22'169U + 343'000U - 340'733U);
  ASSERT_EQ(restore.processes.size(), 1U);
  EXPECT_EQ(phase(restore.processes[0].phases, "memory").duration_us, 340'733U - 41'910U);
}

// Of a container of runc, shortened: CRIU runs tar for a tmpfs, and unlocks the network after it has asked runc.
TEST(PhasesTest, MountsAndTheNetworkAreTheirOwnPhases) {
  const std::string dump = R"((00.000000) CRIU run id = 2
(00.045000) net: Lock network
(00.045813) Running network-lock scripts
(00.045815) 	RPC
(00.053571) Dumping task (pid: 7)
(00.120000) Dumping core (pid: 7)
(00.126805) mnt: Dumping mountpoints
(00.126810) mnt: 	88: 2c:/ @ ./dev/shm
(00.160000) Dumping file-locks
(00.160820) net: Unlock network
(00.161034) Running network-unlock scripts
(00.161035) 	RPC
(00.231232) Unfreezing tasks into 1
(00.231320) Writing stats
)";
  const LogPhases dumped = dump_phases(dump, {});
  EXPECT_EQ(phase(dumped.phases, "mounts").duration_us, 160'000U - 126'805U);
  EXPECT_EQ(phase(dumped.phases, "network").duration_us, 53'571U - 45'813U + 231'232U - 160'820U);
  const std::string restore = R"((00.000000) CRIU run id = 2
(00.022169) Forking task with 1 pid (flags 0x2c028000)
(00.164335)      1: mnt: Restoring mount namespace
(00.258952) Running post-setup-namespaces scripts
(00.258960) 	RPC
(00.259000)      1: mnt: Move the root
(00.261959)      1: Restoring children in alien sessions:
(00.262000) Restore finished successfully. Tasks resumed.
)";
  const LogPhases restored = restore_phases(restore, {});
  EXPECT_EQ(phase(restored.phases, "mounts").duration_us,
            258'952U - 164'335U + 261'959U - 259'000U);
}

// CRIU 4.2.1 at level 4, shortened. All of it was called "hooks", and kymod was blamed.
TEST(PhasesTest, TheLogTellsTheScriptOfKymodFromThoseOfOthers) {
  const LogPhases restore = restore_phases(R"((00.000000) CRIU run id = 2
(00.083000) Will restore in 0 namespaces
(00.083836) Running pre-restore scripts
(00.083856) 	[/proc/9288/fd/57]
(00.086217) 	[/tmp/slow.sh]
(00.991807) No pidns-1.img image
(00.991928) Forking task with 7 pid (flags 0x8000)
(01.038745) Restore finished successfully. Tasks resumed.
(01.038879) Running post-resume scripts
(01.038895) 	[/proc/9288/fd/57]
(01.041758) 	[/tmp/slow.sh]
)",
                                           {});
  EXPECT_EQ(sum_of(restore.phases), restore.total_us);
  EXPECT_EQ(phase(restore.phases, "kymod answers").duration_us,
            86'217U - 83'836U + 1'041'758U - 1'038'879U);
  EXPECT_EQ(phase(restore.phases, "hooks").duration_us, 991'807U - 86'217U);
  EXPECT_EQ(restore.stretches.back().name, "hooks") << "the last script runs after the last line";
}

TEST(PhasesTest, ARestoreIsTakenApartForEachProcess) {
  const std::string log = R"((00.000000) CRIU run id = 2
(00.021900) pstree pid_max=8
(00.021946) Will restore in 0 namespaces
(00.022010) Running pre-restore scripts
(00.022011) 	RPC
(00.022128) No pidns-1.img image
(00.022169) Forking task with 7 pid (flags 0x8000)
(00.022542)      7: timens: monotonic -1 850580465
(00.022639)      7: Preparing info about shared resources
(00.022904)      7: Restoring resources
(00.023350) pie: 7: Switched to the restorer 7
(00.023593) pie: 7: Preadv 0x55b6da9be000:4096... (12 iovs)
(00.030000)      8: Restoring resources
(00.055625) pie: 7: `- returned 67223552
(00.055634) pie: 7:    `- skip pagemap
(00.055776) pie: 7: 7: Restored
(00.055809) Running post-restore scripts
(00.055821) 	RPC
(00.055894) net: Unlock network
(00.056188) Restore finished successfully. Tasks resumed.
(00.056189) Writing stats
(00.056288) Running post-resume scripts
(00.056400) 	RPC
)";
  const LogPhases restore = restore_phases(log, {});
  EXPECT_EQ(restore.total_us, 56'400U);
  EXPECT_EQ(sum_of(restore.phases), restore.total_us);
  EXPECT_EQ(phase(restore.phases, "memory: reading pages").duration_us, 55'634U - 23'593U);
  EXPECT_EQ(phase(restore.phases, "processes and files").duration_us,
            55'809U - 22'169U - (55'634U - 23'593U));
  EXPECT_EQ(phase(restore.phases, "hooks").spans.size(), 3U);
  ASSERT_EQ(restore.processes.size(), 2U);
  EXPECT_EQ(restore.processes[0].pid, 7);
  const std::vector<LogPhase>& seven = restore.processes[0].phases;
  EXPECT_EQ(phase(seven, "memory").duration_us, 55'634U - 23'593U);
  EXPECT_EQ(phase(seven, "registers and threads").duration_us, 55'776U - 55'634U);
  EXPECT_EQ(sum_of(seven), 55'776U - 22'542U);
  EXPECT_EQ(phase(seven, "prepare").evidence, "Preparing info about shared resources");
}

// Logs of CRIU 4.2.1, shortened: of a memfd and a shared mapping, which it dumps where it first sees them.
TEST(PhasesTest, SharedMemoryIsMemoryWhereverItIsDumped) {
  const std::string level3 = R"((00.000000) CRIU run id = 1
(00.024000) Dumping processes (pid: 7 comm: python3)
(00.024500) Seized task 7, state 1
(00.053080) Collecting mappings (pid: 7)
(00.053202) Dumping path for -3 fd via self 13 [/usr/bin/python3]
(00.065191) Dumping memfd:mine contents (id 0x1, shmid: 0x251d16, size: 67108864)
(00.171852) Dumping memfd:/dev/zero contents (id 0x2, shmid: 0x251d12, size: 314572800)
(01.396496) Dumping path for -3 fd via self 13 [/usr/lib/libffi.so.8.1.2]
(01.401826) Dumping opened files (pid: 7)
(01.402000) Dumping memfd:unmapped contents (id 0x3, shmid: 0x251d20, size: 4096)
(01.402300) Dumping path for 3 fd via self 13 [/memfd:unmapped]
(01.402800) Dumping pages (type: 59 pid: 7)
(01.422800) Dumping core (pid: 7)
(01.423000) Dumping shared memory 2431127
(01.523000) Dumping 7(7)'s namespaces
(01.524000) IPC shared memory segments: 1
(01.524100) id: 0          key: 00000000 uid: 0
(01.970000) IPC message queues: 0
(01.972000) IPC shared memory segments: 0
(01.972300) IPC message queues: 0
(01.973000) Unfreezing tasks into 2
(02.000000) Writing stats
)";
  const std::vector<LogPhase> phases = dump_phases(level3, {}).phases;
  EXPECT_EQ(phase(phases, "memory: shared memory").duration_us,
            1'396'496U - 65'191U + 300U + 100'000U + 446'000U);
  EXPECT_EQ(phase(phases, "memory: shared memory").evidence,
            "Dumping memfd:mine contents (id 0x1, shmid: 0x251d16, size: 67108864)");
  EXPECT_EQ(phase(phases, "collect").duration_us, 65'191U - 53'080U + 1'401'826U - 1'396'496U);
  EXPECT_EQ(phase(phases, "memory").duration_us, 20'000U);
  EXPECT_EQ(phase(phases, "processes and files").duration_us, 174U + 500U + 200U + 1'000U + 3'000U);
}

TEST(PhasesTest, AtLevel4SharedMemoryEndsWithItsPipe) {
  const std::string level4 = R"((00.000000) CRIU run id = 1
(00.024000) Dumping processes (pid: 7 comm: python3)
(00.056000) Collecting mappings (pid: 7)
(00.065460) Dumping memfd:mine contents (id 0x1, shmid: 0x25189d, size: 67108864)
(00.065471) page-pipe: Create page pipe for 8192 segs
(00.065969) No parent images directory provided
(00.104762) page-xfer: 	p 0x3c00000 - 0x3d00000
(00.106679) page-pipe: Killing page pipe
(00.111172) Handling VMA with the following smaps entry: 7f97d822c000
(00.120000) Dumping opened files (pid: 7)
(00.121000) Dumping pages (type: 59 pid: 7)
(00.141000) page-pipe: Killing page pipe
(00.142000) Unfreezing tasks into 2
)";
  const std::vector<LogPhase> phases = dump_phases(level4, {}).phases;
  EXPECT_EQ(phase(phases, "memory: shared memory").duration_us, 111'172U - 65'460U);
  EXPECT_EQ(phase(phases, "collect").duration_us, 65'460U - 56'000U + 120'000U - 111'172U);
  EXPECT_EQ(phase(phases, "memory").duration_us, 142'000U - 121'000U);
}

// The statistics have the time of writing only of what is not shared.
TEST(PhasesTest, TheStatisticsDoNotDivideSharedMemory) {
  DumpStats stats;
  stats.memwrite_time_us = 15'000;
  const std::string log = R"((00.000000) CRIU run id = 1
(00.010000) Dumping processes (pid: 7 comm: python3)
(00.020000) Dumping shared memory 1
(00.120000) Dumping pages (type: 59 pid: 7)
(00.140000) Unfreezing tasks into 2
)";
  const std::vector<LogPhase> phases = dump_phases(log, stats).phases;
  EXPECT_EQ(phase(phases, "memory: shared memory").duration_us, 100'000U);
  EXPECT_EQ(phase(phases, "memory: finding pages").duration_us, 5'000U);
  EXPECT_EQ(phase(phases, "memory: writing pages").duration_us, 15'000U);
}

// Logs of CRIU 4.2.1, shortened: of System V, and of a memfd.
TEST(PhasesTest, ARestoreReadsSharedMemoryUntilAnotherLine) {
  const std::string log = R"((00.000000) CRIU run id = 2
(00.021900) Will restore in 8000000 namespaces
(00.022000) Forking task with 7 pid (flags 0x8000000)
(00.030000)      7: Restoring IPC shared memory
(00.030100)      7: Opened local page read 1 (parent 0)
(00.030200)      7: pr0-1 Read 0 256 pages
(00.164558)      7: Restoring IPC message queues
(00.165000)      7: mnt: Restoring mount namespace
(00.171720)      7: Opened local page read 2 (parent 0)
(00.171731)      7: nr_restored_pages: 1777
(00.171772)      7: Restoring resources
(00.171788)      7: Restoring memfd id=28
(00.171846)      7: Opened local page read 3 (parent 0)
(00.171848)      7: pr2431133-3 Read 0 256 pages
(00.171849)      7: 	pr2431133-3 Read page from self 0/0
(00.222147)      7: No data for pipe 0x1e284e9
(00.250684)      7: Restore via sigreturn
(00.250911) pie: 7: Preadv 0x55fd3b338000:4096... (69 iovs)
(00.255977) pie: 7: `- returned 7278592
(00.256000) pie: 7: 7: Restored
(00.257000) Restore finished successfully. Tasks resumed.
)";
  const LogPhases restore = restore_phases(log, {});
  constexpr std::uint64_t kIpc = 164'558 - 30'100;
  constexpr std::uint64_t kMemfd = 222'147 - 171'846;
  constexpr std::uint64_t kOwn = 256'000 - 250'911;
  EXPECT_EQ(phase(restore.phases, "memory: reading pages").duration_us, kIpc + 11 + kMemfd + kOwn);
  ASSERT_EQ(restore.processes.size(), 1U);
  const std::vector<LogPhase>& seven = restore.processes[0].phases;
  EXPECT_EQ(phase(seven, "memory").duration_us, kIpc + 11 + kMemfd + kOwn);
  EXPECT_EQ(phase(seven, "files and mappings").duration_us,
            171'846U - 171'772U + 250'911U - 222'147U);
}

TEST(PhasesTest, ADumpThatCouldNotAttachToAnyTaskStoppedNone) {
  EXPECT_TRUE(dump_phases(kTracedLog, {}).stopped_none);
  EXPECT_FALSE(dump_phases(kDumpLog, {}).stopped_none);
  const auto with = [](const std::string& line) {
    std::string log = kTracedLog;
    return dump_phases(log.insert(log.find("(00.024500)"), "(00.024400) " + line + "\n"), {});
  };
  EXPECT_TRUE(with("cpu: fpu").stopped_none);
  EXPECT_FALSE(with("Seized task 6, state 1").stopped_none) << "another task was stopped";
  EXPECT_FALSE(with("freezing processes: 100 attempts with 100 ms steps").stopped_none);
  EXPECT_FALSE(
      with("Error (compel/src/lib/infect.c:246): SEIZE 7: can't read signfo").stopped_none);
  const std::string killed = kTracedLog.substr(0, kTracedLog.find("(00.030200)"));
  EXPECT_FALSE(dump_phases(killed, {}).stopped_none) << "CRIU did not say that it gave up";
  std::string errors_only = kTracedLog.substr(kTracedLog.find("(00.030200)"));
  EXPECT_FALSE(dump_phases(errors_only, {}).stopped_none) << "this level does not show it";
}

}  // namespace
}  // namespace kymo::criu
