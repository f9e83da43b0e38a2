// The data of a page: a document and columns of integers, as nki_scope.document.columns packs them.

/** Integers; beyond 32 bits as 64-bit floating-point numbers. */
export type Column = Int32Array | Float64Array;
export interface Ref { column: number; length: number }
export type At = [file: number, line: number] | null;
export interface Call {
  instruction: string;
  name: string | null;
  at: At;
  operands: Record<string, string>;
  flops: number
}
export interface Columns<T> { [name: string]: T }
export interface Buffer { name: string; shape: number[]; dtype: string; bytes: number }
export interface Memory<T> {
  bytes: number;
  unit: number;
  time: T;
  held: T;
  buffers: Buffer[];
  lives: Record<"buffer" | "start" | "end" | "address", T>
}
export type BarColumn = "call" | "instance" | "lane" | "kind" | "start" | "busy" | "end" | "cause" | "why" | "bytes";
export interface Kernel<T = Column> {
  /** Of a page of two runs: which of them. */
  side?: string;
  name: string; target: string; mode: string; assumed: [string, string][]; nki: string;
  perNs: number; totalNs: number; launchNs: number;
  mfu: number; mbu: number; dmaEfficiency: number; hbmBytes: number; flops: number; numOps: number;
  bottleneck: string; peaks: { tflops: number; hbm: number }; launches: number; loops: LoopSums[];
  lanes: Record<string, { busy: number; stalls: Record<string, number> }>;
  calls: Call[]; kinds: string[]; causes: string[]; laneNames: string[]; repeats: number[][];
  bars: Record<BarColumn, T>; path: { bar: T; ticks: T }; memory: Record<string, Memory<T>>;
  advice: Advice[]; whatIf: WhatIf[]; replay: Replay<T> | { reason: string };
  tensors: Tensors<T> | null;
}
export interface Result {
  step: number;
  tensor: string;
  first: number[];
  shape: number[];
  dtype: string;
  least: number;
  greatest: number;
  mean: number;
  nans: number;
  infinite: number;
  unwritten: number;
  histogram: number[];
  rows: number;
  columns: number
}
export interface Tensors<T> { left: Record<string, number>; levels: number; pictures: T; results: Result[] }
export interface Advice {
  part: "cause" | "bound" | "line" | "minor";
  isBound: boolean;
  title: string;
  text: string;
  experiment: string;
  gainNs: number;
  nextNs: number | null;
  lines: At[]
}
/** A loop: its work, and while how much time any of it is played. */
export interface LoopSums {
  name: string;
  at: At;
  flops: number;
  hbmBytes: number;
  ns: number;
  calls: [first: number, last: number]
}
export interface WhatIf { kind: string; name: string; to: string; totalNs?: number; reason?: string }
/** What nki_scope.sections.micro_op_tables gives: the candidates of a toolchain by target; the fastest counts. */
export interface Replay<T = Column> {
  tables: Table<T>[];
  candidates: Record<string, Candidate<T>[] | { reason: string }>;
  values: Record<string, Record<string, number>>
}
export interface Candidate<T = Column> {
  table: number;
  works: { each: Work[]; of: T };
  reorders: boolean;
  copies: Record<string, number>[]
}
/** Which instruction accesses which bytes, in program order. */
export interface Table<T = Column> {
  /** Instruction after instruction its site and the regions that it reads, writes, adds to. */
  executed: T;
  made: { before: T; track: T };
  tracks: string[]; track: T; rotatable: string[];
  overlaps: { first: T; second: T };
  /** By site, its call and the HBM bytes that it moves. */
  calls: T; bytes: T;
}
export interface Work {
  lane: number; kind: number; reads: number; writes: number; adds: number;
  interval?: number; table?: string | null; ports?: string[]; passes?: [load: number, multiply: number][];
  partitions?: number; descriptors?: number; run?: number; begins?: string; generators?: (string | null)[];
}
export interface Machine {
  clock_ghz: Record<string, number>; dma_engines: number; dma_engine_partitions: number; dma_queues: number;
}
/** What neuroncore.timeline.rules gives. */
export interface Model {
  kinds: string[]; causes: string[]; links: Record<string, string>; dma: string; lanes: string[];
  latency: string[];
  constants: Record<string, { unit: string; work: boolean }>;
  targets: Record<string, { values: Record<string, number>; machine: Machine }>;
}
export interface Finding {
  text: string;
  at: At
}
export interface Order {
  status: "kept" | "implied" | "removed";
  rule: string;
  ends: [string, string];
  at: [At, At];
  when: string;
  why: string[]
}
export interface Orders { text: string; rows: Order[]; rules: [rule: string, says: string, count: number][] }
/** A search. Kernels 2n and 2n + 1 of the page, or `kernel` and the next, are before and after schedule n. */
export interface Schedule {
  kernel?: number;
  name: string;
  rootNs: number;
  curve: [candidates: number, seconds: number, ns: number][];
  steps: { step: string; ns: number | null }[]
}
export interface SourceFile { path: string; lines: string[] }
export interface Migration {
  path: string;
  rows: [kind: string, old: number | null, before: string, now: number | null, after: string][];
  rules: Record<string, string[]>
}
export interface Totals {
  name: string;
  target: string;
  mode: string;
  total_ns: number;
  hbm_bytes: number;
  micro_ops: number;
  busy_ns: Record<string, number>
}
/** What nki_scope.sections.comparison gives: of each line the values of both runs. */
export interface Comparison {
  kernels: { first: Totals; second: Totals;
    lines: ({ first: string | null; second: string | null;
    text: string } & Record<"critical_path_ns" | "busy_ns" | "hbm_bytes" | "micro_ops", [number, number]>)[] }[];
  only_first: string[]; only_second: string[];
}
export interface Document {
  model: Model;
  comparison?: Comparison;
  command: string;
  kernels: Kernel[];
  findings: Finding[];
  errors: string[];
  texts: [string, string][];
  migrations: Migration[];
  orders: Orders[];
  schedules: Schedule[];
  files: SourceFile[]
}

const MAGIC = "nki-scope 2\n";

export async function inflate(text: string): Promise<Uint8Array> {
  try {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new Error("this page has damaged data: write it again with --report");
  }
}

/** The document with its columns in place; throws where the data is of another version. */
export function parse<T = Document>(data: Uint8Array): T {
  const decoder = new TextDecoder();
  const magic = decoder.decode(data.subarray(0, MAGIC.length));
  if (magic !== MAGIC) {
    const found = JSON.stringify(magic);
    throw new Error(`this page has data of another version (${found}): write it again with --report`);
  }
  const view = new DataView(data.buffer, data.byteOffset);
  const size = view.getUint32(MAGIC.length, true), first = MAGIC.length + 4;
  const document = JSON.parse(decoder.decode(data.subarray(first, first + size)));
  const refs: Ref[] = [];
  collect(document, refs);
  const starts: number[] = [];
  let at = first + size;
  for (const ref of refs.sort((a, b) => a.column - b.column)) if (starts[ref.column] === undefined) {
    starts[ref.column] = at; at += 4 * ref.length;
  }
  const read = new Map<number, Int32Array>();
  return fill(document, ({ column: n, length }) => read.get(n) ?? read.set(n, column(data, starts[n]!, length))
    .get(n)!) as T;
}

const isRef = (value: any): value is Ref => value !== null && typeof value === "object" && "column" in value
  && "length" in value && Object.keys(value).length === 2;

const isWide = (value: any): value is { low: Int32Array; high: Int32Array } => "low" in value && "high" in value
  && Object.keys(value).length === 2;

function collect(value: any, refs: Ref[]): void {
  if (value === null || typeof value !== "object") return;
  if (isRef(value)) refs.push(value);
  else for (const inner of Object.values(value)) collect(inner, refs);
}

function fill(value: any, read: (ref: Ref) => Int32Array): any {
  if (value === null || typeof value !== "object") return value;
  if (isRef(value)) return read(value);
  for (const key of Object.keys(value)) value[key] = fill(value[key], read);
  return isWide(value) ? Float64Array.from(value.high, (high, i) => high * 2 ** 32 + (value.low[i]! >>> 0)) : value;
}

/** Differences of neighbours, in four planes of bytes. */
export function column(data: Uint8Array, start: number, length: number): Int32Array {
  const found = new Int32Array(length);
  for (let i = 0, sum = 0; i < length; i++) {
    const p = start + i;
    sum = (sum + (data[p]! | (data[p + length]! << 8) | (data[p + 2 * length]! << 16) | (data[p
      + 3 * length]! << 24))) | 0;
    found[i] = sum;
  }
  return found;
}
