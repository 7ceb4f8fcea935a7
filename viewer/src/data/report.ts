// analyzer/report/report.proto as `vramtrace analyze --format json` writes it; only what the viewer shows.

export interface Moment {
  sequence: number;
  time_ns: number;
  step: number;
  phase: string;
  module_path: string;
  module_class: string;
  has_module: boolean;
  operator: string;
  site: string;
  script: string;
}
export interface Peak {
  bytes: number;
  moment?: Moment;
}
export interface Term {
  key: string;
  words: string;
  bytes: number;
  basis: string;
  detail: string;
}
export interface ClassRow {
  key: string;
  words: string;
  bytes: number;
  block_bytes: number;
  blocks: number;
  unsure_bytes: number;
}
export interface Breakdown {
  moment: Moment;
  allocated: number;
  reserved: number;
  identity: {
    device_used: number;
    device_used_known: boolean;
    device_used_basis: string;
    terms: Term[];
    sum: number;
    mismatch: number;
  };
  classes: ClassRow[];
  allocation_count: number;
  rounding: number;
  cache: { free_bytes: number; largest_hole: number; holes: number; whole_segments_free: number };
}
export interface OutOfMemory {
  reason: string;
  summary: string;
  arithmetic: Fact[];
  requested: number;
  missing: number;
  moment?: Moment;
}
export interface DeviceReport {
  device: number;
  name: string;
  total_bytes: number;
  simulated: boolean;
  peak_allocated?: Peak;
  peak_reserved?: Peak;
  peak_used?: Peak;
  block_allocations: number;
  block_frees: number;
  step_peak_allocated: number[];
  at_peak?: Breakdown;
  out_of_memory?: OutOfMemory;
  at_refusal?: Breakdown;
}
export interface Note {
  severity: string;
  key: string;
  text: string;
}
export interface Fact {
  what: string;
  text: string;
}
export interface Remedy {
  change: string;
  saves_most: number; // 0: not known beforehand
  used: number; // after the change; 0: not predicted
  used_low: number;
  used_high: number;
}
export interface Diagnosis {
  id: string;
  title: string;
  state: string;
  confidence: string;
  sentence: string;
  own_bytes: number;
  shown: boolean;
  numbers: Fact[];
  missing: string[];
  remedies: Remedy[];
  cannot: string[];
  signature: string;
  confidence_rule: string;
  limits: string;
}
export interface DeviceDiagnoses {
  device: number;
  at: string; // refusal, peak
  used: number;
  rest: number;
  diagnoses: Diagnosis[];
}
export interface ForecastCard {
  id: string;
  name: string;
  total: number;
  elsewhere: number; // context and other libraries
  elsewhere_basis: string;
}
export type Verdict = 'fits' | 'near' | 'does_not_fit' | 'unknown' | '';
export interface Prediction {
  batch: number;
  techniques: string[];
  allocated: number;
  reserved: number;
  used: number;
  used_low: number;
  used_high: number;
  verdict: Verdict;
  probability: number;
  margin: number;
  classes: ClassRow[];
  phase: string;
  site: string;
}
export interface Candidate {
  prediction: Prediction;
  words: string[];
  price: string;
  slower_low: number;
  slower_high: number;
  saves: number;
  settings: { technique: string; pytorch: string; transformers: string; lightning: string; source: string }[];
  training: string[];
}
export interface CardFit {
  card: ForecastCard;
  verdict: Verdict;
  margin: number;
  largest_batch?: number;
  largest_unlimited: boolean;
}
export interface Forecast {
  basis_text: string;
  card: ForecastCard;
  prediction?: Prediction;
  largest_batch?: number;
  largest_unlimited: boolean;
  batches: Prediction[];
  fitting: Candidate[];
  falling_short: Candidate[];
  refused: { technique: string; why: string }[];
  cards: CardFit[];
  notes: Note[];
  whole: boolean;
}
export interface Report {
  schema: number;
  vramtrace_version: string;
  trace: {
    path: string;
    bytes: number;
    events: number;
    duration_ns: number;
    complete: boolean;
    being_written: boolean;
  };
  program: {
    arguments: string[];
    pid: number;
    rank: number;
    world_size: number;
    python_version: string;
    torch_version: string;
  };
  steps: { completed: number; optimizers: string[]; batch: number };
  devices: DeviceReport[];
  diagnoses?: DeviceDiagnoses[];
  notes: Note[];
}
