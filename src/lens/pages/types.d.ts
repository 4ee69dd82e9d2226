// What the C++ code writes into pages and replies, and what a page gives to its charts. Times are in
// nanoseconds.
import type uPlot from "uplot";

export interface Gap {
  start_ns: number;
  end_ns: number;
  ticks: number;
  cause: string;
}

export interface Phase {
  name: string;
  begin_ns: number;
  end_ns: number;
  uncertainty_ns?: number; // how much earlier it may have begun
  evidence?: string; // what shows that it began
  frozen?: boolean; // the processes stood still
  color?: string; // on charts
}

// A rule's result.
export interface Finding {
  rule?: string;
  share?: number;
  evidence?: string;
  threshold?: string;
  advice?: string;
  estimate_ns?: [number, number]; // the frozen time if one follows the advice
  also?: string; // what else helps, or does not
}

export interface Verdict {
  lines?: string[];
  short?: string; // in at most five words
  frozen_ns?: number;
  downtime_ns?: number;
  duration_ns?: number; // of the request
  findings?: Finding[];
}

export interface Column {
  name: string;
  metric: string;
  kind: "counter" | "gauge";
  unit: string;
  help: string;
  fields?: Record<string, string>;
}

// A column of a recording, with its sums.
export interface SummedColumn extends Column {
  idle: boolean;
  first: number;
  last: number;
  min: number;
  max: number;
  mean: number;
  rate_per_second: number;
  rate_window_ns: number;
  highest_rate_per_second: number;
  highest_rate_at_ns: number;
}

// A part of a request's time (docs/timing.md).
export interface Scope {
  name: string;
  start_ns?: number;
  duration_ns?: number;
  thread?: number; // that ran it
  parallel?: boolean;
  redundant?: boolean;
  error?: string;
  components?: Scope[];
}

export interface About {
  request?: string;
  job?: { name: string };
  timing?: Scope;
  target?: { pid?: number; name?: string };
  image_bytes?: number;
  outcome?: string;
  stats?: Record<string, number>;
  phases?: Phase[]; // of the request, since it began
  request_began_monotonic_ns?: number;
  verdict?: Verdict;
  inside?: { missing?: unknown }; // reasons why something has no columns
}

// A recording, as `kymo report --json` describes it (docs/web.md).
export interface Described {
  path: string;
  rows: number;
  duration_ns: number;
  interval_ns: number;
  start_unix_ns: number;
  start_monotonic_ns?: number;
  first_ns: number;
  last_ns: number;
  host: string;
  state: string;
  about?: About;
  scopes?: Scope[]; // that the program has made
  quality: { level: string; text: string }[];
  notes: string[];
  left_out: { first_line: number; last_line: number; reason: string }[];
  rate_window_ns: number;
  columns: SummedColumn[];
  phases: Phase[];
  gaps: Gap[];
  block_rows: number;
  samples_left_out: boolean;
  served: boolean;
}

// A recording of one side of a comparison.
export interface DescribedRun extends Described {
  side: "A" | "B";
  origin_ns: number;
  window_ns: [number, number];
}

export interface Difference {
  name: string;
  what: string;
  unit: string;
  verdict: string;
  reason: string;
  in_one_bucket?: boolean;
  a: number | null;
  b: number | null;
  share: number | null;
  shift_low: number;
  shift_high: number;
  adjusted_p: number;
  values_a: number;
  values_b: number;
}

// A value that differs between two checkpoints.
export interface CheckpointDifference {
  group: string;
  name: string;
  unit: string;
  per_second: boolean;
  a: number | null;
  b: number | null;
  change: number;
  share: number | null;
}

// A comparison, as `kymo diff --json` describes it (docs/diff.md).
export interface Diff {
  checkpoints?: { a: string; b: string; lines: string[]; notes: string[]; differences: CheckpointDifference[] };
  recordings: DescribedRun[];
  metrics: Difference[];
  notes: string[];
  test: string;
  values: string;
  correction: string;
  tested: number;
  margin: number;
  aligned_at: string;
  fail_on_change?: { outcome: string; cannot_tell: string[]; broken: string[]; runs_needed: number | null };
}

// An entry of a legend, with the indices of its lines within the chart.
export interface Entry {
  name: string;
  color: string;
  lines: number[];
}

// The columns of a chart.
export interface Group {
  title: string;
  indices: number[];
  entries?: Entry[]; // if several lines share one entry of the legend
  alpha?: number; // of the lines
  note?: string; // the text beside the title
}

export interface DrawnLines {
  times: number[] | uPlot.TypedArray;
  values: ((number | null | undefined)[] | uPlot.TypedArray)[];
  single?: boolean; // whether each point is a sample
}

// What shows a range: a chart or a timeline.
export interface Drawn {
  draw(): void;
  remake(): void; // draws anew, with the colours of the theme and the units of the view
  resize(): void;
}

// What a page gives to its charts.
export interface Source {
  readonly columns: Column[];
  labelWidth?: number; // of a label of the time axis, in pixels
  lines(indices: number[], from: number, to: number, pixels: number): DrawnLines;
  bounds(): [number, number]; // the first and the last time
  phases?(): Phase[];
  gaps?(): Gap[]; // by time
  instants(ticks: number[], step: number): string[]; // the labels of the time axis
  say(cursor?: number): void; // shows the text above the charts
  name(): string; // for a picture
  moved?(): void; // called when the user chooses a range
  keys?: Record<string, () => void>; // actions of further keys
  groups?(): Group[]; // replaces the default grouping of columns into charts
  fromZero?: boolean; // the axis of the values begins at 0
  steps?: number[]; // lengths between the labels of the time axis
  home?(): [number, number]; // the initial range, if it is not the whole one
  drawBehind?(plot: uPlot): void; // draws behind the lines, in place of phases and gaps
}

// --- replies of kymod (docs/web.md) ---------------------------------------------------------------

export interface Recorder {
  running: boolean;
  interval_ns: number;
  log_path: string;
  metrics: string;
  start_unix_ns: number;
  now_ns: number;
  first_ns: number;
  ticks_missed: number;
  rows_written: number;
}

export interface Status {
  version: string;
  host: string;
  controls: boolean;
  profiles: boolean; // kymod keeps some
  now_unix_ns: number;
  recorder: Recorder;
}

// The event `samples`, and the reply to /api/past.
export interface Samples {
  now_ns: number;
  start_unix_ns: number;
  running: boolean;
  time: number[];
  columns: Record<"last" | "low" | "high", (number | null)[]>[];
  gaps: Gap[];
  span_ns: number;
  left_out: string[];
}

// A dump or restore of the event `requests` (docs/jobs.md).
export interface Request {
  request_id: string;
  kind: string;
  job: string;
  pid: number;
  state: string;
  phase: string;
  phases: { name: string; begin_ns: number; end_ns: number | null }[];
  started_unix_ns: number;
  elapsed_ns: number;
  remaining_ns: number | null;
  bytes_done: number;
  bytes_total: number;
  bytes_per_second: number;
  error: string;
}

export interface Job {
  name: string;
  state: string;
  frozen: boolean;
  held: string; // what holds it and what ends that; empty: nothing
  pending: string; // what goes on with it; empty: nothing
  pid: number;
  created_unix_ns: number;
  runtime?: string;
  command: string[];
  exit_code: number | null;
  exit_signal: number | null;
  reason: string;
}

// What the machine and the running jobs do now: sums, as /api/now gives them.
export interface Now {
  time_ns: number;
  cpus: number;
  machine: Record<string, number>;
  jobs: Record<string, { cpu_ns: number; resident_bytes: number; processes: number; stopped: number }>;
}

export interface Checkpoint {
  id: string;
  job: string;
  pid: number;
  state: string;
  created_unix_ns: number;
  image_bytes: number;
  duration_ns: number;
  stood_still_ns: number | null;
  phases?: Phase[]; // of the newest checkpoints
  verdict?: string; // in at most five words
  reason: string;
  error: string;
  directory: string;
}

export interface LogPhases {
  total_us: number;
  phases: { name: string; duration_us: number; evidence: string }[];
}

// The recording of a dump or restore.
export interface Recorded {
  name: string;
  about?: About;
  error?: string;
}

export interface CheckpointStats {
  dump?: Record<string, number>;
  restore?: Record<string, number>;
  dump_phases?: LogPhases;
  restore_phases?: LogPhases;
  processes?: { pid: number; command: string; pages: number; mappings: { name: string; pages: number }[] }[];
  notes?: string[];
}

// The reply to /api/checkpoint.
export interface WholeCheckpoint {
  checkpoint: Checkpoint;
  stats: CheckpointStats | null;
  stats_error?: string;
  recordings: Recorded[];
}

// The reply to /api/comparison.
export interface Comparison {
  differences: CheckpointDifference[];
  lines: string[];
  notes: string[];
}

export interface Run {
  checkpoint: string;
  created_unix_ns: number;
  duration_ns: number;
  stood_still_ns: number | null;
  away_ns: number | null;
  image_bytes: number;
  warmth: string;
  cold: boolean;
  reason: string;
  error: string;
}

// The reply to /api/history.
export interface History {
  job: string;
  runs: Run[];
  compared: string[];
  runs_needed: number;
  changes: {
    checkpoint: string;
    created_unix_ns: number;
    worse: boolean;
    ratio: number;
    p: number;
    test: string;
    phases_ns: { name: string; before: number; after: number }[];
    because?: string[]; // lines of text
  }[];
}

// What the values of stacks are: src/profiler/stacks/quantity.h.
export interface FlameKind {
  kind: string;
  unit: "ns" | "bytes" | "count";
  what: string;
  counted: string;
  sorted_by_total: boolean;
}

// Stacks as a tree.
export interface FlameStacks extends FlameKind {
  scale: number; // the value of 1 in the tree
  modules: string[];
  functions: [string, number][]; // a name, and the place of its module; the module "" is of a process
  // For each node: how deep it is, its function, and its own value. A node comes before its children.
  tree: {
    depths: number[];
    functions: number[];
    self: number[];
    before?: number[]; // of a comparison: `self` in A
    verdicts?: number[]; // of a comparison: ShareVerdict (src/profiler/stacks/comparison.h)
  };
}

// For each function of a comparison, its values in A and B, and the verdict.
export interface ShareChanges {
  before: number[];
  after: number[];
  verdicts: number[];
}

export interface ComparedSide {
  path: string;
  samples: number;
  value: number;
  duration_ns: number;
  lost: number;
  scale: number; // the value of 1
}

// Two stack profiles. The functions are the first ones of the tree.
export interface FlameComparison {
  a: ComparedSide;
  b: ComparedSide;
  tested: boolean;
  shares_of: string;
  function_tests: number;
  frame_tests: number;
  self: ShareChanges;
  total: ShareChanges;
}

// The stacks of one phase of a dump or restore.
export interface PhaseStacks extends FlameStacks {
  name: string;
  samples: number;
}

// The stacks of a dump or restore. `error`: they could not be read.
export interface RequestStacks {
  error?: string;
  period_ns: number;
  lost: number;
  phases: PhaseStacks[];
}

// A stack profile in a page: what `kymo profile --json` says of it, and its stacks as a tree.
export interface FlameProfile extends FlameStacks {
  comparison?: FlameComparison;
  title: string;
  duration_ns: number;
  samples: number;
  ns?: number; // the sum, in its unit
  bytes?: number;
  count?: number;
  lost: number;
  lost_mappings: number;
  frames: number;
  unknown_frames: number;
  truncated: number;
}

// --- replies about kept profiles (docs/web.md) ------------------------------------------------------

export interface KeptType {
  type: string;
  title: string;
  samples: string;
  unit: FlameKind["unit"];
}

// Values in a unit.
export interface InUnit<T> {
  ns?: T;
  bytes?: T;
  count?: T;
}

export interface ServiceTotal extends InUnit<number> {
  service: string;
  type: string;
  samples: number;
}

// The reply to /api/profiles.
export interface KeptProfiles {
  from_unix_ns: number;
  to_unix_ns: number;
  kept: { oldest_unix_ns: number; newest_unix_ns: number; minutes: number; samples: number; bytes: number };
  types: KeptType[];
  left_out: number;
  services: ServiceTotal[];
}

// The reply to /api/profile_totals.
export interface ProfileTotals extends InUnit<number[]> {
  from_unix_ns: number;
  to_unix_ns: number;
  step_ns: number;
  level: boolean; // how much there was, and not how much came
  covered_ns: number[]; // 0: a gap
  samples: number[];
  unit: FlameKind["unit"];
}

// The reply to /api/profile and /api/profile_comparison.
export interface KeptProfile extends FlameProfile {
  from_unix_ns: number;
  to_unix_ns: number;
  before_unix_ns?: number; // of a comparison with another time
  before_to_unix_ns?: number;
}

// The reply to /api/profile_others.
export interface ProfileOthers {
  checkpoints: { checkpoint: string; recording: string; job: string; created_unix_ns: number }[];
  files: string[];
}
