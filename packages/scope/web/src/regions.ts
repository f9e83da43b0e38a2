// Who touched which bytes when, as neuroncore.timeline's regions: what an instruction waits for.
import type { Table } from "./data.ts";

const [DATA, SPACE, LANE] = [0, 1, 2];

/** The result of a look: from when on everything is ready, the bar that was last, and why. */
export interface Ready { time: number; bar: number; why: number }

export class Regions {
  private readonly written: Float64Array; private readonly read: Float64Array; private readonly read2: Float64Array;
  private readonly wlane: Int32Array; private readonly rlane: Int32Array;
  private readonly writer: Int32Array; private readonly reader: Int32Array; private readonly reader2: Int32Array;
  private readonly first: Int32Array; private readonly others: Int32Array;
  private readonly turns: Int32Array; private readonly count: Int32Array;
  /** By region, the place of its first copy. */
  private readonly at: Int32Array;
  private readonly rotates: boolean;

  /** `copies`: track → how many copies of it are used in turn. `cut`: whether a site ignores a bar. */
  constructor(private readonly replay: Table, copies: ReadonlyMap<number, number>,
    private readonly cut: ((site: number, bar: number) => boolean) | null) {
    const num = replay.track.length, { first, second } = replay.overlaps;
    this.rotates = copies.size > 0;
    this.count = new Int32Array(replay.tracks.length).fill(1);
    copies.forEach((n, track) => { this.count[track] = n; });
    this.turns = new Int32Array(replay.tracks.length);
    this.first = new Int32Array(num + 1);
    for (let i = 0; i < first.length; i++) { this.first[first[i]! + 1]!++; this.first[second[i]! + 1]!++; }
    for (let i = 0; i < num; i++) this.first[i + 1]! += this.first[i]!;
    this.others = new Int32Array(2 * first.length);
    const at = this.first.slice();
    for (let i = 0; i < first.length; i++) {
      this.others[at[first[i]!]!++] = second[i]!; this.others[at[second[i]!]!++] = first[i]!;
    }
    this.at = new Int32Array(num);
    let size = 0;
    for (let region = 0; region < num; region++) { this.at[region] = size; size += this.count[replay.track[region]!]!; }
    const bars = () => new Int32Array(size).fill(-1), times = () => new Float64Array(size);
    [this.written, this.read, this.read2] = [times(), times(), times()];
    [this.wlane, this.rlane, this.writer, this.reader, this.reader2] = [bars(), bars(), bars(), bars(), bars()];
  }

  /** The buffer is allocated anew: its next copy is used from now on. */
  made(track: number): void { this.turns[track]!++; }

  private slot(region: number): number {
    const track = this.replay.track[region]!;
    return this.turns[track]! % this.count[track]!;
  }

  /**
   * Looks at the regions executed[from..until), the first `reads` of which are read, the last `adds` added to.
   * Before it writes, an instruction waits for its own lane until `lag` before that releases; -1: not at all.
   */
  look(into: Ready, site: number, lane: number, from: number, until: number, reads: number, adds: number,
    lag = -1): void {
    const { replay, rotates, at, first, others, written, read, cut } = this;
    let ready = 0, bar = -1, why = LANE;
    for (let i = from; i < until; i++) {
      const region = replay.executed[i]!, slot = rotates ? this.slot(region) : 0, isAdd = i >= until - adds,
        cause = isAdd ? DATA : SPACE;
      for (let n = first[region]! - 1; n < first[region + 1]!; n++) {
        const one = at[n < first[region]! ? region : others[n]!]! + slot;
        if (i < from + reads) {
          const time = written[one]!, by = this.writer[one]!;
          if (time >= ready && (time > ready || by > bar) && !cut?.(site, by)) { ready = time; bar = by; why = DATA; }
        } else if (written[one]! >= ready || read[one]! >= ready) {
          this.released(site, one, lane, cause, isAdd ? -1 : lag);
          if (this.time >= ready && (this.time > ready || this.bar > bar)) {
            ready = this.time; bar = this.bar; why = this.why;
          }
        }
      }
    }
    into.time = ready; into.bar = bar; into.why = why;
  }

  private time = 0; private bar = -1; private why = 0;
  /** When an instruction on `lane` may write region `one`, the bar it waits for, and why. */
  private released(site: number, one: number, lane: number, cause: number, lag: number): void {
    const { cut, rlane } = this, own = (time: number) => lag < 0 ? -1 : time - lag;
    this.time = this.wlane[one] === lane ? own(this.written[one]!) : this.written[one]!;
    this.bar = this.writer[one]!; this.why = cause;
    if (cut?.(site, this.bar)) { this.time = this.bar = -1; }
    if (this.read[one]! <= 0) return;
    if (rlane[one] === lane) {
      this.later(site, this.read2[one]!, this.reader2[one]!);
      this.later(site, own(this.read[one]!), this.reader[one]!);
    }
    else this.later(site, this.read[one]!, this.reader[one]!);
  }
  private later(site: number, time: number, bar: number): void {
    if ((time > this.time || (time === this.time && bar > this.bar)) && !this.cut?.(site, bar)) {
      this.time = time; this.bar = bar; this.why = SPACE;
    }
  }

  /** The instruction releases the same regions at `release`. */
  done(lane: number, from: number, until: number, reads: number, release: number, bar: number): void {
    const { replay, rotates, at } = this;
    for (let i = from; i < until; i++) {
      const region = replay.executed[i]!, one = at[region]! + (rotates ? this.slot(region) : 0);
      if (i < from + reads) this.wasRead(one, lane, release, bar); else this.wasWritten(one, lane, release, bar);
    }
  }
  private wasWritten(one: number, lane: number, release: number, bar: number): void {
    this.written[one] = release; this.writer[one] = bar; this.wlane[one] = lane;
    if (this.read[one]) {
      this.read[one] = this.read2[one] = 0;
      this.reader[one] = this.reader2[one] = this.rlane[one] = -1;
    }
  }
  private wasRead(one: number, lane: number, release: number, bar: number): void {
    const { read, read2, reader, reader2, rlane } = this;
    if (lane === rlane[one]) { if (release > read[one]!) { read[one] = release; reader[one] = bar; } }
    else if (release >= read[one]!) {
      read2[one] = read[one]!; reader2[one] = reader[one]!; read[one] = release;
      reader[one] = bar; rlane[one] = lane;
    }
    else if (release > read2[one]!) { read2[one] = release; reader2[one] = bar; }
  }
}
