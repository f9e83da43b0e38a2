// What views derive from a kernel: rows of the timeline, sums by line, the selection that links them.
import type { Call, Document, Kernel } from "./data.ts";

/** The line of a call as "file:line"; its instruction where it has none. */
export const keyOf = (call: Call): string => call.at ? call.at.join(":") : call.instruction;

/** `free`: since when no bar of the lane was played, bar by bar; the start of a bar that followed at once. */
export interface Row { label: string; lane: number; bars: Int32Array; free: Float64Array }

/** A row per engine and DMA queue; bars that overlap lie on rows of their own. Each is sorted by start. */
export function rows(kernel: Kernel): Row[] {
  const { lane, kind, start, busy } = kernel.bars;
  const tracks = new Map<number, number[]>();
  for (let i = 0; i < lane.length; i++) {
    const key = lane[i]! * 2 + (kernel.kinds[kind[i]!] === "load_stationary" ? 1 : 0);
    (tracks.get(key) ?? tracks.set(key, []).get(key)!).push(i);
  }
  const found: Row[] = [];
  for (const key of [...tracks.keys()].sort((a, b) => a - b)) {
    const sorted = tracks.get(key)!.sort((a, b) => start[a]! - start[b]! || a - b);
    const ends: number[] = [], lists: number[][] = [], idle: number[][] = [];
    let last = start[sorted[0]!]!;
    for (const bar of sorted) {
      let row = ends.findIndex((end) => end <= start[bar]!);
      if (row < 0) { row = ends.push(0) - 1; lists.push([]); idle.push([]); }
      ends[row] = start[bar]! + busy[bar]!;
      lists[row]!.push(bar);
      idle[row]!.push(Math.min(last, start[bar]!));
      last = Math.max(last, ends[row]!);
    }
    const number = key >> 1, name = kernel.laneNames[number] ?? `DMA queue ${number - kernel.laneNames.length}`;
    lists.forEach((list, row) => found.push({
      label: row ? "" : key & 1 ? `${name}: load` : name, lane: number,
      bars: Int32Array.from(list), free: Float64Array.from(idle[row]!),
    }));
  }
  return found;
}

export interface Line { busy: number; path: number; bytes: number; stall: number; bars: number[] }

/** By "file:line" (or instruction without a place): ticks busy, on the critical path, stalled; HBM bytes; bars. */
export function byLine(kernel: Kernel): Map<string, Line> {
  const { call, busy, bytes, start, lane, kind } = kernel.bars;
  const keys = kernel.calls.map(keyOf);
  const found = new Map<string, Line>();
  const free = new Map<number, number>();
  const line = (bar: number): Line => {
    const key = keys[call[bar]!]!;
    return found.get(key) ?? found.set(key, { busy: 0, path: 0, bytes: 0, stall: 0, bars: [] }).get(key)!;
  };
  for (let i = 0; i < call.length; i++) {
    const at = line(i), track = lane[i]! * 2 + (kernel.kinds[kind[i]!] === "load_stationary" ? 1 : 0);
    at.busy += busy[i]!; at.bytes += bytes[i]!; at.bars.push(i);
    const before = free.get(track);
    if (before !== undefined) at.stall += Math.max(0, start[i]! - before);
    free.set(track, Math.max(before ?? 0, start[i]! + busy[i]!));
  }
  kernel.path.bar.forEach((bar, i) => { line(bar).path += kernel.path.ticks[i]!; });
  return found;
}

/** The first bar of a line; -1 where the kernel has none. */
export function firstOfLine(kernel: Kernel, at: readonly number[]): number {
  const calls = new Set(kernel.calls.flatMap((call, n) => call.at?.join(":") === at.join(":") ? [n] : []));
  return kernel.bars.call.findIndex((call) => calls.has(call));
}

/** One selection for all views: a kernel, and a bar or a line of it. */
export class Selection extends EventTarget {
  kernel = 0; bar = -1; key = "";
  private shown = new AbortController();
  constructor(readonly document: Document) { super(); }
  get now(): Kernel { return this.document.kernels[this.kernel]!; }
  /** Calls `act` when the selection changes, until another kernel is shown. */
  follow(act: () => void): void { this.addEventListener("change", act, { signal: this.shown.signal }); }
  pick(bar: number): void {
    this.bar = bar;
    const call = bar < 0 ? undefined : this.now.calls[this.now.bars.call[bar]!];
    this.key = call ? keyOf(call) : "";
    this.dispatchEvent(new Event("change"));
  }
  pickLine(key: string, bar = -1): void { this.key = key; this.bar = bar; this.dispatchEvent(new Event("change")); }
  show(kernel: number): void {
    this.shown.abort(); this.shown = new AbortController(); this.kernel = kernel; this.bar = -1;
    this.key = ""; this.dispatchEvent(new Event("kernel"));
  }
}
