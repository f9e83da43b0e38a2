// Lanes as instruction streams: in program order, and as the compiler has reordered them.
import { Gaps, commonRoom } from "./gaps.ts";

/** A stream that takes its instructions in order. */
export class Lane {
  free = 0; last = -1; busy = 0; end = 0;
  readonly stalls = new Map<number, number>();
  constructor(readonly number: number) {}
  stall(reason: number, ticks: number): void { this.stalls.set(reason, (this.stalls.get(reason) ?? 0) + ticks); }
}

/** A stream that the compiler reorders: an instruction takes the first gap, as neuroncore.timeline's LooseLane. */
export class LooseLane extends Lane {
  private readonly taken = new Gaps();
  /** When an instruction left the lane → its bar. */
  private readonly ended = new Map<number, number>();
  /** When an instruction started → the reason, if the lane idles before it. */
  private readonly reasons = new Map<number, number>();
  constructor(number: number, private readonly horizon: number) { super(number); }

  /** Where an instruction may start on the lane alone, and where with the ports it takes. */
  room(ready: number, interval: number, ports: readonly Gaps[]): [alone: number, start: number] {
    const alone = ready >= this.free ? ready : this.taken.room(Math.max(ready, this.free - this.horizon), interval);
    return [alone, ports.some((gaps) => alone < gaps.end) ? commonRoom([this.taken, ...ports], alone, interval)
      : alone];
  }
  /** The instruction behind which one starts at `time`. */
  before(time: number): number { return this.ended.get(time) ?? -1; }

  /** Instruction `bar` takes its place; what the lane idles is put down to who comes after. */
  occupy(start: number, interval: number, bar: number, reason: number): void {
    if (!interval) return;
    const { free, taken, ended, reasons } = this, end = start + interval;
    if (start >= free) {
      this.free = end;
      if (taken.end !== start || taken.isEmpty) {
        reasons.set(start, reason);
        if (start > free && ended.size) this.stall(reason, start - free);
      }
      taken.follow(start, interval);
      ended.set(end, bar);
      return;
    }
    ended.set(end, bar);
    const [before, after] = taken.insertAt(start, interval), later = reasons.get(after)!;
    if (before < 0) {
      reasons.set(start, reason);
      if (after > end) this.stall(later, after - end);
      return;
    }
    this.stall(later, before - end);
    if (start > before) { reasons.set(start, reason); this.stall(reason, start - before); }
  }
}
